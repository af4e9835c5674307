//! A prompt and what a call says → the body that a model is asked with. Prompts that only name variables are written as
//! text (`skeleton`). Templates and values are strangers', so most others are filled in at once within a small budget,
//! and whatever needs more is done where no other request waits.

use super::find::{PromptRun, partials};
use super::skeleton;
use crate::request::receive::OwnedShare;
use crate::request::refusal::Refusal;
use crate::runtime::heavy::heavy;
use crate::snapshot::{ReadyVersion, Snapshot};
use bytes::Bytes;
use serde_json::{Map, Value};
use shared::prompt::template::RenderBudget;
use shared::prompt::{PartialSet, RenderError, RenderRequest, render_within};
use shared::providers::Family;
use std::sync::Arc;

/// Larger bodies are read elsewhere.
const SMALL: usize = 32 << 10;

/// What a prompt became.
#[derive(Debug)]
pub struct RenderedPrompt {
    /// Chat or completions.
    pub family: Family,
    pub body: Bytes,
}

impl RenderedPrompt {
    /// By what the body has; none if it is neither.
    fn new(has: impl Fn(&str) -> bool, body: Vec<u8>) -> Option<Self> {
        let family = match () {
            () if has("messages") => Family::Chat,
            () if has("prompt") => Family::Complete,
            () => return None,
        };
        Some(Self { family, body: body.into() })
    }
}

/// What a prompt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptUse {
    /// The call asks for it: what its body says beside variables wins over the prompt.
    Call,
    /// A config puts it in place of what was asked: of the body's model and texts the prompt's win.
    Target,
}

enum NotRendered {
    Refused(Refusal),
    /// It needs more than was allowed.
    Spent,
}

impl From<RenderError> for NotRendered {
    fn from(error: RenderError) -> Self {
        if error.is_spent() { Self::Spent } else { Self::Refused(Refusal::invalid_prompt(error)) }
    }
}

/// What becomes of a prompt that only names variables, without a tree of anything; none where one is needed, also to say
/// what is wrong.
pub fn write(version: &ReadyVersion, sent: &[u8], purpose: PromptUse) -> Option<RenderedPrompt> {
    let skeleton = version.skeleton.as_ref().filter(|_| sent.len() <= SMALL)?;
    let call = skeleton::read_call(sent, |name| purpose.is_dropped(name, version))?;
    let body = skeleton.write(&call)?;
    let has = |name: &str| skeleton.has(name) || call.overrides.iter().any(|field| field.name == name);
    RenderedPrompt::new(has, body)
}

/// What becomes of any prompt.
pub async fn render(
    snapshot: &Snapshot,
    run: &PromptRun,
    sent: &Bytes,
    purpose: PromptUse,
    mut room: OwnedShare,
) -> Result<RenderedPrompt, Refusal> {
    let partials = partials(snapshot, run).await?;
    if sent.len() <= SMALL {
        match rendered(&mut RenderBudget::small(), &run.version, sent, &partials, purpose) {
            Ok(rendered) => return Ok(rendered),
            Err(NotRendered::Refused(refusal)) => return Err(refusal),
            Err(NotRendered::Spent) => {}
        }
    }
    // It goes on when the client leaves, and so does what it takes.
    room.grow(memory_of(sent))?;
    let (version, sent, tenant) = (Arc::clone(&run.version), sent.clone(), room.tenant());
    let job = move || (rendered(&mut RenderBudget::default(), &version, &sent, &partials, purpose), room);
    match heavy(tenant, job).await.map(|(rendered, _)| rendered) {
        Some(Ok(rendered)) => Ok(rendered),
        Some(Err(NotRendered::Refused(refusal))) => Err(refusal),
        Some(Err(NotRendered::Spent)) => Err(Refusal::prompt_too_large()),
        None => Err(Refusal::internal()),
    }
}

/// The values as a tree, and what they may become.
fn memory_of(sent: &[u8]) -> usize {
    const MAX_OUTPUT: usize = 4 << 20;
    sent.len().saturating_mul(4).saturating_add(MAX_OUTPUT)
}

fn rendered(
    budget: &mut RenderBudget,
    version: &ReadyVersion,
    sent: &[u8],
    partials: &PartialSet,
    purpose: PromptUse,
) -> Result<RenderedPrompt, NotRendered> {
    let request = request(version, sent, purpose)?;
    let data = render_within(budget, &version.parts(), request, partials)?;
    let body = serde_json::to_vec(&data).map_err(|_| NotRendered::Refused(Refusal::internal()))?;
    Ok(RenderedPrompt::new(|name| data.contains_key(name), body).ok_or(RenderError::NotJson)?)
}

impl PromptUse {
    /// Whether a field of the call's body is none of the request's.
    fn is_dropped(self, name: &str, version: &ReadyVersion) -> bool {
        match (self, name) {
            (Self::Target, "messages" | "prompt") => true,
            (Self::Target, "model") => version.row.model.is_some(),
            (Self::Target | Self::Call, _) => false,
        }
    }
}

