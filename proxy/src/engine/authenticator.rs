//! Who asks: a key of the snapshot or a verified token, of a workspace that this deployment serves.

use crate::context::Visit;
use crate::identity::deployment::{self, DeploymentIdentity};
use crate::identity::identify::{Identified, Principal, identify};
use crate::identity::tokens::{RefusedToken, Tokens};
use crate::request::headers::GatewayHeaders;
use crate::request::refusal::Refusal;
use crate::snapshot::Snapshot;
use chrono::Utc;
use ipnet::IpNet;
use pingora_http::RequestHeader;
use shared::headers::client_ip::client_ip;
use shared::identity::jwt::failures::Failure as TokenFailure;
use shared::model::{EmailDigest, Status};
use std::net::IpAddr;
use std::sync::Arc;

pub struct Authenticator {
    pub snapshot: Arc<Snapshot>,
    pub tokens: Tokens,
    /// Which deployment this proxy is, if it says so.
    pub deployment: Option<DeploymentIdentity>,
    /// Peers whose word about the client's address is taken.
    pub trusted_proxies: Vec<IpNet>,
}

impl Authenticator {
    /// `peer` is the other end of the connection.
    pub async fn identify(
        &self,
        head: &RequestHeader,
        peer: Option<IpAddr>,
        headers: &GatewayHeaders<'_>,
        scopes: &[&str],
        visit: &Visit,
    ) -> Result<Principal, Refusal> {
        let now = visit.request.began_at;
        let caller = match identify(headers, &self.snapshot, scopes, now)? {
            Identified::Key(caller) => caller,
            Identified::Token { text, hash } => {
                // Boxed, or its state would be part of every request's.
                let identified = Box::pin(self.tokens.identify(text, hash, &self.snapshot, scopes, now)).await;
                identified.map_err(|refused| self.reject(refused, text, head, peer, visit))?
            }
        };
        if let Some(deployment) = &self.deployment {
            deployment.admit(&caller.workspace, &self.snapshot)?;
        }
        if let Some(token) = headers.client_auth {
            deployment::admit(token.as_bytes(), &caller.workspace, &self.snapshot)?;
        }
        Ok(caller)
    }

    /// Whether the caller of a session may go on, as the control plane's data stands now.
    pub(crate) fn identify_again(
        &self,
        caller: &mut Principal,
        headers: &GatewayHeaders<'_>,
        scopes: &[&str],
    ) -> Result<(), Refusal> {
        let now = Utc::now();
        match identify(headers, &self.snapshot, scopes, now)? {
            Identified::Key(present) => *caller = present,
            Identified::Token { .. } => {
                if caller.key.is_expired(now) {
                    return Err(Refusal::expired_api_key());
                }
                let person = caller.token.as_ref().and_then(|token| token.person.as_deref()).map(EmailDigest::new);
                if person.is_some_and(|email| self.snapshot.is_removed(caller.key.organisation_id, email)) {
                    return Err(Refusal::invalid_api_key());
                }
                let workspace = self.snapshot.workspace(&caller.workspace.id);
                let workspace = workspace.filter(|workspace| workspace.status == Status::Active);
                caller.workspace = workspace.ok_or_else(Refusal::invalid_api_key)?;
            }
        }
        match &self.deployment {
            Some(deployment) => deployment.admit(&caller.workspace, &self.snapshot),
            None => Ok(()),
        }
    }

    /// Tells the audit trail of the organisation, later and elsewhere, and the client at once.
    fn reject(
        &self,
        refused: RefusedToken,
        text: &[u8],
        head: &RequestHeader,
        peer: Option<IpAddr>,
        visit: &Visit,
    ) -> Refusal {
        const MAX_PATH: usize = 2048;
        let refusal = Refusal::rejected_token(&refused.rejection);
        self.tokens.trail.note(refused.organisation_id.map(|organisation_id| TokenFailure {
            organisation_id,
            rejection: refused.rejection,
            mask: shared::identity::jwt::mask(&String::from_utf8_lossy(text)),
            method: head.method.as_str().to_owned(),
            path: head.uri.path().chars().take(MAX_PATH).collect(),
            request_id: visit.id().parse().ok(),
            client_ip: peer.map(|peer| client_ip(peer, &head.headers, &self.trusted_proxies)),
        }));
        refusal
    }
}
