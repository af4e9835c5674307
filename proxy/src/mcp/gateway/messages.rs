//! Every message of a server, whichever way it comes: as a body, over the stream of a request, over a stream that is only
//! listened to, or over the connection of an older session. It is read strictly and judged before a client has it; what
//! cannot be is withheld. The stream of a request carries its answer, notifications and requests of the server; an answer to
//! anything else has no business there.

use super::McpGateway;
use super::McpRequest;
use super::answers::CallFailure;
use super::stream::EventPass;
use crate::context::Visit;
use crate::mcp::{
    Asked, BadMessage, ClientMessage, MessageKind, Outcome, ServerMessage, check_message, filtered, filtered_greeting,
    instructions_of, read_messages, without_instructions,
};
use crate::runtime::heavy::{SMALL, heavy};
use bytes::Bytes;
use shared::telemetry::LogLimit;

/// What becomes of a message.
pub(super) enum Looked {
    Same,
    Changed(Bytes),
    Withheld,
}

impl From<Option<Bytes>> for Looked {
    fn from(changed: Option<Bytes>) -> Self {
        changed.map_or(Self::Same, Self::Changed)
    }
}

impl McpGateway {
    /// The messages of a body or an event as they may be passed on, and whether the awaited answer is among them.
    pub(super) async fn look_at_data(
        &self,
        visit: &mut Visit,
        asked: &McpRequest,
        pass: &EventPass<'_>,
        data: &[u8],
    ) -> Result<(Looked, Outcome), CallFailure> {
        let read = match self.check_data(asked, data).await {
            Ok(()) => read_messages(data),
            Err(why) => Err(why),
        };
        let read = match read {
            Ok(read) => read,
            Err(why) => {
                warn_withheld(asked, &why);
                // It could be what the client waits for.
                return match pass.awaited() {
                    Some(_) => Err(CallFailure::unusable(why)),
                    None => Ok((Looked::Withheld, Outcome::NotYet)),
                };
            }
        };
        let (mut outcome, mut is_changed) = (Outcome::NotYet, false);
        let mut passed: Vec<Bytes> = Vec::new();
        for message in &read.messages {
            let awaited = pass.awaited().filter(|_| outcome == Outcome::NotYet);
            let (looked, became) = self.look_at_message(visit, asked, pass, awaited, message).await?;
            if became != Outcome::NotYet {
                outcome = became;
            }
            is_changed |= !matches!(looked, Looked::Same);
            match looked {
                Looked::Same => passed.push(Bytes::copy_from_slice(message.text.as_bytes())),
                Looked::Changed(other) => passed.push(other),
                Looked::Withheld => {}
            }
        }
        let looked = match (is_changed, passed.len(), read.is_batch) {
            (false, _, _) => Looked::Same,
            (true, 0, _) => Looked::Withheld,
            (true, _, false) => Looked::Changed(passed.remove(0)),
            (true, _, true) => Looked::Changed([b"[", &passed.join(&b","[..])[..], b"]"].concat().into()),
        };
        Ok((looked, outcome))
    }

    async fn check_data(&self, asked: &McpRequest, data: &[u8]) -> Result<(), BadMessage> {
        if data.len() <= SMALL {
            return check_message(data);
        }
        let held = Bytes::copy_from_slice(data);
        heavy(asked.caller.tenant(), move || check_message(&held)).await.unwrap_or(Err(BadMessage::NoMessage))
    }

    async fn look_at_message(
        &self,
        visit: &mut Visit,
        asked: &McpRequest,
        pass: &EventPass<'_>,
        awaited: Option<(&ClientMessage, &str)>,
        message: &ServerMessage<'_>,
    ) -> Result<(Looked, Outcome), CallFailure> {
        let outcome = awaited.map_or(Outcome::NotYet, |(_, id)| message.outcome(id));
        let looked = match (message.kind, awaited) {
            (MessageKind::Answer, Some((request, _))) if outcome != Outcome::NotYet => {
                let looked = self.pass_answer(visit, asked, request, message.text.as_bytes()).await?;
                return Ok((looked, outcome));
            }
            (MessageKind::Answer, _) if pass.answers.is_some() => Looked::Withheld,
            // Over a stream that is only listened to: an answer to a request whose own stream broke.
            (MessageKind::Answer, _) => self.pass_late_answer(visit, asked, message.text.as_bytes()).await,
            (MessageKind::Request | MessageKind::Notification, _) => {
                match (self.guard_server_message(visit, asked, message.text.as_bytes()).await, message.kind) {
                    (Ok(changed), _) => changed.into(),
                    // The server waits for what the client is not asked: the call would hang.
                    (Err(failure), MessageKind::Request) if awaited.is_some() => return Err(failure),
                    (Err(_), _) => Looked::Withheld,
                }
            }
        };
        Ok((looked, Outcome::NotYet))
    }

    /// The answer to a request as the client may have it.
    async fn pass_answer(
        &self,
        visit: &mut Visit,
        asked: &McpRequest,
        request: &ClientMessage,
        answer: &[u8],
    ) -> Result<Looked, CallFailure> {
        let visible = &asked.target.visible;
        match &request.asked {
            Asked::List(kind) => {
                let list = filtered(Some(*kind), answer, visible).map_err(CallFailure::unusable)?;
                self.report_changes(&asked.target);
                Ok(list.into())
            }
            Asked::Initialize => {
                let greeting = filtered_greeting(answer, visible).map_err(CallFailure::unusable)?;
                self.report_changes(&asked.target);
                // Of a greeting only these are words for a model, and a session can do without.
                if let Some(instructions) = instructions_of(greeting.as_deref().unwrap_or(answer))
                    && !matches!(self.guard_server_message(visit, asked, &instructions).await, Ok(None))
                {
                    return Ok(Looked::Changed(without_instructions(answer).map_err(CallFailure::unusable)?));
                }
                Ok(greeting.into())
            }
            _ => Ok(self.guard_server_message(visit, asked, answer).await?.into()),
        }
    }

    /// Nobody says what it answers: so it may be a list, and is judged as any other answer as well.
    async fn pass_late_answer(&self, visit: &mut Visit, asked: &McpRequest, answer: &[u8]) -> Looked {
        let visible = &asked.target.visible;
        let list = filtered(None, answer, visible);
        let list = list.and_then(|list| match filtered_greeting(list.as_deref().unwrap_or(answer), visible)? {
            Some(greeting) => Ok(Some(greeting)),
            None => Ok(list),
        });
        self.report_changes(&asked.target);
        let Ok(list) = list else { return Looked::Withheld };
        match self.guard_server_message(visit, asked, list.as_deref().unwrap_or(answer)).await {
            Ok(None) => list.into(),
            Ok(changed) => changed.into(),
            Err(_) => Looked::Withheld,
        }
    }
}

fn warn_withheld(asked: &McpRequest, why: &BadMessage) {
    static WITHHELD: LogLimit = LogLimit::new();
    if let Some(skipped) = WITHHELD.pass() {
        let integration = &asked.target.integration.slug;
        tracing::warn!(integration, skipped, %why, "a message of an MCP server is withheld");
    }
}
