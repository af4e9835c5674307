//! The key sets of all organisations, fetched when first needed and kept for a day. However many requests ask for a
//! set at once, it is fetched once; a key id that the set does not have makes it be fetched anew, but not more often
//! than a stranger's tokens should be able to cause. A set that is a day old is not used again before it was asked for,
//! so a withdrawn key dies within a day; in the hour before it is fetched without making anybody wait. While an address
//! is away, the keys it gave last go on working.

use super::keys::WebKeySet;
use super::rejection::Rejection;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// A set is fetched again after this long, unless whoever asks says a shorter time. In the last 24th of it, which is an hour of
/// a day, it is fetched in the background.
const MAX_KEY_SET_AGE: Duration = Duration::from_secs(24 * 60 * 60);
const AHEAD: u32 = 24;
/// Between two fetches that unknown key ids cause.
const REFETCH: Duration = Duration::from_secs(30);
/// After a fetch that failed.
const RETRY: Duration = Duration::from_secs(5);
/// The longest a fetch may take.
pub const FETCH_WITHIN: Duration = Duration::from_secs(5);
/// The longest answer that is read as a key set.
pub const MAX_SET: usize = 512 << 10;

/// Where an organisation's keys come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    Url(String),
    Inline(Arc<Value>),
}

impl KeySource {
    /// From an organisation's auth settings.
    pub fn from_settings(url: Option<&str>, inline: Option<Value>) -> Option<Self> {
        match (url, inline) {
            (Some(url), _) => Some(Self::Url(url.to_owned())),
            (None, Some(set)) if !set.is_null() => Some(Self::Inline(Arc::new(set))),
            _ => None,
        }
    }
}

/// Gets the body behind a URL, or says in a few words why not. It is given `FETCH_WITHIN`.
pub type KeySetFetch = Box<dyn Fn(String) -> BoxFuture<'static, Result<Vec<u8>, String>> + Send + Sync>;

pub struct KeyRing {
    fetch: Arc<KeySetFetch>,
    organisations: RwLock<HashMap<Uuid, Arc<KeySetEntry>>>,
}

struct KeySetEntry {
    source: KeySource,
    state: Mutex<KeySetState>,
}

#[derive(Default)]
struct KeySetState {
    keys: Option<Arc<WebKeySet>>,
    fetched: Option<Instant>,
    refetched: Option<Instant>,
    failed: Option<(Instant, String)>,
    flight: Option<KeySetFlight>,
}

/// A fetch under way. It runs in a task of its own: those who wait may leave without ending it.
type KeySetFlight = Shared<BoxFuture<'static, ()>>;

/// The keys that hold now.
pub struct Current {
    pub keys: Arc<WebKeySet>,
    /// How long what they verify may be believed without asking again.
    pub fresh_for: Duration,
}

enum KeySetStep {
    Use(Arc<WebKeySet>),
    /// Good enough, but it is time to fetch them again.
    UseAndRefresh(Arc<WebKeySet>),
    Wait,
    Refuse(Rejection),
}

impl KeyRing {
    pub fn new(fetch: KeySetFetch) -> Self {
        Self { fetch: Arc::new(fetch), organisations: RwLock::default() }
    }

    /// The organisation's keys, fetched if that can help to find `kid` among them.
    pub async fn keys(
        &self,
        organisation: Uuid,
        source: &KeySource,
        kid: &str,
        now: Instant,
    ) -> Result<Current, Rejection> {
        self.keys_within(organisation, source, kid, now, MAX_KEY_SET_AGE).await
    }

    /// The same where a set is to be no older than this. Shorter times than those between two fetches that strangers can cause
    /// are not kept to.
    pub async fn keys_within(
        &self,
        organisation: Uuid,
        source: &KeySource,
        kid: &str,
        now: Instant,
        max_age: Duration,
    ) -> Result<Current, Rejection> {
        let max_age = max_age.clamp(REFETCH, MAX_KEY_SET_AGE);
        let entry = self.entry(organisation, source)?;
        let flight = {
            let mut state = entry.state.lock();
            match state.step(kid, now, max_age) {
                KeySetStep::Use(keys) => return Ok(state.current(keys, now, max_age)),
                KeySetStep::UseAndRefresh(keys) => {
                    // Nobody waits for it.
                    drop(self.depart(&entry, &mut state, now));
                    return Ok(state.current(keys, now, max_age));
                }
                KeySetStep::Refuse(rejection) => return Err(rejection),
                KeySetStep::Wait => self.depart(&entry, &mut state, now),
            }
        };
        flight.await;
        let state = entry.state.lock();
        match (&state.keys, &state.failed) {
            (Some(keys), None) => Ok(state.current(keys.clone(), now, max_age)),
            (Some(keys), Some(_)) if keys.contains(kid) => Ok(state.current(keys.clone(), now, max_age)),
            (_, Some((_, why))) => Err(Rejection::KeySetUnreachable(why.clone())),
            (None, None) => Err(Rejection::KeySetUnreachable("it was not answered".into())),
        }
    }

