//! Calls whose cost nobody reported: those on a paid route, which are estimated, and those on a path whose price nobody
//! knows. Counted when they are noted, each by provider and path.
//!
//! Callers choose the paths of the second kind, so a path is counted by its form: what looks like a name of something is
//! `*`, and beyond `MAX_SERIES` pairs all others are `other`.

use parking_lot::Mutex;
use prometheus::{IntCounterVec, Opts, Registry};
use std::collections::HashSet;

/// Most pairs of provider and path that have series of their own.
const MAX_SERIES: usize = 200;
const OTHER: &str = "other";
/// Deeper and longer paths are no endpoints that anybody would list.
const MAX_PATH_DEPTH: usize = 6;
const MAX_WORD_LENGTH: usize = 24;

pub struct PaidMeters {
    unreported: IntCounterVec,
    unpriced: IntCounterVec,
    known: Mutex<HashSet<(String, String)>>,
}

impl PaidMeters {
    pub fn new(registry: &Registry) -> prometheus::Result<Self> {
        let counter = |name: &str, help: &str| -> prometheus::Result<IntCounterVec> {
            let counter = IntCounterVec::new(Opts::new(name, help), &["provider", "path"])?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        Ok(Self {
            unreported: counter(
                "gateway_usage_missing_total",
                "Calls answered on a paid route without a word of what they used, which was estimated, by provider and path.",
            )?,
            unpriced: counter(
                "gateway_unpriced_calls_total",
                "Calls that changed something at a provider on a path whose price is not known, by provider and path.",
            )?,
            known: Mutex::default(),
        })
    }

    /// `route` is from a closed set.
    pub fn count_unreported(&self, provider: &str, route: &str) {
        self.unreported.with_label_values(&[provider, route]).inc();
    }

    pub fn count_unpriced(&self, provider: &str, path: &str) {
        let form = form_of(path);
        let is_known = {
            let mut known = self.known.lock();
            let pair = (provider.to_owned(), form);
            let is_known = known.contains(&pair) || known.len() < MAX_SERIES;
            if is_known {
                known.insert(pair.clone());
            }
            is_known.then_some(pair.1)
        };
        self.unpriced.with_label_values(&[provider, is_known.as_deref().unwrap_or(OTHER)]).inc();
    }
}

/// The path with a star for each segment that is no plain word.
fn form_of(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let is_word = |segment: &str| {
        segment.len() <= MAX_WORD_LENGTH
            && (is_version(segment) || segment.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-".contains(&byte)))
    };
    let mut form = String::new();
    for segment in segments.iter().take(MAX_PATH_DEPTH) {
        form.push('/');
        form.push_str(if is_word(segment) { segment } else { "*" });
    }
    if segments.len() > MAX_PATH_DEPTH {
        form.push_str("/…");
    }
    form
}

/// `v1`, `v2beta`
fn is_version(segment: &str) -> bool {
    let rest = segment.strip_prefix('v').unwrap_or_default();
    rest.len() <= 8
        && rest.starts_with(|first: char| first.is_ascii_digit())
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_path_are_no_labels_and_there_are_so_many_paths_and_no_more() {
        for (path, form) in [
            ("/v1/threads/thread_1/messages", "/v1/threads/*/messages"),
            ("/v1/vector_stores/vs-é/search", "/v1/vector_stores/*/search"),
            ("/v2beta/x", "/v2beta/x"),
            ("/a/b/c/d/e/f/g", "/a/b/c/d/e/f/…"),
            (&format!("/{}", "x".repeat(25)), "/*"),
            ("/", ""),
        ] {
            assert_eq!(form_of(path), form, "{path}");
        }
        let meters = PaidMeters::new(&Registry::new()).unwrap();
        for first in b'a'..=b'z' {
            for second in b'a'..=b'z' {
                meters.count_unpriced("p", &format!("/{}{}", char::from(first), char::from(second)));
            }
        }
        assert_eq!(meters.known.lock().len(), MAX_SERIES);
        assert_eq!(meters.unpriced.with_label_values(&["p", OTHER]).get(), 26 * 26 - MAX_SERIES as u64);
    }
}
