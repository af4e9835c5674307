//! Whether a request may be answered from the cache, and for how long its answer is kept: what its headers say, else its
//! config. Pure.

use serde::Deserialize;
use shared::config::{Cache, CacheMode};
use std::borrow::Cow;
use std::time::Duration;

/// Seconds. What is shorter is raised, what is longer lowered.
const MIN_AGE: u64 = 60;
const MAX_AGE: u64 = 7_776_000;
const USUAL_AGE: u64 = 604_800;
/// Of a namespace, in bytes.
const MAX_NAMESPACE: usize = 512;

/// What the headers of a request say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CacheHeaders {
    /// In place of the config's.
    pub cache: Option<Cache>,
    pub is_refresh: bool,
    pub namespace: Option<Box<str>>,
}

/// What else decides.
#[derive(Debug, Clone, Copy)]
pub struct CacheFacts {
    /// The caller wants nothing of what is said to be kept.
    pub is_untracked: bool,
    /// Its workspace keeps nothing of what is said: then its config alone may allow it.
    pub is_metrics_only: bool,
    /// The request carries its config, which is then no more than another way to say what its headers do.
    pub is_clients_config: bool,
    /// Seconds that its organisation lets answers be kept, which is also how long they are if nobody says more.
    pub organisation_age: Option<u64>,
    /// The endpoint takes JSON, and what it answers can be given again in the form that is asked for.
    pub is_repeatable: bool,
}

/// How a request uses the cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Caching {
    pub mode: CacheMode,
    pub max_age: Duration,
    pub coalesces: bool,
    /// The least cosine of a question in other words, where the request has its own.
    pub similarity: Option<f64>,
    /// Nobody but the request says so: then it makes the operator's no smaller.
    pub is_clients_similarity: bool,
    /// It is not looked for an answer, and one that is there is replaced.
    pub is_refresh: bool,
}

/// None where the cache is not in effect.
pub fn caching(config: Option<Cache>, headers: Option<&CacheHeaders>, facts: CacheFacts) -> Option<Caching> {
    if facts.is_untracked || !facts.is_repeatable || (facts.is_metrics_only && config.is_none()) {
        return None;
    }
    let cache = headers.and_then(|headers| headers.cache).or(config)?;
    let age = match (cache.max_age_seconds, facts.organisation_age) {
        (Some(asked), Some(most)) => asked.min(most),
        (asked, most) => asked.or(most).unwrap_or(USUAL_AGE),
    };
    // Purges are remembered for as long as anything is kept, so nothing is kept for longer.
    let age = age.clamp(MIN_AGE, MAX_AGE);
    let asked = headers.and_then(|headers| headers.cache).and_then(|cache| cache.similarity);
    let configured = config.and_then(|config| config.similarity);
    // A config may lower what the operator says, and a request raise what its config does.
    let similarity = match (asked, configured) {
        (Some(asked), Some(configured)) => Some(asked.max(configured)),
        (asked, configured) => asked.or(configured),
    };
    Some(Caching {
        mode: cache.mode,
        max_age: Duration::from_secs(age),
        coalesces: cache.coalesces,
        similarity,
        is_clients_similarity: similarity.is_some() && (configured.is_none() || facts.is_clients_config),
        is_refresh: headers.is_some_and(|headers| headers.is_refresh),
    })
}

/// As a header says it: a mode, or an object like a config's.
pub fn parse_cache(text: &str) -> Result<Cache, &'static str> {
    const WHY: &str = "must be `simple`, `semantic`, or an object with `mode` and perhaps `max_age` in seconds, and `similarity` from 0 to 1";
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Written<'w> {
        #[serde(borrow)]
        mode: Cow<'w, str>,
        max_age: Option<u64>,
        #[serde(default)]
        coalesce: bool,
        similarity: Option<f64>,
    }
    let text = text.trim();
    let written = match text.starts_with('{') {
        true => serde_json::from_str::<Written<'_>>(text).map_err(|_| WHY)?,
        false => Written { mode: text.into(), max_age: None, coalesce: false, similarity: None },
    };
    let mode = match &*written.mode {
        "simple" => CacheMode::Simple,
        "semantic" => CacheMode::Semantic,
        _ => return Err(WHY),
    };
    let is_similar = written.similarity.is_none_or(|similarity| (0.0..=1.0).contains(&similarity));
    if written.max_age == Some(0) || !is_similar {
        return Err(WHY);
    }
    let Written { max_age, coalesce, similarity, .. } = written;
    Ok(Cache { mode, max_age_seconds: max_age, coalesces: coalesce, similarity })
}

pub fn parse_namespace(text: &str) -> Result<Box<str>, &'static str> {
    match text.trim() {
        "" => Err("must not be empty"),
        long if long.len() > MAX_NAMESPACE => Err("must not be longer than 512 bytes"),
        name => Ok(name.into()),
    }
}

