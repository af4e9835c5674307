//! Fetched secrets, kept for five minutes. Only the first use of a reference waits for its manager. An older value is
//! given at once and renewed in the background; it stays in use while the manager is away, for a day at most, because a
//! secret may have been revoked meanwhile. What the manager denies is forgotten at once.

use super::FetchError;
use super::fetch::Fetcher;
use super::reference::Reference;
use super::seal::Secret;
use super::value::{FetchedSecret, pick};
use crate::telemetry::{Brief, LogLimit};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a value is fresh.
pub const TTL: Duration = Duration::from_secs(5 * 60);
/// How long it is used at most without the manager's word.
const MAX_STALE: Duration = Duration::from_secs(24 * 3600);
/// How long a refusal is repeated without asking again.
const REFUSED: Duration = Duration::from_secs(30);
/// A reference that nobody used for so long is no longer renewed.
const UNUSED: Duration = Duration::from_secs(3600);
const FIRST_PAUSE: Duration = Duration::from_secs(5);

pub struct Store {
    fetcher: Fetcher,
    ttl: Duration,
    entries: Mutex<HashMap<[u8; 32], Arc<SecretEntry>>>,
}

struct SecretEntry {
    reference: Reference,
    state: Mutex<SecretState>,
    /// Whoever holds it fetches; the others wait for the outcome.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct SecretState {
    value: Option<(Arc<FetchedSecret>, Instant)>,
    refusal: Option<(FetchError, Instant)>,
    /// Not before this, after a failure.
    retry_at: Option<Instant>,
    failures: u32,
    used_at: Option<Instant>,
}

enum SecretLookup {
    Fresh(Arc<FetchedSecret>),
    /// Good to use, and to be renewed if it is due.
    Stale(Arc<FetchedSecret>, bool),
    Refused(FetchError),
    Absent,
}

impl SecretState {
    fn look(&self, ttl: Duration, now: Instant) -> SecretLookup {
        if let Some((value, since)) = &self.value {
            let age = now.saturating_duration_since(*since);
            if age < ttl {
                return SecretLookup::Fresh(Arc::clone(value));
            }
            if age < MAX_STALE {
                return SecretLookup::Stale(Arc::clone(value), self.retry_at.is_none_or(|at| at <= now));
            }
        }
        match &self.refusal {
            Some((refusal, until)) if now < *until => SecretLookup::Refused(refusal.clone()),
            _ => SecretLookup::Absent,
        }
    }

    fn settle(&mut self, outcome: Result<Arc<FetchedSecret>, FetchError>, ttl: Duration, now: Instant) {
        match outcome {
            Ok(value) => {
                (self.value, self.refusal) = (Some((value, now)), None);
                (self.retry_at, self.failures) = (None, 0);
            }
            Err(refusal) => {
                if !refusal.keeps_stale() {
                    self.value = None;
                }
                let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(ttl.max(FIRST_PAUSE));
                self.failures = self.failures.saturating_add(1);
                self.retry_at = Some(now + pause);
                self.refusal = Some((refusal, now + pause.min(REFUSED)));
            }
        }
    }
}

impl Store {
    pub fn new(fetcher: Fetcher) -> Self {
        Self::with_ttl(fetcher, TTL)
    }

    pub fn with_ttl(fetcher: Fetcher, ttl: Duration) -> Self {
        Self { fetcher, ttl, entries: Mutex::default() }
    }

    /// The secret that a reference stands for; `key` names another entry than the reference does. Waits for the
    /// manager only when nothing is known yet.
    pub async fn value(self: &Arc<Self>, reference: &Reference, key: Option<&str>) -> Result<Secret, FetchError> {
        let entry = self.entry(reference);
        let fetched = match entry.look(self.ttl) {
            SecretLookup::Fresh(value) => value,
            SecretLookup::Stale(value, is_due) => {
                if is_due {
                    self.renew(entry);
                }
                value
            }
            SecretLookup::Refused(refusal) => return Err(refusal),
            SecretLookup::Absent => self.fetch(&entry).await?,
        };
        pick(&fetched, key.or(reference.secret_key.as_deref()))
    }

    /// Renews what is in use before it is old, for ever; spawn it beside the service.
    pub async fn run(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.ttl / 10).await;
            for entry in self.aging(Instant::now()) {
                self.renew(entry);
            }
        }
    }

    /// What is to be renewed now; what nobody uses any more is dropped.
    fn aging(&self, now: Instant) -> Vec<Arc<SecretEntry>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, entry| entry.state().used_at.is_some_and(|at| now.saturating_duration_since(at) < UNUSED));
        let soon = now + self.ttl / 5;
        let is_aging =
            |entry: &&Arc<SecretEntry>| matches!(entry.state().look(self.ttl, soon), SecretLookup::Stale(_, true));
        entries.values().filter(is_aging).cloned().collect()
    }

    fn entry(&self, reference: &Reference) -> Arc<SecretEntry> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || {
            let (reference, state) = (reference.clone(), Mutex::default());
            Arc::new(SecretEntry { reference, state, turn: tokio::sync::Mutex::default() })
        };
        let entry = Arc::clone(entries.entry(reference.fingerprint).or_insert_with(made));
        entry.state().used_at = Some(Instant::now());
        entry
    }

    /// Of many who come first, one asks and all get its answer.
    async fn fetch(&self, entry: &SecretEntry) -> Result<Arc<FetchedSecret>, FetchError> {
        let _turn = entry.turn.lock().await;
        match entry.look(self.ttl) {
            SecretLookup::Fresh(value) | SecretLookup::Stale(value, _) => Ok(value),
            SecretLookup::Refused(refusal) => Err(refusal),
            SecretLookup::Absent => self.ask(entry).await,
        }
    }

    fn renew(self: &Arc<Self>, entry: Arc<SecretEntry>) {
        let store = Arc::clone(self);
        tokio::spawn(async move {
            // Somebody is at it already.
            let Ok(_turn) = entry.turn.try_lock() else { return };
            if let Err(error) = store.ask(&entry).await {
                let (id, stays) = (entry.reference.id, error.keeps_stale());
                static NOT_RENEWED: LogLimit = LogLimit::new();
                if let Some(skipped) = NOT_RENEWED.pass() {
                    let error = Brief(error);
                    tracing::warn!(secret_reference_id = %id, %error, stays, skipped, "a secret could not be renewed");
                }
            }
        });
    }

    async fn ask(&self, entry: &SecretEntry) -> Result<Arc<FetchedSecret>, FetchError> {
        let outcome = self.fetcher.fetch(&entry.reference).await.map(Arc::new);
        entry.state().settle(outcome.clone(), self.ttl, Instant::now());
        outcome
    }
}

impl SecretEntry {
    fn state(&self) -> std::sync::MutexGuard<'_, SecretState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, ttl: Duration) -> SecretLookup {
        self.state().look(ttl, Instant::now())
    }
}

#[cfg(test)]
mod tests;