/// What the call says: its variables, and what wins over the version.
fn request(version: &ReadyVersion, sent: &[u8], purpose: PromptUse) -> Result<RenderRequest, NotRendered> {
    let mut body: Map<String, Value> = match sent.trim_ascii().is_empty() {
        true => Map::new(),
        false => serde_json::from_slice(sent).map_err(|error| NotRendered::Refused(Refusal::invalid_json(error)))?,
    };
    body.retain(|name, _| !purpose.is_dropped(name, version));
    Ok(RenderRequest::parse(body)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use uuid::Uuid;

    fn version(template: Value, more: Value) -> ReadyVersion {
        let template = template.as_str().map_or_else(|| template.to_string(), str::to_owned);
        let mut row = json!({
            "id": Uuid::from_u128(1), "organisation_id": Uuid::from_u128(2), "prompt_id": Uuid::from_u128(3), "number": 1,
            "template": template, "parameters": { "temperature": 0.5, "word": "hi" }, "model": "m", "virtual_key": "main",
            "is_raw": false,
        });
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(row).unwrap()
    }

    fn body(version: &ReadyVersion, sent: Value, purpose: PromptUse) -> (Family, Value) {
        let sent = sent.to_string();
        let partials = PartialSet::default();
        match rendered(&mut RenderBudget::small(), version, sent.as_bytes(), &partials, purpose) {
            Ok(rendered) => {
                let read = |rendered: RenderedPrompt| {
                    (rendered.family, serde_json::from_slice::<Value>(&rendered.body).unwrap())
                };
                let same = write(version, sent.as_bytes(), purpose).map(read);
                let rendered = read(rendered);
                assert_eq!(same.as_ref(), Some(&rendered), "a skeleton says the same");
                rendered
            }
            Err(NotRendered::Refused(refusal)) => panic!("{}", refusal.message),
            Err(NotRendered::Spent) => panic!("spent"),
        }
    }

    #[test]
    fn messages_are_a_chat_and_a_text_is_a_completion() {
        let chat = version(json!([{ "role": "user", "content": "Say {{word}}" }]), json!({}));
        let (family, rendered) = body(&chat, json!({ "variables": { "word": "no" }, "top_p": 1 }), PromptUse::Call);
        assert_eq!(family, Family::Chat);
        let expected = json!({
            "temperature": 0.5, "model": "m", "messages": [{ "role": "user", "content": "Say no" }], "top_p": 1,
        });
        assert_eq!(rendered, expected);
        let (family, rendered) = body(&version("Say {{word}}".into(), json!({})), json!({}), PromptUse::Call);
        assert_eq!((family, &rendered["prompt"]), (Family::Complete, &json!("Say hi")));
    }

    #[test]
    fn at_a_target_the_prompts_model_and_texts_win_over_the_calls() {
        let chat = version(json!([{ "role": "user", "content": "Say {{word}}" }]), json!({}));
        let sent = json!({ "model": "other", "messages": [{ "role": "user", "content": "x" }], "temperature": 1 });
        let (_, rendered) = body(&chat, sent.clone(), PromptUse::Target);
        assert_eq!((&rendered["model"], &rendered["temperature"]), (&json!("m"), &json!(1)));
        assert_eq!(rendered["messages"][0]["content"], "Say hi");
        let (_, rendered) = body(&chat, sent.clone(), PromptUse::Call);
        assert_eq!((&rendered["model"], &rendered["messages"][0]["content"]), (&json!("other"), &json!("x")));
        let modelless = version(json!([{ "role": "user", "content": "x" }]), json!({ "model": null }));
        assert_eq!(body(&modelless, sent, PromptUse::Target).1["model"], "other");
    }

    #[test]
    fn what_needs_more_than_a_moment_is_told_from_what_is_wrong() {
        let deep = version("{{#a}}{{#a}}{{#a}}x{{/a}}{{/a}}{{/a}}".into(), json!({}));
        let many = json!({ "variables": { "a": vec![1; 60] } }).to_string();
        let try_it = |budget: &mut RenderBudget, sent: &str| {
            rendered(budget, &deep, sent.as_bytes(), &PartialSet::default(), PromptUse::Call).map(drop)
        };
        assert!(matches!(try_it(&mut RenderBudget::small(), &many), Err(NotRendered::Spent)));
        assert!(matches!(try_it(&mut RenderBudget::small(), r#"{"variables":1}"#), Err(NotRendered::Refused(_))));
        assert!(matches!(
            try_it(&mut RenderBudget::small(), r#"{"hyperparameters":{}}"#),
            Err(NotRendered::Refused(_))
        ));
        assert!(matches!(try_it(&mut RenderBudget::small(), "[]"), Err(NotRendered::Refused(_))));
    }
}
