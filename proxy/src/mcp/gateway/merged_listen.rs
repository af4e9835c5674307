//! The stream of a merged server, over which a client hears that its lists changed: a server came or went, something of one
//! was switched off or approved, or a sync found something else. What servers say over streams of their own is heard at
//! their own addresses alone.

use super::McpGateway;
use super::answers::{HEARTBEAT, gone, stream_head};
use super::merged::MergedRequest;
use super::stream::event_of;
use crate::context::{Heartbeats, Visit};
use crate::engine::Delivered;
use crate::engine::answer::with_heartbeats;
use crate::mcp::McpTarget;
use crate::net::downstream::Downstream;
use bytes::Bytes;
use std::pin::pin;

const CHANGED: [&[u8]; 3] = [
    br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    br#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#,
    br#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#,
];

impl McpGateway {
    pub(super) async fn listen_merged(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &MergedRequest,
    ) -> Delivered {
        visit.observer.log = None;
        visit.answer.pulse = Heartbeats { every: Some(HEARTBEAT), has_begun: true };
        let head = stream_head(visit, &[]);
        if client.write_head(head).await.is_err() {
            return gone(visit);
        }
        let mut progress = self.snapshot.subscribe();
        let mut version = progress.borrow_and_update().version;
        // Asked again: it may have changed since the request came.
        let mut known = self.merged_targets(&asked.caller, asked.user);
        let mut is_news = !is_same(&asked.targets, &known);
        let mut revoked = pin!(self.until_merged_revoked(asked));
        loop {
            if is_news {
                let events: Vec<Bytes> = CHANGED.iter().map(|message| event_of(message)).collect();
                if client.write_body(Bytes::from(events.concat()), false).await.is_err() {
                    return gone(visit);
                }
            }
            let seen = version;
            let next = async { progress.wait_for(|now| now.version != seen).await.map(|now| now.version) };
            let next = pin!(async {
                tokio::select! {
                    () = &mut revoked => None,
                    next = tokio::time::timeout(self.stream_idle, next) => next.ok()?.ok(),
                }
            });
            version = match with_heartbeats(client, visit, next).await {
                Err(_) => return gone(visit),
                Ok(Some(version)) => version,
                // Its caller may not listen any more, nothing changed for long, or nothing ever will.
                Ok(None) => break,
            };
            let now = self.merged_targets(&asked.caller, asked.user);
            is_news = !is_same(&known, &now);
            known = now;
        }
        match client.write_body(Bytes::new(), true).await {
            Ok(()) => Delivered::Answered,
            Err(_) => gone(visit),
        }
    }
}

fn is_same(before: &[McpTarget], now: &[McpTarget]) -> bool {
    let is_same = |(before, now): (&McpTarget, &McpTarget)| {
        let id = |target: &McpTarget| (target.server.id, target.integration.id, target.integration.url.clone());
        before.server.slug == now.server.slug && id(before) == id(now) && before.visible.is_same(&now.visible)
    };
    before.len() == now.len() && before.iter().zip(now).all(is_same)
}