pub const fn mode_name(mode: CacheMode) -> &'static str {
    match mode {
        CacheMode::Simple => "simple",
        CacheMode::Semantic => "semantic",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: CacheFacts = CacheFacts {
        is_untracked: false,
        is_metrics_only: false,
        is_clients_config: false,
        organisation_age: None,
        is_repeatable: true,
    };

    fn cache(mode: CacheMode, max_age_seconds: Option<u64>) -> Cache {
        Cache { mode, max_age_seconds, coalesces: false, similarity: None }
    }

    #[test]
    fn a_request_raises_the_similarity_of_its_config_and_never_lowers_it() {
        let semantic = |similarity| Cache { similarity, ..cache(CacheMode::Semantic, None) };
        for (config, asked, expected) in [
            (Some(Some(0.9)), Some(Some(0.0)), (Some(0.9), false)),
            (Some(Some(0.9)), Some(Some(0.95)), (Some(0.95), false)),
            (Some(Some(0.9)), Some(None), (Some(0.9), false)),
            (Some(Some(0.2)), None, (Some(0.2), false)),
            (Some(None), Some(Some(0.0)), (Some(0.0), true)),
            (None, Some(Some(0.0)), (Some(0.0), true)),
            (None, Some(None), (None, false)),
        ] {
            let headers = CacheHeaders { cache: asked.map(semantic), ..CacheHeaders::default() };
            let found = caching(config.map(semantic), Some(&headers), FACTS).unwrap();
            assert_eq!((found.similarity, found.is_clients_similarity), expected, "{config:?} {asked:?}");
            // A config that the request carries is the client's word, too.
            let facts = CacheFacts { is_clients_config: true, ..FACTS };
            let found = caching(config.map(semantic), Some(&headers), facts).unwrap();
            assert_eq!(found.is_clients_similarity, found.similarity.is_some(), "carried: {config:?} {asked:?}");
        }
    }

    #[test]
    fn a_header_is_a_mode_or_an_object() {
        let simple = |age| Ok(cache(CacheMode::Simple, age));
        for (text, expected) in [
            ("simple", simple(None)),
            (" simple ", simple(None)),
            ("semantic", Ok(cache(CacheMode::Semantic, None))),
            (r#"{"mode":"simple","max_age":90}"#, simple(Some(90))),
            (r#"{"mode":"simple","coalesce":true}"#, Ok(Cache { coalesces: true, ..cache(CacheMode::Simple, None) })),
            (
                r#"{"mode":"semantic","similarity":0.9}"#,
                Ok(Cache { similarity: Some(0.9), ..cache(CacheMode::Semantic, None) }),
            ),
            (r#"{"mode":"semantic","similarity":1.1}"#, Err(())),
            (r#"{"mode":"semantic","similarity":-0.1}"#, Err(())),
            (r#"{"mode":"semantic","similarity":"high"}"#, Err(())),
            ("", Err(())),
            ("Simple", Err(())),
            ("true", Err(())),
            ("{}", Err(())),
            (r#"{"mode":"simple","max_age":0}"#, Err(())),
            (r#"{"mode":"simple","max_age":-1}"#, Err(())),
            (r#"{"mode":"simple","ttl":1}"#, Err(())),
            (r#"{"mode":"#, Err(())),
        ] {
            assert_eq!(parse_cache(text).map_err(drop), expected, "{text}");
        }
        assert!(parse_namespace(" ").is_err() && parse_namespace(&"x".repeat(513)).is_err());
        assert_eq!(&*parse_namespace(" a b ").unwrap(), "a b");
    }

    #[test]
    fn headers_win_over_the_config_and_ages_are_bounded() {
        let config = cache(CacheMode::Simple, Some(3_600));
        let header = CacheHeaders { cache: Some(cache(CacheMode::Semantic, None)), ..CacheHeaders::default() };
        let refresh = CacheHeaders { is_refresh: true, ..CacheHeaders::default() };
        let seconds = |caching: Option<Caching>| caching.map(|caching| caching.max_age.as_secs());
        assert_eq!(seconds(caching(Some(config), None, FACTS)), Some(3_600));
        let found = caching(Some(config), Some(&header), FACTS).unwrap();
        assert_eq!((found.mode, found.max_age.as_secs()), (CacheMode::Semantic, USUAL_AGE));
        for (asked, taken) in [(1, 60), (60, 60), (u64::MAX, MAX_AGE)] {
            assert_eq!(seconds(caching(Some(cache(CacheMode::Simple, Some(asked))), None, FACTS)), Some(taken));
        }
        for (asked, organisation, taken) in [
            (None, 3_600, 3_600),
            (Some(60), 3_600, 60),
            (Some(7_200), 3_600, 3_600),
            (None, 25_923_000, MAX_AGE),
            (None, 1, MIN_AGE),
        ] {
            let facts = CacheFacts { organisation_age: Some(organisation), ..FACTS };
            let found = seconds(caching(Some(cache(CacheMode::Simple, asked)), None, facts));
            assert_eq!(found, Some(taken), "{asked:?} {organisation}");
        }
        assert_eq!(caching(None, Some(&refresh), FACTS), None, "a refresh alone switches nothing on");
        assert!(caching(Some(config), Some(&refresh), FACTS).unwrap().is_refresh);
    }

    #[test]
    fn what_must_not_be_kept_is_not() {
        let config = Some(cache(CacheMode::Simple, None));
        let header = CacheHeaders { cache: config, ..CacheHeaders::default() };
        for facts in [CacheFacts { is_untracked: true, ..FACTS }, CacheFacts { is_repeatable: false, ..FACTS }] {
            assert_eq!(caching(config, Some(&header), facts), None, "{facts:?}");
        }
        let private = CacheFacts { is_metrics_only: true, ..FACTS };
        assert_eq!(caching(None, Some(&header), private), None, "a caller's word is not the workspace's");
        assert!(caching(config, None, private).is_some());
    }
}
