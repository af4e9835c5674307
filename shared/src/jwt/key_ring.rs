//! The key sets of all organisations, fetched when first needed and kept for a day. However many requests ask for a
//! set at once, it is fetched once; a key id that the set does not have makes it be fetched anew, but not more often
//! than a stranger's tokens should be able to cause. A set that is a day old is not used again before it was asked for,
//! so a withdrawn key dies within a day; in the hour before it is fetched without making anybody wait. While an address
//! is away, the keys it gave last go on working.

use super::keys::Keys;
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

/// A set is fetched again after this long.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// So long before, it is fetched in the background.
const AHEAD: Duration = Duration::from_secs(60 * 60);
/// Between two fetches that unknown key ids cause.
const REFETCH: Duration = Duration::from_secs(30);
/// After a fetch that failed.
const RETRY: Duration = Duration::from_secs(5);
/// The longest a fetch may take.
pub const FETCH_WITHIN: Duration = Duration::from_secs(5);
/// The longest answer that is read as a key set.
pub const LONGEST_SET: usize = 512 << 10;

/// Where an organisation's keys come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    Url(String),
    Inline(Arc<Value>),
}

impl KeySource {
    /// From an organisation's auth settings.
    pub fn of(url: Option<&str>, inline: Option<Value>) -> Option<Self> {
        match (url, inline) {
            (Some(url), _) => Some(Self::Url(url.to_owned())),
            (None, Some(set)) if !set.is_null() => Some(Self::Inline(Arc::new(set))),
            _ => None,
        }
    }
}

/// Gets the body behind a URL, or says in a few words why not. It is given `FETCH_WITHIN`.
pub type Fetch = Box<dyn Fn(String) -> BoxFuture<'static, Result<Vec<u8>, String>> + Send + Sync>;

pub struct KeyRing {
    fetch: Arc<Fetch>,
    organisations: RwLock<HashMap<Uuid, Arc<Entry>>>,
}

struct Entry {
    source: KeySource,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keys: Option<Arc<Keys>>,
    fetched: Option<Instant>,
    refetched: Option<Instant>,
    failed: Option<(Instant, String)>,
    flight: Option<Flight>,
}

/// A fetch under way. It runs in a task of its own: those who wait may leave without ending it.
type Flight = Shared<BoxFuture<'static, ()>>;

/// The keys that hold now.
pub struct Current {
    pub keys: Arc<Keys>,
    /// How long what they verify may be believed without asking again.
    pub fresh_for: Duration,
}

enum Step {
    Use(Arc<Keys>),
    /// Good enough, but it is time to fetch them again.
    UseAndRefresh(Arc<Keys>),
    Wait,
    Refuse(Rejection),
}

impl KeyRing {
    pub fn new(fetch: Fetch) -> Self {
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
        let entry = self.entry(organisation, source)?;
        let flight = {
            let mut state = entry.state.lock();
            match state.step(kid, now) {
                Step::Use(keys) => return Ok(state.current(keys, now)),
                Step::UseAndRefresh(keys) => {
                    // Nobody waits for it.
                    drop(self.depart(&entry, &mut state, now));
                    return Ok(state.current(keys, now));
                }
                Step::Refuse(rejection) => return Err(rejection),
                Step::Wait => self.depart(&entry, &mut state, now),
            }
        };
        flight.await;
        let state = entry.state.lock();
        match (&state.keys, &state.failed) {
            (Some(keys), None) => Ok(state.current(keys.clone(), now)),
            (Some(keys), Some(_)) if keys.contains(kid) => Ok(state.current(keys.clone(), now)),
            (_, Some((_, why))) => Err(Rejection::KeySetUnreachable(why.clone())),
            (None, None) => Err(Rejection::KeySetUnreachable("it was not answered".into())),
        }
    }

    fn entry(&self, organisation: Uuid, source: &KeySource) -> Result<Arc<Entry>, Rejection> {
        if let Some(entry) = self.organisations.read().get(&organisation).filter(|entry| entry.source == *source) {
            return Ok(entry.clone());
        }
        let keys = match source {
            KeySource::Url(_) => None,
            KeySource::Inline(set) => Some(Arc::new(Keys::of(set).map_err(unusable)?)),
        };
        let state = Mutex::new(State { keys, ..State::default() });
        let entry = Arc::new(Entry { source: source.clone(), state });
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

    fn depart(&self, entry: &Arc<Entry>, state: &mut State, now: Instant) -> Flight {
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
                Ok(Ok(body)) => Keys::parse(&body).map_err(str::to_owned),
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

impl State {
    fn step(&self, kid: &str, now: Instant) -> Step {
        let since = |moment: Option<Instant>| moment.map_or(Duration::MAX, |then| now.saturating_duration_since(then));
        let failed = since(self.failed.as_ref().map(|(then, _)| *then));
        let Some(keys) = &self.keys else {
            return match &self.failed {
                Some((_, why)) if failed < RETRY && self.flight.is_none() => {
                    Step::Refuse(Rejection::KeySetUnreachable(why.clone()))
                }
                _ => Step::Wait,
            };
        };
        let is_inline = self.fetched.is_none();
        let is_rested = since(self.refetched) >= REFETCH && failed >= RETRY;
        let age = since(self.fetched);
        match keys.contains(kid) {
            _ if is_inline => Step::Use(keys.clone()),
            // After a failure nobody waits for an address that is away.
            true if age >= KEPT && self.failed.is_none() => Step::Wait,
            true if age >= KEPT - AHEAD && is_rested && self.flight.is_none() => Step::UseAndRefresh(keys.clone()),
            true => Step::Use(keys.clone()),
            false if is_rested || self.flight.is_some() => Step::Wait,
            false => Step::Use(keys.clone()),
        }
    }

    fn current(&self, keys: Arc<Keys>, now: Instant) -> Current {
        let fresh_for = match self.fetched {
            Some(fetched) => (fetched + KEPT).saturating_duration_since(now).max(RETRY),
            None => Duration::MAX,
        };
        Current { keys, fresh_for }
    }

    fn land(&mut self, fetched: Result<Keys, String>, now: Instant) {
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
