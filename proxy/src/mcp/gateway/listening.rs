//! How long a stream that is only listened to may go on. Such a stream outlives its authentication: meanwhile its key may be
//! revoked, its person removed, its server taken away or restricted; and a draining process would wait for it. So its caller is
//! identified again every 15 seconds, and a drain ends it. It ends as streams do, and the client opens it again.

use super::McpGateway;
use super::McpRequest;
use super::merged::MergedRequest;
use crate::identity::identify::Principal;
use crate::mcp::{INVOKE, McpTarget, person};
use crate::request::headers::GatewayHeaders;
use http::HeaderMap;
use shared::model::id::UserId;
use std::future::pending;
use std::time::Duration;
use tokio::sync::watch;

const IDENTIFIED_EVERY: Duration = Duration::from_secs(15);

/// Announces to streams without an end of their own that this process drains.
#[derive(Debug)]
pub struct DrainNotice(watch::Sender<bool>);

impl Default for DrainNotice {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl DrainNotice {
    pub fn announce(&self) {
        self.0.send_replace(true);
    }

    async fn announced(&self) {
        // It fails only without a sender, and `self` is one.
        let _ = self.0.subscribe().wait_for(|is_announced| *is_announced).await;
    }
}

impl McpGateway {
    /// Resolves when a listener of one server must end; never for a stream that an answer ends.
    pub(super) async fn until_revoked(&self, asked: &McpRequest, is_listener: bool) {
        if !is_listener {
            return pending().await;
        }
        self.until_refused(|| {
            let caller = self.identify_listener(&asked.caller, asked.user, &asked.headers.0);
            caller.is_some_and(|caller| {
                let target = McpTarget::find(&self.snapshot, &caller, asked.user, &asked.target.server.slug);
                target.is_some_and(|target| target.is_same(&asked.target))
            })
        })
        .await;
    }

    /// The same for the merged server, which compares its servers by itself.
    pub(super) async fn until_merged_revoked(&self, asked: &MergedRequest) {
        self.until_refused(|| self.identify_listener(&asked.caller, asked.user, &asked.headers.0).is_some()).await;
    }

    async fn until_refused(&self, may_go_on: impl Fn() -> bool) {
        loop {
            tokio::select! {
                () = self.drain.announced() => return,
                () = tokio::time::sleep(IDENTIFIED_EVERY) => {}
            }
            if !may_go_on() {
                return;
            }
        }
    }

    /// The caller by the present snapshot; none when it may not listen any more, or is another person or workspace now.
    fn identify_listener(&self, caller: &Principal, user: Option<UserId>, headers: &HeaderMap) -> Option<Principal> {
        let headers = GatewayHeaders::from_headers(headers, &self.aliases).ok()?;
        let mut now = caller.clone();
        self.authenticator.identify_again(&mut now, &headers, &[INVOKE]).ok()?;
        (now.workspace.id == caller.workspace.id && person(&self.snapshot, &now) == user).then_some(now)
    }
}
