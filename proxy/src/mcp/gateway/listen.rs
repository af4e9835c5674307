//! Streams that a client listens to between calls, and the end of sessions.

use super::McpGateway;
use super::McpRequest;
use super::answers::{CallFailure, HEARTBEAT, gone, write_whole};
use super::stream::EventPass;
use super::upstream::ServerAnswer;
use crate::context::{Heartbeats, Visit};
use crate::engine::Delivered;
use crate::engine::answer::with_heartbeats;
use crate::mcp::{Fault, UPSTREAM_FAILED, UpstreamCall};
use crate::net::downstream::Downstream;
use bytes::Bytes;
use http::Method;
use std::pin::pin;

impl McpGateway {
    pub(super) async fn listen(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &McpRequest,
        session: Option<&[u8]>,
    ) -> Delivered {
        let opening = session.map(|session| self.opening.begin(asked.target.server.id, session));
        let answer = match self.ask_without_body(client, visit, asked, session, Method::GET).await {
            Ok(answer) => answer,
            Err(delivered) => return delivered,
        };
        drop(opening);
        match answer {
            ServerAnswer::Events(upstream) => {
                visit.answer.pulse = Heartbeats { every: Some(HEARTBEAT), has_begun: true };
                let pass = EventPass::for_listener();
                self.pass_events(client, visit, asked, upstream, pass, &[]).await
            }
            ServerAnswer::Accepted(_) | ServerAnswer::Json(_) => {
                let fault = Fault::new(UPSTREAM_FAILED, "the MCP server has no stream to listen to");
                self.tell_failure(client, visit, None, &CallFailure::passed_on(405, fault)).await
            }
        }
    }

    pub(super) async fn end_session(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &McpRequest,
        session: Option<&[u8]>,
    ) -> Delivered {
        match self.ask_without_body(client, visit, asked, session, Method::DELETE).await {
            Ok(answer) => {
                let (ServerAnswer::Accepted(upstream) | ServerAnswer::Json(upstream) | ServerAnswer::Events(upstream)) =
                    answer;
                upstream.release();
                write_whole(client, visit, [200, 200], &[], Bytes::new()).await
            }
            Err(delivered) => delivered,
        }
    }

    /// Neither is a call: it is not logged, and no limit counts it.
    async fn ask_without_body(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &McpRequest,
        session: Option<&[u8]>,
        method: Method,
    ) -> Result<ServerAnswer, Delivered> {
        visit.observer.log = None;
        let ready = match self.endpoint(asked) {
            Ok(endpoint) => self.mcp_headers(client.head(), asked).await.map(|own| (endpoint, own)),
            Err(failure) => Err(failure),
        };
        let (endpoint, own) = match ready {
            Ok(ready) => ready,
            Err(failure) => return Err(self.tell_failure(client, visit, None, &failure).await),
        };
        let call = UpstreamCall::new(method, &client.head().headers, session, &own, Bytes::new())
            .within(self.call_timeout, self.stream_idle);
        let answer = pin!(self.ask_server(asked, &endpoint, &call, false));
        match with_heartbeats(client, visit, answer).await {
            Err(_) => Err(gone(visit)),
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(failure)) => Err(self.tell_failure(client, visit, None, &failure).await),
        }
    }
}
