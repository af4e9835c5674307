//! Credentials that an outside secret manager holds. `shared::secrets` fetches, keeps and renews them; this module
//! knows which reference is meant and how it is opened, and has all references of the snapshot fetched in advance. Only
//! a request that comes before that waits for a manager.

pub mod mapping;

use crate::catalog::target::{Credential, Target};
use crate::net::cloud_http::DialerTransport;
use crate::net::dial::Dialer;
use crate::request::refusal::Refusal;
use crate::snapshot::Snapshot;
use arc_swap::ArcSwap;
use futures::StreamExt as _;
use mapping::Mapped;
use shared::model::SecretReference;
use shared::secrets::seal::Sealer;
use shared::secrets::{Endpoints, FetchError, Fetcher, OwnIdentity, Reference, Store};
use shared::settings;
use shared::telemetry::{Brief, LogLimit};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// How often every reference is touched, so that the store does not forget what is seldom used.
const TOUCH: Duration = Duration::from_secs(20 * 60);
/// Managers are asked for this many secrets at once.
const AT_ONCE: usize = 8;

pub struct Secrets {
    store: Arc<Store>,
    snapshot: Arc<Snapshot>,
    sealer: Arc<Sealer>,
    /// Opened references. Opening one again for every request would cost more than the rest of its way.
    known: ArcSwap<HashMap<Uuid, KnownReference>>,
}

#[derive(Clone)]
struct KnownReference {
    /// The row it was made from; another one means that it changed.
    row: Arc<SecretReference>,
    reference: Arc<Reference>,
}

impl Secrets {
    pub fn new(
        settings: &settings::Secrets,
        dialer: Arc<Dialer>,
        snapshot: Arc<Snapshot>,
        sealer: Arc<Sealer>,
    ) -> Self {
        let own = match settings.secrets_own_identity {
            true => OwnIdentity::from_environment(),
            false => OwnIdentity::none(),
        };
        let endpoints = Endpoints {
            aws: settings.secrets_aws_url.clone(),
            azure_login: settings.secrets_azure_login_url.clone(),
            ..Endpoints::default()
        };
        let fetcher = Fetcher::new(DialerTransport(dialer), own, endpoints);
        let store = Arc::new(Store::with_ttl(fetcher, Duration::from_millis(settings.secrets_ttl_ms.max(1))));
        Self { store, snapshot, sealer, known: ArcSwap::default() }
    }

    /// Completes the credential of a target, if a part of it is kept elsewhere.
    pub async fn gather(&self, target: &Target) -> Result<(), Refusal> {
        match &target.credential {
            Credential::Stored(stored) if !stored.mapped.is_empty() => {
                // Boxed, or its state would be part of every request's.
                Box::pin(self.fetch(&stored.integration.slug, &stored.mapped)).await
            }
            _ => Ok(()),
        }
    }

    /// Fetches the values of an account's fields, as far as they are not there yet.
    pub async fn fetch(&self, integration: &str, mapped: &[Mapped]) -> Result<(), Refusal> {
        for one in mapped.iter().filter(|one| one.value.get().is_none()) {
            let slug = &one.reference.slug;
            let reference = self.opened(&one.reference).ok_or_else(|| {
                Refusal::secret_unavailable(integration, format!("the secret reference `{slug}` cannot be opened"))
            })?;
            let value = self.store.value(&reference, one.entry.as_deref()).await.map_err(|error| {
                note_missing(slug, &error);
                Refusal::secret_unavailable(integration, format!("the secret reference `{slug}`: {error}"))
            })?;
            // Who comes second brings the same.
            let _ = one.value.set(value);
        }
        Ok(())
    }

    /// With what opens its manager. Failing to open it is ours to mend.
    fn opened(&self, row: &Arc<SecretReference>) -> Option<Arc<Reference>> {
        if let Some(known) = self.known.load().get(&row.id).filter(|known| Arc::ptr_eq(&known.row, row)) {
            return Some(known.reference.clone());
        }
        let data_key = row.sealed_auth_config.data_key_id().ok().and_then(|id| self.snapshot.data_key(&id));
        let place = SecretReference::place(row.organisation_id.uuid(), row.id);
        let opened = self.sealer.open_with(data_key.as_deref()?, &place, &row.sealed_auth_config);
        let reference = match opened.map(|opened| row.reference(&opened)) {
            Ok(Ok(reference)) => Arc::new(reference),
            Ok(Err(error)) => {
                static UNUSABLE: LogLimit = LogLimit::new();
                if let Some(skipped) = UNUSABLE.pass() {
                    let (secret_reference, error) = (&row.slug, Brief(error));
                    tracing::error!(secret_reference, %error, skipped, "a secret reference cannot be used");
                }
                return None;
            }
            Err(error) => {
                static UNOPENED: LogLimit = LogLimit::new();
                if let Some(skipped) = UNOPENED.pass() {
                    tracing::error!(secret_reference = row.slug, %error, skipped, "a secret reference cannot be opened");
                }
                return None;
            }
        };
        let known = KnownReference { row: row.clone(), reference: reference.clone() };
        self.known.rcu(|all| {
            let mut all = HashMap::clone(all);
            all.insert(row.id, known.clone());
            all
        });
        Some(reference)
    }

    /// Fetches what the snapshot learns of and renews what grows old, for ever.
    pub async fn run(self: Arc<Self>) {
        tokio::join!(Arc::clone(&self.store).run(), self.look_ahead());
    }

    async fn look_ahead(&self) {
        let mut progress = self.snapshot.subscribe();
        loop {
            let version = progress.borrow_and_update().version;
            self.prefetch().await;
            let touch = tokio::time::sleep(TOUCH);
            tokio::pin!(touch);
            // Most reads of the feed bring nothing new.
            while progress.borrow().version == version {
                tokio::select! {
                    () = &mut touch => break,
                    changed = progress.changed() => if changed.is_err() { return },
                }
            }
        }
    }

    async fn prefetch(&self) {
        let rows = self.snapshot.secret_references();
        let is_there = |id: &Uuid| self.snapshot.secret_reference(id).is_some();
        if !self.known.load().keys().all(is_there) {
            self.known.rcu(|all| {
                let present = all.iter().filter(|(id, _)| is_there(id));
                present.map(|(id, known)| (*id, known.clone())).collect::<HashMap<_, _>>()
            });
        }
        let fetch = async |row: Arc<SecretReference>| {
            if let Some(reference) = self.opened(&row) {
                // What fails is said to who needs it; the store remembers it for a while.
                let _ = self.store.value(&reference, None).await;
            }
        };
        futures::stream::iter(rows).for_each_concurrent(AT_ONCE, fetch).await;
    }
}

fn note_missing(slug: &str, error: &FetchError) {
    static AWAY: LogLimit = LogLimit::new();
    if let Some(skipped) = AWAY.pass() {
        tracing::warn!(secret_reference = slug, error = %Brief(error), skipped, "a secret could not be had");
    }
}
