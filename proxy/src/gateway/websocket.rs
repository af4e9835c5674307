//! A websocket's bytes on their way, both directions: what they say is heard, and a session that may not go on is ended.

use super::{Ctx, Gateway, Relay};
use bytes::Bytes;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::RequestHeader;

impl Gateway {
    /// An error ends the session before what the client sent has passed as a whole.
    pub(super) async fn client_says(
        &self,
        head: &RequestHeader,
        piece: &[u8],
        is_last: bool,
        ctx: &mut Ctx,
    ) -> Result<()> {
        let Some(websocket) = &mut ctx.visit.answer.websocket else { return Ok(()) };
        let mut log = ctx.visit.observer.log.as_mut();
        let wanted = websocket.client_sends(piece, |text| {
            if let Some(log) = &mut log {
                log.hears(text);
            }
        });
        if is_last {
            websocket.client_ends();
            return Ok(());
        }
        let is_refused = websocket.is_refused();
        let admitted = match &mut ctx.relay {
            Some(Relay::Provider(passage)) if !is_refused => {
                self.capabilities.relay.admit_message(passage, head, &mut ctx.visit, wanted).await
            }
            _ => Ok(()),
        };
        if let (Err(refusal), Some(websocket)) = (&admitted, &mut ctx.visit.answer.websocket) {
            self.services.metrics.refused(refusal.code);
            websocket.refuse(refusal);
        }
        match admitted.is_err() || is_refused {
            true => Err(Error::explain(ErrorType::InternalError, "the session may not go on")),
            false => Ok(()),
        }
    }

    /// True when the client has been told that the session is over.
    pub(super) fn provider_says(
        &self,
        head: &RequestHeader,
        body: &mut Option<Bytes>,
        is_last: bool,
        ctx: &mut Ctx,
    ) -> bool {
        let Some(websocket) = &mut ctx.visit.answer.websocket else { return false };
        let mut log = ctx.visit.observer.log.as_mut();
        let events = websocket.provider_sends(body.as_deref().unwrap_or_default(), |text| {
            if let Some(log) = &mut log {
                log.says(text);
            }
        });
        let heard = match &mut ctx.relay {
            Some(Relay::Provider(passage)) => self.capabilities.relay.hear(passage, head, &mut ctx.visit, events),
            _ => Ok(()),
        };
        let Some(websocket) = &mut ctx.visit.answer.websocket else { return false };
        // Of a session that is ending only what it uses counts.
        if let (Err(refusal), false) = (heard, websocket.is_refused()) {
            self.services.metrics.refused(refusal.code);
            websocket.refuse(&refusal);
        }
        websocket.pass(body, is_last)
    }
}
