//! The target of one attempt: a provider, its address and the credential for it.

use super::signing::{AccountCredential, BadAccount};
use crate::catalog::providers::Provider;
use crate::catalog::secrets::mapping::Mapped;
use crate::net::dial::Origin;
use crate::request::refusal::Refusal;
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use shared::model::{CUSTOM_HEADERS, Credentials, Integration, IntegrationModel};
use shared::secrets::seal::data_key::DataKey;
use shared::secrets::seal::{Sealed, SealedPlace, Sealer};
use shared::telemetry::LogLimit;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Target {
    pub provider: Arc<Provider>,
    pub origin: Arc<Origin>,
    pub credential: Credential,
    /// What the caller signed in for at the provider, which is sent in place of a stored credential.
    pub own_bearer: Option<HeaderValue>,
    /// What must be computed, of an account that the request or its config describes. It takes the place of a given key.
    /// What is wrong with it is said when nothing else is wrong.
    pub account: Result<Option<Arc<AccountCredential>>, BadAccount>,
    /// What belongs to the account or the config: an organisation, a beta. Stronger than the provider's defaults.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What fills places of its paths: a project, a deployment.
    pub placed: Vec<(String, String)>,
    /// The model that is called in truth, where the account has no deployment of the one that was asked for, or a profile
    /// stands for it.
    pub called: Option<String>,
    /// Longest wait for the head of the answer.
    pub timeout: Duration,
    /// That is the gateway's own limit, since neither the request nor its config has one.
    pub is_ceiling: bool,
    /// Longest silence inside it.
    pub stream_idle: Duration,
}

impl Target {
    /// What the client is told when that time has passed.
    pub fn timed_out(&self) -> Refusal {
        let ms = self.timeout.as_millis();
        if self.is_ceiling { Refusal::gateway_timeout(ms) } else { Refusal::timeout(ms) }
    }

    /// What fills this place.
    pub fn placed(&self, place: &str) -> Option<&str> {
        self.placed.iter().find(|(name, _)| name == place).map(|(_, value)| value.as_str())
    }

    /// Whether its address is not the provider's, because the account says another.
    pub fn has_own_base(&self) -> bool {
        self.placed("base").is_some_and(|base| self.provider.row.base_url.as_deref() != Some(base))
    }

    /// The model behind the profile that is asked for, as its provider told it.
    pub fn foundation(&self) -> Option<&str> {
        self.called.as_deref().filter(|_| self.provider.row.inference_profiles.is_some())
    }

    /// The deployment that bodies name there in place of the model, if they do and the account names one.
    pub fn deployment(&self) -> Option<&str> {
        let named = self.placed("deployment").filter(|name| *name != "{model}");
        named.filter(|_| self.provider.row.sends_deployment)
    }

    /// Whether a part of its credential is kept elsewhere, and has to be gathered before it is asked.
    pub fn awaits_secrets(&self) -> bool {
        let is_sent = self.own_bearer.is_none();
        matches!(&self.credential, Credential::Stored(stored) if is_sent && !stored.mapped.is_empty())
    }
}

#[derive(Debug, Clone)]
pub enum Credential {
    /// The caller's own or the config's, if there is one.
    Given(Option<HeaderValue>),
    /// Opened when the head of a request is built, and nowhere else.
    Stored(Arc<Stored>),
}

/// An integration's sealed credentials with what opens them.
pub struct Stored {
    /// The workspace's handle on it.
    pub provider: Arc<shared::model::Provider>,
    pub integration: Arc<Integration>,
    pub data_key: Option<Arc<DataKey>>,
    /// Opens what the handle has sealed itself.
    pub own_key: Option<Arc<DataKey>>,
    /// The model that was asked for, if the integration has headers for it alone.
    pub model: Option<(Arc<IntegrationModel>, Option<Arc<DataKey>>)>,
    /// What a secret manager holds of them; `Secrets::gather` brings it.
    pub mapped: Vec<Mapped>,
    pub sealer: Arc<Sealer>,
}

impl Stored {
    /// In plain text: for the head of one request. Failing to open is ours to mend, so the caller learns only that.
    pub fn open(&self) -> Result<Credentials, Refusal> {
        let sealed = self.integration.sealed.as_ref();
        let mut opened = self.unseal(sealed, &self.integration.place(), self.data_key.as_deref())?;
        if let Some((model, data_key)) = &self.model {
            let own = self.unseal(model.sealed.as_ref(), &model.place(), data_key.as_deref())?;
            merge_headers(&mut opened, own);
        }
        let own = self.unseal(self.provider.sealed.as_ref(), &self.provider.place(), self.own_key.as_deref())?;
        merge_headers(&mut opened, own.only(CUSTOM_HEADERS));
        match self.mapped.iter().find(|mapped| !mapped.put(&mut opened)) {
            None => Ok(opened),
            Some(mapped) => {
                let why =
                    format!("the value of the secret reference `{}` has not the form it should", mapped.reference.slug);
                Err(Refusal::secret_unavailable(&self.integration.slug, why))
            }
        }
    }

    fn unseal(
        &self,
        sealed: Option<&Sealed>,
        place: &SealedPlace,
        key: Option<&DataKey>,
    ) -> Result<Credentials, Refusal> {
        let Some(sealed) = sealed else { return Ok(Credentials::default()) };
        match key.map(|key| self.sealer.open_with(key, place, sealed)) {
            Some(Ok(secret)) => Credentials::parse(&secret).ok_or_else(|| self.unopened("it is of no known form")),
            Some(Err(error)) => Err(self.unopened(error)),
            None => Err(self.unopened("its data key is not known here")),
        }
    }

    fn unopened(&self, why: impl fmt::Display) -> Refusal {
        static UNOPENED: LogLimit = LogLimit::new();
        if let Some(skipped) = UNOPENED.pass() {
            tracing::error!(integration = self.integration.slug, %why, skipped, "a stored credential cannot be opened");
        }
        Refusal::internal()
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored({})", self.integration.slug)
    }
}

/// A model's own headers join those of its account, and win; so do those of a workspace's handle.
fn merge_headers(opened: &mut Credentials, own: Credentials) {
    for (field, value) in own.configurations {
        match (opened.configurations.get_mut(&field), value) {
            (Some(Value::Object(present)), Value::Object(more)) => present.extend(more),
            (_, value) => {
                opened.configurations.insert(field, value);
            }
        }
    }
}
