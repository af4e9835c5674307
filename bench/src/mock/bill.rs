//! The bill of the mock: what it read and wrote, by account (the bearer token) and by the tag that a text of the request holds
//! (`bill:kind-7`). What was read is billed when a request is understood, what was written when it leaves; errors cost nothing.
//! Kept only where somebody asks for it: load tests must not pay for it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::Value;

/// What stands before a tag.
const MARK: &[u8] = b"bill:";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BillKey {
    pub account: String,
    pub tag: String,
}

/// Calls and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Billed {
    pub calls: u64,
    pub prompt: u64,
    pub completion: u64,
}

#[derive(Default)]
pub struct Bill(Mutex<BTreeMap<BillKey, Billed>>);

impl BillKey {
    /// None for requests without a tag.
    pub fn find(headers: &HeaderMap, body: &[u8]) -> Option<Self> {
        let at = body.windows(MARK.len()).position(|window| window == MARK)? + MARK.len();
        let tag: Vec<u8> =
            body[at..].iter().copied().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'-').collect();
        let account = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let account = account.strip_prefix("Bearer ").unwrap_or("none").to_owned();
        Some(Self { account, tag: String::from_utf8(tag).ok()? })
    }
}

impl Bill {
    pub fn add(&self, key: &BillKey, more: Billed) {
        let mut bill = self.lock();
        let billed = bill.entry(key.clone()).or_default();
        billed.calls += more.calls;
        billed.prompt += more.prompt;
        billed.completion += more.completion;
    }

    pub fn read(&self) -> BTreeMap<BillKey, Billed> {
        self.lock().clone()
    }

    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<BillKey, Billed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tokens that an answer or an event of a session reports.
pub fn reported(answer: &Value) -> Billed {
    let usage = answer.get("usage").or_else(|| answer.pointer("/response/usage")).unwrap_or(&Value::Null);
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage[*name].as_u64()).unwrap_or(0);
    Billed {
        calls: 1,
        prompt: count(["prompt_tokens", "input_tokens"]),
        completion: count(["completion_tokens", "output_tokens"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_is_billed_to_its_account_under_its_tag() {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, "Bearer sk-a".parse().unwrap())]);
        let key = BillKey::find(&headers, br#"{"content":"hello bill:plain-7 there"}"#).unwrap();
        assert_eq!((key.account.as_str(), key.tag.as_str()), ("sk-a", "plain-7"));
        assert_eq!(BillKey::find(&headers, b"nothing of the kind"), None);
        let bill = Bill::default();
        bill.add(&key, reported(&json!({ "usage": { "prompt_tokens": 3, "completion_tokens": 4 } })));
        bill.add(&key, reported(&json!({ "response": { "usage": { "input_tokens": 1, "output_tokens": 1 } } })));
        assert_eq!(bill.read()[&key], Billed { calls: 2, prompt: 4, completion: 5 });
    }
}
