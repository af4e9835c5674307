//! Tokens of other issuers, where an integration wants them (`jwt_validation`): each message needs one that holds, besides
//! what opens the gateway itself. Why one does not is told in general words.

use super::McpGateway;
use super::McpRequest;
use super::answers::CallFailure;
use crate::mcp::OwnCredentials;
use chrono::Utc;
use http::HeaderMap;
use serde_json::{Map, Value};
use shared::guardrails::remote::{RemoteCheck, RemoteContext};
use shared::guardrails::{Hook, Scope, Shape, Subject, Verdict};
use shared::mcp::TokenRules;
use shared::telemetry::{Brief, LogLimit};
use std::time::Instant;

impl McpGateway {
    /// `own`: what the issuer may not be told.
    pub(super) async fn verify_token(
        &self,
        rules: &Value,
        headers: &HeaderMap,
        own: &OwnCredentials<'_>,
        asked: &McpRequest,
    ) -> Result<(), CallFailure> {
        let rules = TokenRules::parse(rules).map_err(|fault| {
            static UNUSABLE: LogLimit = LogLimit::new();
            if let Some(skipped) = UNUSABLE.pass() {
                let (integration, fault) = (&asked.target.integration.slug, Brief(fault));
                tracing::warn!(integration, %fault, skipped, "tokens cannot be verified");
            }
            CallFailure::bad_token("this MCP server's rules for tokens cannot be used")
        })?;
        if rules.asks_issuer && headers.get(&rules.header).is_some_and(|sent| own.are_in(sent)) {
            let why = "the token is what opens the gateway, and nobody else is told it";
            return Err(CallFailure::bad_token(why));
        }
        let (request, metadata) = (Value::Null, Map::new());
        let subject = Subject {
            hook: Hook::BeforeRequest,
            shape: Shape::Other,
            request_type: "",
            request: &request,
            response: None,
            metadata: &metadata,
            headers,
            now: Utc::now().timestamp(),
            text: None,
            is_growing: false,
            scope: Scope::Judged,
        };
        let verdict = match rules.check.remote() {
            None => rules.check.run(&subject),
            Some(remote) => self.ask_about_token(remote, &subject, asked).await,
        };
        match verdict {
            Verdict { verdict: true, error: None, .. } => Ok(()),
            Verdict { error: Some(_), .. } => {
                Err(CallFailure::bad_token("the token cannot be verified now: its issuer does not answer as it should"))
            }
            Verdict { data, .. } => {
                Err(CallFailure::bad_token(data.value()["explanation"].as_str().unwrap_or("not admitted")))
            }
        }
    }

    async fn ask_about_token(&self, check: &dyn RemoteCheck, subject: &Subject<'_>, asked: &McpRequest) -> Verdict {
        let unasked = || Verdict::error("NotAsked", "nobody can be asked");
        let Some(asker) = &self.router.guards.asker else { return unasked() };
        let question = match check.ask(subject, &RemoteContext::default()) {
            Ok(question) => question,
            Err(verdict) => return *verdict,
        };
        let workspace = &asked.caller.workspace;
        let deadline = Instant::now() + check.timeout();
        match asker.ask(workspace.organisation_id, workspace.id, question, deadline).await {
            Ok(answers) => check.read(subject, &answers),
            Err(_) => unasked(),
        }
    }
}
