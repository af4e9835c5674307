//! What others said, for the run of the hooks, which itself waits for nobody: it takes what is here, and notes what is not.

use super::super::hook::CompiledCheck;
use serde_json::Value;
use shared::guardrails::{Subject, Verdict};
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Which check of which hook. One that transforms is asked again where another transformed before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    pub hook: usize,
    pub check: usize,
    pub is_again: bool,
}

/// A check that was met unanswered, and what it is to judge.
pub struct Wanted {
    pub place: Place,
    pub json: Value,
}

/// What somebody else said, and how long that took.
#[derive(Clone)]
pub struct RemoteVerdict {
    pub verdict: Verdict,
    pub took: Duration,
    /// Bytes of the answers that it was read from.
    pub size: usize,
    /// Keeps their memory counted.
    pub _held: Option<Arc<dyn Any + Send + Sync>>,
}

#[derive(Default)]
pub struct RemoteAnswers {
    known: HashMap<Place, RemoteVerdict>,
    wanted: Option<Wanted>,
    /// Whether what is not known can be asked for; otherwise it stays unasked.
    can_ask: bool,
    /// Checks that were counted, since a run may begin anew.
    counted: HashSet<Place>,
    /// When the run must be over.
    until: Option<Instant>,
}

impl RemoteAnswers {
    pub fn to_be_asked() -> Self {
        Self { can_ask: true, ..Self::default() }
    }

    /// A run begins that may compute until then.
    pub fn begin(&mut self, until: Instant) {
        self.until = Some(until);
    }

    /// Whether it must be over at this time.
    pub fn is_late(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    pub fn put(&mut self, place: Place, verdict: RemoteVerdict) {
        self.known.insert(place, verdict);
    }

    /// Bytes of all that is known.
    pub fn size(&self) -> usize {
        self.known.values().map(|verdict| verdict.size).sum()
    }

    pub fn take_wanted(&mut self) -> Option<Wanted> {
        self.wanted.take()
    }

    /// The run cannot go on before somebody was asked.
    pub fn is_waiting(&self) -> bool {
        self.wanted.is_some()
    }

    /// Whether a check is to be counted: once, however often its hook is run.
    pub fn counts(&mut self, hook: usize, check: usize) -> bool {
        !self.is_waiting() && (!self.can_ask || self.counted.insert(Place { hook, check, is_again: false }))
    }
}

/// What a check says now: by itself, or as somebody else answered.
pub fn ask(
    check: &CompiledCheck,
    subject: &Subject<'_>,
    answers: &mut RemoteAnswers,
    place: Place,
    now: Instant,
) -> RemoteVerdict {
    let is_late = answers.is_late(now);
    let by_itself = || {
        let verdict = if is_late { too_costly(check) } else { check.check.run(subject) };
        RemoteVerdict { verdict, took: Duration::ZERO, size: 0, _held: None }
    };
    if check.check.remote().is_none() {
        return by_itself();
    }
    if let Some(known) = answers.known.get(&place) {
        return known.clone();
    }
    if answers.can_ask && answers.wanted.is_none() {
        answers.wanted = Some(Wanted { place, json: subject.json().clone() });
    }
    // That nobody was asked.
    by_itself()
}

/// There is no time left for it. What it did not look at does not pass for that, nor does what it did not replace.
pub fn too_costly(check: &CompiledCheck) -> Verdict {
    let why = "the checks before it took as long as all of them may";
    match check.check.replace("", true) {
        Some(_) => Verdict::unreplaced("TooCostly", why),
        None => Verdict::bound("TooCostly", why),
    }
}
