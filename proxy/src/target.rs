//! Where one attempt goes: a provider, its address, and what it is given to know us by.

use crate::dial::Origin;
use crate::providers::Provider;
use crate::refusal::Refusal;
use http::{HeaderName, HeaderValue};
use shared::model::{Credentials, DataKey, Integration};
use shared::seal::Sealer;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Target {
    pub provider: Arc<Provider>,
    pub origin: Arc<Origin>,
    pub credential: Credential,
    /// What belongs to the account or the config: an organisation, a beta. Stronger than the provider's defaults.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Longest wait for the head of the answer.
    pub timeout: Duration,
    /// Longest silence inside it.
    pub stream_idle: Duration,
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
    pub integration: Arc<Integration>,
    pub data_key: Option<Arc<DataKey>>,
    pub sealer: Arc<Sealer>,
}

impl Stored {
    /// In plain text: for the head of one request. Failing to open is ours to mend, so the caller learns only that.
    pub fn open(&self) -> Result<Credentials, Refusal> {
        let Some(sealed) = &self.integration.sealed else { return Ok(Credentials::default()) };
        let place = self.integration.place();
        let opened = self.data_key.as_ref().map(|key| self.sealer.open_with(key, &place, sealed));
        match opened {
            Some(Ok(secret)) => Credentials::parse(&secret).ok_or_else(|| self.unopened("it is of no known form")),
            Some(Err(error)) => Err(self.unopened(error)),
            None => Err(self.unopened("its data key is not known here")),
        }
    }

    fn unopened(&self, why: impl fmt::Display) -> Refusal {
        tracing::error!(integration = self.integration.slug, %why, "a stored credential cannot be opened");
        Refusal::internal()
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored({})", self.integration.slug)
    }
}
