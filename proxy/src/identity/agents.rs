//! What coding agents and chat applications say of a call without being asked: which of them it is, its session, its person
//! (`AGENT_METADATA`). They send these in headers and fields of their own, which a table names.
//!
//! Whoever holds a key can send any of them, as it can send metadata: they tell calls of one key apart and give nobody
//! anything. They are the weakest metadata; limits with `trusted_metadata` do not look at them; and a person who must not be
//! forged belongs to the key or the workspace, whose metadata wins.

use crate::request::body::Fields;
use crate::request::text_bounds::cut;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

pub const SESSION: &str = "_session";
pub const AGENT: &str = "_agent";
pub const USER: &str = "_user";

/// As of other values of metadata.
const MAX_VALUE: usize = 128;

const CLAUDE_CODE: &str = "claude-code";

#[derive(Debug)]
struct Agent {
    name: &'static str,
    /// How its product begins in `user-agent` or `originator`, whatever the case.
    product: &'static str,
    /// Headers with its session, the first that is there.
    sessions: &'static [&'static str],
    /// The same with its person.
    people: &'static [&'static str],
    /// Whether its headers are named after it, so that each of them tells who it is.
    is_named_by_headers: bool,
}

const fn agent(name: &'static str, product: &'static str) -> Agent {
    Agent { name, product, sessions: &[], people: &[], is_named_by_headers: false }
}

static AGENTS: &[Agent] = &[
    Agent { sessions: &["x-claude-code-session-id"], is_named_by_headers: true, ..agent(CLAUDE_CODE, "claude-cli/") },
    // Its headers could be anybody's.
    Agent { sessions: &["session_id", "session-id", "conversation_id"], ..agent("codex", "codex") },
    agent("gemini-cli", "GeminiCLI"),
    Agent {
        sessions: &["x-openwebui-chat-id"],
        people: &["x-openwebui-user-email", "x-openwebui-user-id"],
        is_named_by_headers: true,
        ..agent("open-webui", "Open WebUI")
    },
    // The first goes to its maker's own service.
    Agent { sessions: &["x-opencode-session", "x-session-id"], ..agent("opencode", "opencode/") },
    agent("qwen-code", "QwenCode/"),
];

/// Headers that name a product.
const PRODUCTS: [&str; 2] = ["user-agent", "originator"];

/// What the headers of a call say.
pub fn from_headers(head: &HeaderMap) -> Map<String, Value> {
    let mut found = Map::new();
    let Some(agent) = sender(head) else { return found };
    found.insert(AGENT.into(), agent.name.into());
    for (name, headers) in [(SESSION, agent.sessions), (USER, agent.people)] {
        if let Some(text) = headers.iter().find_map(|header| text_of(head, header)) {
            found.insert(name.into(), cut(text, MAX_VALUE).into());
        }
    }
    found
}

fn sender(head: &HeaderMap) -> Option<&'static Agent> {
    let products = PRODUCTS.map(|header| text_of(head, header).unwrap_or_default());
    let is_product = |agent: &&Agent| products.iter().any(|product| begins_with(product, agent.product));
    let has_own_header = |agent: &&Agent| {
        let mut headers = agent.sessions.iter().chain(agent.people);
        agent.is_named_by_headers && headers.any(|header| head.contains_key(*header))
    };
    AGENTS.iter().find(is_product).or_else(|| AGENTS.iter().find(has_own_header))
}

fn text_of<'h>(head: &'h HeaderMap, header: &str) -> Option<&'h str> {
    head.get(header)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
}

fn begins_with(text: &str, beginning: &str) -> bool {
    text.get(..beginning.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(beginning))
}

/// What `metadata.user_id` of a messages request says, where nobody has said it: a person, or from Claude Code a session and, of
/// who is signed in there, the account.
pub fn add_from_message(metadata: &mut Map<String, Value>, fields: &Fields<'_>) {
    if fields.get("metadata").is_none() {
        return;
    }
    let found = fields.compare("metadata", |sent| sent?.get("user_id")?.as_str().map(read_user_id));
    let Some(MessageUser { is_claude_code, session, person }) = found else { return };
    let agent = is_claude_code.then(|| CLAUDE_CODE.to_owned());
    for (name, value) in [(AGENT, agent), (SESSION, session), (USER, person)] {
        if let Some(value) = value {
            metadata.entry(name).or_insert_with(|| value.into());
        }
    }
}