    /// The keys that were fetched last, whether or not they could be now.
    pub fn known(&self, organisation: Uuid) -> Option<Arc<WebKeySet>> {
        let entry = self.organisations.read().get(&organisation).cloned()?;
        entry.state.lock().keys.clone()
    }

    fn entry(&self, organisation: Uuid, source: &KeySource) -> Result<Arc<KeySetEntry>, Rejection> {
        if let Some(entry) = self.organisations.read().get(&organisation).filter(|entry| entry.source == *source) {
            return Ok(entry.clone());
        }
        let keys = match source {
            KeySource::Url(_) => None,
            KeySource::Inline(set) => Some(Arc::new(WebKeySet::from_json(set).map_err(unusable)?)),
        };
        let state = Mutex::new(KeySetState { keys, ..KeySetState::default() });
        let entry = Arc::new(KeySetEntry { source: source.clone(), state });
        let mut organisations = self.organisations.write();
        // Somebody else may have been faster; then theirs counts, and its fetch with it.
        match organisations.get(&organisation).filter(|entry| entry.source == *source) {
            Some(first) => Ok(first.clone()),
            None => {
                organisations.insert(organisation, entry.clone());
                Ok(entry)
            }
        }
    }

    fn depart(&self, entry: &Arc<KeySetEntry>, state: &mut KeySetState, now: Instant) -> KeySetFlight {
        if let Some(flight) = &state.flight {
            return flight.clone();
        }
        if state.keys.is_some() {
            state.refetched = Some(now);
        }
        let KeySource::Url(url) = &entry.source else { return async {}.boxed().shared() };
        let (fetch, url, entry) = (self.fetch.clone(), url.clone(), entry.clone());
        let task = tokio::spawn(async move {
            let fetched = match tokio::time::timeout(FETCH_WITHIN, fetch(url)).await {
                Ok(Ok(body)) => WebKeySet::parse(&body).map_err(str::to_owned),
                Ok(Err(why)) => Err(why),
                Err(_) => Err(format!("no answer within {} s", FETCH_WITHIN.as_secs())),
            };
            entry.state.lock().land(fetched, now);
        });
        let flight = task.map(|_| ()).boxed().shared();
        state.flight = Some(flight.clone());
        flight
    }
}

impl KeySetState {
    fn step(&self, kid: &str, now: Instant, max_age: Duration) -> KeySetStep {
        let since = |moment: Option<Instant>| moment.map_or(Duration::MAX, |then| now.saturating_duration_since(then));
        let failed = since(self.failed.as_ref().map(|(then, _)| *then));
        let Some(keys) = &self.keys else {
            return match &self.failed {
                Some((_, why)) if failed < RETRY && self.flight.is_none() => {
                    KeySetStep::Refuse(Rejection::KeySetUnreachable(why.clone()))
                }
                _ => KeySetStep::Wait,
            };
        };
        let is_inline = self.fetched.is_none();
        let is_rested = since(self.refetched) >= REFETCH && failed >= RETRY;
        let age = since(self.fetched);
        match keys.contains(kid) {
            _ if is_inline => KeySetStep::Use(keys.clone()),
            // After a failure nobody waits for an address that is away.
            true if age >= max_age && self.failed.is_none() => KeySetStep::Wait,
            true if age >= max_age - max_age / AHEAD && is_rested && self.flight.is_none() => {
                KeySetStep::UseAndRefresh(keys.clone())
            }
            true => KeySetStep::Use(keys.clone()),
            false if is_rested || self.flight.is_some() => KeySetStep::Wait,
            false => KeySetStep::Use(keys.clone()),
        }
    }

    fn current(&self, keys: Arc<WebKeySet>, now: Instant, max_age: Duration) -> Current {
        let fresh_for = match self.fetched {
            Some(fetched) => (fetched + max_age).saturating_duration_since(now).max(RETRY),
            None => Duration::MAX,
        };
        Current { keys, fresh_for }
    }

    fn land(&mut self, fetched: Result<WebKeySet, String>, now: Instant) {
        self.flight = None;
        match fetched {
            Ok(keys) => {
                match &self.keys {
                    Some(before) if before.is_same(&keys) => {}
                    before => {
                        before.iter().for_each(|before| before.withdraw());
                        self.keys = Some(Arc::new(keys));
                    }
                }
                self.fetched = Some(now);
                self.failed = None;
            }
            Err(why) => self.failed = Some((now, why)),
        }
    }
}

fn unusable(why: &'static str) -> Rejection {
    Rejection::KeySetUnreachable(why.into())
}

#[cfg(test)]
mod tests;
