//! What a client posts: its body within bounds, and the messages in it.

use super::McpGateway;
use super::answers::CallFailure;
use crate::context::Visit;
use crate::engine::{Delivered, refuse};
use crate::mcp::{ClientMessage, Fault, Incoming, MAX_MESSAGE, parse};
use crate::net::downstream::Downstream;
use crate::request::receive::{NotReceived, ReceivedBody, check_content_type, receive};
use crate::runtime::tenant_share::Tenant;
use http::{HeaderMap, header};

/// Messages, and the body that they are parts of: it counts towards the memory of bodies for as long as it is held.
pub(super) struct Received<'m, T> {
    pub content: T,
    _body: ReceivedBody<'m>,
}

impl McpGateway {
    /// The error is what the client was told, or that it has gone. `may_batch` says it of the head of the request.
    pub(super) async fn receive_messages(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        tenant: Tenant,
        may_batch: fn(&HeaderMap) -> Result<bool, Fault>,
    ) -> Result<Received<'_, Incoming>, Delivered> {
        if let Err(refusal) = check_content_type(client.head().headers.get(header::CONTENT_TYPE)) {
            return Err(refuse(&self.metrics, client, visit, &refusal).await);
        }
        let body = match receive(client, &self.body_limits.bounds(MAX_MESSAGE, tenant)).await {
            Ok(body) => body,
            Err(NotReceived::Gone) => return Err(Delivered::ClientGone),
            Err(NotReceived::Refused(refusal)) => return Err(refuse(&self.metrics, client, visit, &refusal).await),
        };
        let incoming = may_batch(&client.head().headers).and_then(|may_batch| parse(&body.bytes, may_batch));
        match incoming {
            Ok(content) => {
                visit.request.parsed_after = Some(visit.request.started.elapsed());
                Ok(Received { content, _body: body })
            }
            Err(fault) => {
                visit.observer.log = None;
                Err(self.tell_failure(client, visit, None, &CallFailure::malformed(fault)).await)
            }
        }
    }

    /// The same where there are no batches.
    pub(super) async fn receive_message(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        tenant: Tenant,
    ) -> Result<Received<'_, ClientMessage>, Delivered> {
        let Received { mut content, _body } = self.receive_messages(client, visit, tenant, |_| Ok(false)).await?;
        Ok(Received { content: content.messages.remove(0), _body })
    }
}
