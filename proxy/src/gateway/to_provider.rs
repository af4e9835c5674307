//! The relay lane's way to a provider, as far as it needs the client's session: what is read of a body first, where it is
//! sent, and the lane's whole retry loop. A streamed body cannot be replayed, so that a next address or target takes the
//! place of one that was not reached, and the same call is sent again only while that is safe.

use super::client::Client;
use super::walk::over;
use super::{Ctx, Gateway, Relay, deadline};
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorType, Result, RetryType};
use pingora_proxy::Session;
use proxy::batches::BatchesRequest;
use proxy::catalog::target::Target;
use proxy::context::Visit;
use proxy::context::metrics::Outcome;
use proxy::relay::{Departed, Departure, MAX_READ_AHEAD, Passage};
use proxy::request::receive::NotReceived;
use proxy::request::refusal::Refusal;

impl Gateway {
    /// What is read of the body before its target is chosen, Pingora sends again.
    pub(super) async fn depart(&self, session: &mut Session, ctx: &mut Ctx, departure: Box<Departure>) -> Result<bool> {
        session.downstream_session.enable_retry_buffering();
        let departed =
            Box::pin(self.capabilities.relay.depart(&mut Client::new(session), &mut ctx.visit, *departure)).await;
        let is_lost = session.downstream_session.retry_buffer_truncated() && session.downstream_session.is_body_done();
        match departed {
            Ok(Departed::Answered(delivered)) => over(delivered),
            // It ended while its model was looked for, and is longer than what can be sent again.
            Ok(_) if is_lost => {
                let why = format!("it does not stand in the first {MAX_READ_AHEAD} bytes of the body");
                self.refuse(session, ctx, &Refusal::unknown_model(&why)).await
            }
            Ok(Departed::Passage(passage)) => {
                ctx.relay = Some(Relay::Provider(passage));
                Ok(false)
            }
            Ok(Departed::Batch { caller, body }) => {
                self.batches(session, ctx, &BatchesRequest::creation(*caller, body)).await
            }
            Err(NotReceived::Refused(refusal)) => self.refuse(session, ctx, &refusal).await,
            Err(NotReceived::Gone) => Err(Error::new_down(ErrorType::ConnectionClosed)),
        }
    }

    /// The address of the passage's target, or of the first after it that has one.
    pub(super) async fn provider_peer(
        &self,
        session: &Session,
        passage: &mut Passage,
        visit: &mut Visit,
    ) -> Result<HttpPeer, Refusal> {
        let is_upgrade = session.downstream_session.is_upgrade_req();
        loop {
            if let Err(refusal) = self.capabilities.relay.admit_passage(passage, session.req_header(), visit).await {
                visit.set_aside(refusal.status, Some(refusal.code), None);
                if !self.services.router.reroute(passage, Some(&refusal), session.req_header(), visit)? {
                    return Err(refusal);
                }
                continue;
            }
            let target = &passage.target;
            let timeout = deadline::within(target.timeout, visit, is_upgrade);
            let calls = &self.services.calls;
            let mut gathered = calls.secrets.gather(target).await;
            if gathered.is_ok() {
                gathered = passage.await_credential(&calls.signing, session.req_header()).await;
            }
            let refusal = match gathered {
                Err(refusal) => refusal,
                Ok(()) => match calls.dialer.peer(&target.origin, &passage.tried, is_upgrade, timeout).await {
                    Ok(peer) => return Ok(peer),
                    Err(error) => {
                        let failed = Outcome::Failed(error.class());
                        self.services.metrics.attempt(target.provider.number, 0, failed);
                        match error.class() {
                            proxy::net::dial::Class::Blocked => Refusal::invalid_custom_host(&error),
                            _ => Refusal::upstream_unreachable(&target.provider.name, &error),
                        }
                    }
                },
            };
            let left = passage.target.provider.number;
            if !self.services.router.reroute(passage, None, session.req_header(), visit)? {
                return Err(refusal);
            }
            self.services.metrics.left(left);
        }
    }

    /// To the next address of the target, else to the next target; without either the client is told.
    pub(super) fn turn_after_failed_connect(
        &self,
        session: &Session,
        peer: &HttpPeer,
        ctx: &mut Ctx,
        error: &mut Error,
    ) {
        let Some(Relay::Provider(passage)) = &mut ctx.relay else { return };
        let class = proxy::net::dial::Class::from_error(error);
        let has_others = self.services.calls.dialer.demote(&passage.target.origin, peer, &mut passage.tried);
        if has_others && class.is_of_address() {
            return error.set_retry(true);
        }
        let failed = passage.target.clone();
        let found = self.services.router.reroute(passage, None, session.req_header(), &mut ctx.visit);
        if matches!(found, Ok(true)) {
            self.services.metrics.left(failed.provider.number);
            self.services.metrics.attempt(failed.provider.number, 0, Outcome::Failed(class));
        } else {
            ctx.refusal = Some(found.err().unwrap_or_else(|| self.relay_refusal(Some(&failed), error)));
        }
        error.set_retry(ctx.refusal.is_none());
    }

    /// Counts a failed attempt and says it to the client. Without a target it was the control plane's.
    pub(super) fn relay_refusal(&self, target: Option<&Target>, error: &Error) -> Refusal {
        let Some(target) = target else { return Refusal::control_plane_unavailable() };
        let class = proxy::net::dial::Class::from_error(error);
        self.services.metrics.attempt(target.provider.number, 0, Outcome::Failed(class));
        failed_call(target, error)
    }
}

/// Why a call to a provider failed.
pub(super) fn failed_call(target: &Target, error: &Error) -> Refusal {
    let (provider, why) = (&target.provider.name, proxy::net::dial::Class::from_error(error).label());
    match error.etype() {
        ErrorType::ReadTimedout => target.timed_out(),
        ErrorType::InvalidHTTPHeader | ErrorType::H2Error => Refusal::invalid_upstream_response(provider, why),
        _ => Refusal::upstream_unreachable(provider, why),
    }
}

/// Whether the provider has not had all of a call whose connection failed, or says that it did not work on it. A connection
/// that was used before and ends without a word was most likely closed before the call came.
pub(super) fn is_unread(error: &Error, client_reused: bool) -> bool {
    let is_unwritten = matches!(error.etype(), ErrorType::WriteError | ErrorType::WriteTimedout);
    let was_closed = client_reused && matches!(error.retry, RetryType::ReusedOnly);
    is_unwritten || was_closed || proxy::net::dial::is_unprocessed(error)
}

/// Whether a call whose connection failed is sent again: only if the provider cannot have worked on it, or may work on it
/// twice, and all of it is still here.
pub(super) fn is_repeatable(session: &Session, error: &Error, client_reused: bool) -> bool {
    let is_idempotent = session.req_header().method.is_idempotent();
    let is_wished = match error.retry {
        RetryType::ReusedOnly => client_reused && is_idempotent,
        RetryType::Decided(is_wished) => is_wished && (is_idempotent || proxy::net::dial::is_unprocessed(error)),
    };
    is_wished && !session.as_downstream().retry_buffer_truncated()
}