#[derive(Debug, Default, PartialEq)]
struct MessageUser {
    is_claude_code: bool,
    session: Option<String>,
    person: Option<String>,
}

/// As Claude Code writes it now.
#[derive(Deserialize)]
struct WrittenUser<'t> {
    #[serde(borrow)]
    session_id: Cow<'t, str>,
    #[serde(borrow, default)]
    account_uuid: Option<Cow<'t, str>>,
}

fn read_user_id(text: &str) -> MessageUser {
    let own = |text: &str| Some(cut(text.trim(), MAX_VALUE)).filter(|text| !text.is_empty()).map(str::to_owned);
    let claude_code = |session: &str, account: &str| MessageUser {
        is_claude_code: true,
        session: own(session),
        person: own(account),
    };
    if let Ok(written) = serde_json::from_str::<WrittenUser<'_>>(text) {
        return claude_code(&written.session_id, written.account_uuid.as_deref().unwrap_or_default());
    }
    // As it did before: `user_<device>_account_<id or nothing>_session_<id>`.
    let parts = text.strip_prefix("user_").and_then(|rest| rest.split_once("_account_"));
    if let Some((account, session)) = parts.and_then(|(_, rest)| rest.split_once("_session_")) {
        return claude_code(session, account);
    }
    MessageUser { person: own(text), ..MessageUser::default() }
}

