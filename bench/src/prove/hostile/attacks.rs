//! What a hostile tenant does, each bounded in number and pace: what hurts is meant to be the kind of the request, not
//! how many there are.

mod bodies;
mod connections;
mod guarded;
mod queries;
mod sign_in;
mod strangers;
mod tools;

use crate::prove::client::{Body, Caller};
use bodies::{by_provider, config_names, deep_body, escapes, long_model, metadata, patterns, slow_patterns};
use connections::{endless_upload, fragments, half_upgrade, slow_form, slow_head, stalled_upload, stopped_reader};
use futures::future::BoxFuture;
use guarded::past_guardrails;
use queries::{costly_figures, costly_query, opinions};
use sign_in::{many_elements, many_keys, many_prefixes};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use strangers::{begun_sign_in, junk_logout, junk_token, large_body, registration, saml_elements, saml_prefixes};
use tools::{ambiguous, half_answer, listening, lists};
use uuid::Uuid;

pub use guarded::PASSED;
pub use sign_in::metadata as saml_metadata;
pub use tools::SLUG as TOOLS;

pub struct Attacker {
    /// With its key and a provider.
    pub caller: Caller,
    /// With its key alone, for inline configs.
    pub by_config: Caller,
    /// With the key of its own administrator.
    pub administrator: Caller,
    /// Without any key.
    pub bare: Caller,
    /// With a key of a workspace of its own that has guardrails, and a provider.
    pub guarded: Caller,
    /// As a client of MCP servers.
    pub tools: Caller,
    /// The address of the provider.
    pub provider: String,
    /// The address of the provider that it runs itself.
    pub own_provider: String,
    pub organisation: Uuid,
}

pub struct Attack {
    pub name: &'static str,
    /// How many do it at once.
    pub parties: usize,
    /// Between two moves of one party.
    pub pause: Duration,
    /// One move; answers what became of it.
    pub make: Make,
}

/// How often an attack was made, and what became of it.
#[derive(Debug)]
pub struct Done {
    pub name: &'static str,
    pub moves: u64,
    outcomes: BTreeMap<String, u64>,
}

impl Done {
    pub fn new(name: &'static str) -> Self {
        Self { name, moves: 0, outcomes: BTreeMap::new() }
    }

    /// What became of moves that begins with this.
    pub fn outcomes(&self, beginning: &str) -> impl Iterator<Item = &str> {
        self.outcomes.keys().filter(move |what| what.starts_with(beginning)).map(String::as_str)
    }

    /// What became of a move.
    pub fn note(&mut self, what: String) {
        *self.outcomes.entry(what).or_default() += 1;
    }

    pub fn add(&mut self, other: &Self) {
        self.moves += other.moves;
        for (what, times) in &other.outcomes {
            *self.outcomes.entry(what.clone()).or_default() += times;
        }
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} times", self.moves)?;
        self.outcomes.iter().try_for_each(|(what, times)| write!(f, ", {times} × {what}"))
    }
}