/// Metadata without the agent and the session that its headers name: what is kept for one session answers another that asks
/// the same.
pub fn without_session<'m>(metadata: &'m Map<String, Value>, head: &HeaderMap) -> Cow<'m, Map<String, Value>> {
    if ![SESSION, AGENT].iter().any(|name| metadata.contains_key(*name)) {
        return Cow::Borrowed(metadata);
    }
    let found = from_headers(head);
    let is_rest = |name: &str, value: &Value| !matches!(name, SESSION | AGENT) || found.get(name) != Some(value);
    let rest = metadata.iter().filter(|(name, value)| is_rest(name, value));
    Cow::Owned(rest.map(|(name, value)| (name.clone(), value.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};
    use serde_json::json;

    fn head(sent: &[(&str, &str)]) -> HeaderMap {
        let header =
            |(name, value): &(&str, &str)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
        sent.iter().map(header).collect()
    }

    #[test]
    fn each_agent_is_known_by_what_it_sends() {
        let long = "s".repeat(200);
        for (sent, expected) in [
            (
                vec![("user-agent", "claude-cli/2.1.326 (external, cli)"), ("x-claude-code-session-id", "s-1")],
                json!({ "_agent": "claude-code", "_session": "s-1" }),
            ),
            (vec![("x-claude-code-session-id", &*long)], json!({ "_agent": "claude-code", "_session": long[..128] })),
            (
                vec![("user-agent", "codex_exec/0.169.0 (Linux)"), ("session_id", " c-1 "), ("conversation_id", "c-2")],
                json!({ "_agent": "codex", "_session": "c-1" }),
            ),
            (
                vec![("originator", "codex_cli_rs"), ("conversation_id", "c-2")],
                json!({ "_agent": "codex", "_session": "c-2" }),
            ),
            (vec![("user-agent", "GeminiCLI/0.61.0/gemini-2.5-flash (linux; x64)")], json!({ "_agent": "gemini-cli" })),
            (
                vec![
                    ("x-openwebui-user-id", "u-1"),
                    ("x-openwebui-user-email", "ada@x.test"),
                    ("x-openwebui-chat-id", "c"),
                ],
                json!({ "_agent": "open-webui", "_session": "c", "_user": "ada@x.test" }),
            ),
            (vec![("x-openwebui-user-id", "u-1")], json!({ "_agent": "open-webui", "_user": "u-1" })),
            (
                vec![("user-agent", "opencode/1.18.33"), ("x-opencode-session", "o")],
                json!({ "_agent": "opencode", "_session": "o" }),
            ),
            (
                vec![("user-agent", "opencode/1.18.33 ai-sdk/provider-utils/4.0.23"), ("x-session-id", "s")],
                json!({ "_agent": "opencode", "_session": "s" }),
            ),
            (vec![("user-agent", "QwenCode/0.24.4 (linux; x64)")], json!({ "_agent": "qwen-code" })),
            // Anybody's.
            (vec![("user-agent", "curl/8"), ("session_id", "s"), ("conversation_id", "c")], json!({})),
            (vec![("user-agent", "code"), ("x-claude-code-other", "s")], json!({})),
            (vec![("user-agent", "")], json!({})),
        ] {
            assert_eq!(Value::Object(from_headers(&head(&sent))), expected, "{sent:?}");
        }
    }

    #[test]
    fn the_table_has_each_agent_once_and_headers_as_they_are_compared() {
        for (index, agent) in AGENTS.iter().enumerate() {
            assert!(AGENTS[..index].iter().all(|other| other.name != agent.name), "{agent:?}");
            assert!(agent.name.len() <= MAX_VALUE && !agent.product.is_empty(), "{agent:?}");
            for header in agent.sessions.iter().chain(agent.people) {
                assert_eq!(HeaderName::from_static(header).as_str(), *header);
            }
        }
    }

    #[test]
    fn a_user_of_messages_is_a_person_or_what_claude_code_writes() {
        let device = "d".repeat(64);
        let user = |is_claude_code, session: Option<&str>, person: Option<&str>| MessageUser {
            is_claude_code,
            session: session.map(str::to_owned),
            person: person.map(str::to_owned),
        };
        let long = "p".repeat(300);
        for (text, read) in [
            (
                json!({ "device_id": device, "account_uuid": "", "session_id": "s-1" }).to_string(),
                user(true, Some("s-1"), None),
            ),
            (json!({ "account_uuid": "a-1", "session_id": "s\"1" }).to_string(), user(true, Some("s\"1"), Some("a-1"))),
            (format!("user_{device}_account__session_s-1"), user(true, Some("s-1"), None)),
            (format!("user_{device}_account_a-1_session_s-1"), user(true, Some("s-1"), Some("a-1"))),
            ("user_17".into(), user(false, None, Some("user_17"))),
            (r#"{"session_id":7}"#.into(), user(false, None, Some(r#"{"session_id":7}"#))),
            (" ".into(), user(false, None, None)),
            (long.clone(), user(false, None, Some(&long[..128]))),
        ] {
            assert_eq!(read_user_id(&text), read, "{text}");
        }
    }

    #[test]
    fn what_was_said_before_stays_and_a_body_without_a_user_says_nothing() {
        let found = |metadata: Value, body: &str| {
            let Value::Object(mut metadata) = metadata else { unreachable!() };
            add_from_message(&mut metadata, &Fields::parse_object(body.as_bytes()).unwrap());
            Value::Object(metadata)
        };
        let body = r#"{"metadata":{"user_id":"user_d_account_a_session_s"}}"#;
        assert_eq!(found(json!({}), body), json!({ "_agent": "claude-code", "_session": "s", "_user": "a" }));
        let own = json!({ "_agent": "mine", "_session": "1", "_user": "bob" });
        assert_eq!(found(own.clone(), body), own);
        for body in ["{}", r#"{"metadata":null}"#, r#"{"metadata":{"user_id":7}}"#, r#"{"metadata":"user_id"}"#] {
            assert_eq!(found(json!({}), body), json!({}), "{body}");
        }
    }

    #[test]
    fn only_what_the_headers_name_is_taken_out() {
        let sent = head(&[("x-claude-code-session-id", "s-1")]);
        let rest = |metadata: Value| {
            let Value::Object(metadata) = metadata else { unreachable!() };
            Value::Object(without_session(&metadata, &sent).into_owned())
        };
        assert_eq!(rest(json!({ "_session": "s-1", "_agent": "claude-code", "t": "1" })), json!({ "t": "1" }));
        let own = json!({ "_session": "mine", "_user": "ada" });
        assert_eq!(rest(own.clone()), own);
    }
}