pub static ALL: &[Attack] = &[
    attack("random long models", 4, 100, |by, _| Box::pin(long_model(by, 4000))),
    attack("oversized models", 1, 2000, |by, _| Box::pin(long_model(by, 2 << 20))),
    attack("1,800 patterns on a long field", 2, 2000, |by, _| Box::pin(patterns(by))),
    attack("guardrails of costly patterns", 2, 500, |by, _| Box::pin(slow_patterns(by))),
    attack("deep bodies", 2, 500, |by, _| Box::pin(deep_body(by))),
    attack("bodies of escapes", 1, 1000, |by, _| Box::pin(escapes(by))),
    attack("configs of unknown names", 2, 500, |by, _| Box::pin(config_names(by))),
    attack("half events", 8, 100, |by, _| Box::pin(by_provider(by, "openai", "half-event"))),
    attack("half frames", 4, 100, |by, _| Box::pin(by_provider(by, "bedrock", "half-frame"))),
    attack("halves of packed events", 4, 100, |by, _| Box::pin(by_provider(by, "openai", "packed-event"))),
    attack("fragments of messages", 8, 100, |by, _| Box::pin(fragments(by))),
    attack("half answers of an MCP server", 4, 100, |by, _| Box::pin(half_answer(by))),
    attack("streams of an MCP server that nobody ends", 8, 100, |by, _| Box::pin(listening(by))),
    attack("MCP messages that can be read in two ways", 4, 200, |by, at| Box::pin(ambiguous(by, at))),
    attack("lists of an MCP server that does not answer", 2, 500, |by, _| Box::pin(lists(by))),
    attack("words that guardrails deny, wherever they fit", 2, 100, |by, _| Box::pin(past_guardrails(by))),
    attack("new metadata with each call", 2, 50, |by, _| Box::pin(metadata(by))),
    attack("uploads without an end", 4, 500, |by, _| Box::pin(endless_upload(by))),
    attack("forms of public pages that do not come", 16, 100, |by, at| Box::pin(slow_form(by, at))),
    attack("half lists", 4, 100, |by, _| Box::pin(by_provider(by, "google", "half-list"))),
    attack("answers whose head does not end", 4, 100, |by, _| Box::pin(by_provider(by, "openai", "endless-head"))),
    attack("deep answers", 2, 500, |by, _| Box::pin(by_provider(by, "openai", "deep"))),
    attack("deep events", 2, 500, |by, _| Box::pin(by_provider(by, "openai", "deep-events"))),
    attack("millions of events", 1, 1000, |by, _| Box::pin(by_provider(by, "openai", "many-events"))),
    attack("answers byte by byte", 8, 100, |by, _| Box::pin(by_provider(by, "openai", "drip"))),
    attack("stalled uploads", 12, 100, |by, _| Box::pin(stalled_upload(by))),
    attack("readers that stop reading", 8, 100, |by, _| Box::pin(stopped_reader(by))),
    attack("heads that never end", 50, 100, |by, _| Box::pin(slow_head(by))),
    attack("half-open websockets", 20, 100, |by, _| Box::pin(half_upgrade(by))),
    attack("costly log queries", 8, 100, |by, at| Box::pin(costly_query(by, at))),
    attack("costly figures", 4, 100, |by, at| Box::pin(costly_figures(by, at))),
    attack("a flood of opinions", 2, 100, |by, _| Box::pin(opinions(by))),
    attack("large bodies without a key", 2, 1000, |by, _| Box::pin(large_body(by))),
    attack("SAML answers of many prefixes", 4, 100, |by, _| Box::pin(saml_prefixes(by))),
    attack("SAML answers of many elements", 2, 500, |by, _| Box::pin(saml_elements(by))),
    attack("SAML answers to a login, with many prefixes", 2, 100, |by, _| Box::pin(many_prefixes(by))),
    attack("SAML answers to a login, with many elements", 2, 100, |by, _| Box::pin(many_elements(by))),
    attack("SAML answers to a login, with many keys", 2, 100, |by, _| Box::pin(many_keys(by))),
    attack("sign-ins that are only begun", 4, 50, |by, _| Box::pin(begun_sign_in(by))),
    attack("logouts with junk tokens", 2, 100, |by, _| Box::pin(junk_logout(by))),
    attack("registrations of clients", 2, 100, |by, _| Box::pin(registration(by))),
    attack("junk tokens in place of keys", 4, 50, |by, _| Box::pin(junk_token(by))),
];

type Make = fn(Arc<Attacker>, usize) -> BoxFuture<'static, String>;

const fn attack(name: &'static str, parties: usize, pause_ms: u64, make: Make) -> Attack {
    Attack { name, parties, pause: Duration::from_millis(pause_ms), make }
}

async fn status(caller: &Caller, request: http::Request<Body>) -> String {
    match caller.status(request).await {
        Ok(status) => status.as_u16().to_string(),
        Err(error) => format!("{error}"),
    }
}
