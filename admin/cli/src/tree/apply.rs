//! Does what a plan says, step by step, and remembers each step in the lock as soon as it is done. What a failed step is needed
//! for is left out; everything else goes on, and running again goes on from there. Where a secret or the lock cannot be written,
//! nothing new is started.

use super::address::Address;
use super::lock::Lock;
use super::plan::{Action, Plan, Step};
use super::state::State;
use super::write;
use crate::http::{Call, segment};
use crate::kinds::Identity;
use crate::objects::path_of;
use crate::outcome::Failure;
use crate::session::Session;
use futures::{StreamExt, stream};
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;

pub struct Run<'a> {
    pub session: &'a Session,
    pub folder: &'a Path,
    pub parallel: usize,
    pub done: usize,
    pub failures: Vec<(Address, Failure)>,
}

/// What a step left behind.
enum Done {
    Made(write::Made),
    Changed,
    Deleted,
}

impl<'a> Run<'a> {
    pub fn new(session: &'a Session, folder: &'a Path, parallel: usize) -> Self {
        Self { session, folder, parallel: parallel.max(1), done: 0, failures: Vec::new() }
    }

    /// `save` puts the secret of a key where it is wanted, before anything else happens to the key.
    pub async fn apply(
        &mut self,
        plan: &Plan,
        lock: &mut Lock,
        save: &mut impl FnMut(&Address, &str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let kinds: BTreeSet<&str> = plan
            .steps
            .iter()
            .flat_map(|step| step.depends_on.iter().chain([&step.address]))
            .map(|found| found.kind)
            .collect();
        let kinds = super::state::all_kinds().filter(|kind| kinds.contains(kind.name));
        let mut state = State::load(self.session, kinds).await?;
        if state.organisation != plan.organisation {
            return Err(Failure::new("the plan was made for another organisation"));
        }
        for step in &plan.unchanged {
            lock.put(&plan.organisation, &step.address, &step.id, &step.applied)?;
        }
        let mut pending: Vec<&Step> =
            plan.steps.iter().filter(|step| step.note.is_empty() || !is_held_back(step.action)).collect();
        let is_stopped = Cell::new(false);
        while !pending.is_empty() {
            let (batch, rest) = next_batch(pending);
            pending = rest;
            let (ready, blocked): (Vec<&Step>, Vec<&Step>) =
                batch.into_iter().partition(|step| !self.is_blocked(step) && !is_stopped.get());
            for step in blocked {
                let why = if is_stopped.get() {
                    "left out: the run was stopped"
                } else {
                    "left out: what it needs could not be done"
                };
                self.failures.push((step.address.clone(), Failure::new(why)));
            }
            let mut results = Vec::new();
            {
                let (session, folder, state, is_stopped) = (self.session, self.folder, &state, &is_stopped);
                let runs = ready.into_iter().map(|step| async move {
                    match is_stopped.get() {
                        true => (step, Err(Failure::new("left out: the run was stopped"))),
                        false => (step, one(session, state, folder, step).await),
                    }
                });
                let mut running = stream::iter(runs).buffer_unordered(self.parallel);
                while let Some((step, result)) = running.next().await {
                    match result {
                        Ok(done) => {
                            let saved = match &done {
                                Done::Made(write::Made { secret: Some(secret), .. }) => save(&step.address, secret),
                                _ => Ok(()),
                            };
                            let saved =
                                saved.map_err(|why| Failure::new(format!("made, and its secret is lost: {why}")));
                            let remembered = remember(lock, &plan.organisation, step, &done);
                            for failure in [saved, remembered].into_iter().filter_map(Result::err) {
                                is_stopped.set(true);
                                self.failures.push((step.address.clone(), failure));
                            }
                            results.push((step, Ok(done)));
                        }
                        Err(failure) => results.push((step, Err(failure))),
                    }
                }
            }
            for (step, result) in results {
                match result {
                    Ok(Done::Made(made)) => {
                        self.done += 1;
                        state.insert(step.address.clone(), made.row);
                    }
                    Ok(_) => self.done += 1,
                    Err(failure) => self.failures.push((step.address.clone(), failure)),
                }
            }
        }
        // They keep nothing else from being done: the objects are there.
        for step in plan.steps.iter().filter(|step| step.action == Action::Impossible) {
            self.failures.push((step.address.clone(), Failure::new(step.note.clone())));
        }
        Ok(())
    }

    fn is_blocked(&self, step: &Step) -> bool {
        self.failures.iter().any(|(failed, _)| step.depends_on.contains(failed))
    }
}

/// Whether a note says why a step of this sort is not done.
fn is_held_back(action: Action) -> bool {
    matches!(action, Action::Delete | Action::Impossible)
}

/// The first steps, up to one that needs another of them. Deletions go one by one.
fn next_batch(pending: Vec<&Step>) -> (Vec<&Step>, Vec<&Step>) {
    let mut addresses = BTreeSet::new();
    let mut end = 0;
    for step in &pending {
        let needs_another = step.depends_on.iter().any(|address| addresses.contains(address));
        if end > 0 && (needs_another || step.action == Action::Delete) {
            break;
        }
        addresses.insert(step.address.clone());
        end += 1;
    }
    let rest = pending[end..].to_vec();
    (pending[..end].to_vec(), rest)
}

async fn one(session: &Session, state: &State<'_>, folder: &Path, step: &Step) -> Result<Done, Failure> {
    let kind = step.address.kind();
    let mut body = Map::new();
    for (field, value) in &step.body {
        body.insert(field.clone(), state.filled(value, &step.address, folder)?);
    }
    match step.action {
        Action::Create => {
            // Names are not unique, so nobody else refuses a second one.
            if kind.identity == Identity::Name && state.find(&step.address)?.is_some() {
                return Err(Failure::Conflict(format!("{} has been made meanwhile", step.address)));
            }
            Ok(Done::Made(write::create(session, state, &step.address, body).await?))
        }
        Action::Update | Action::Conflict => {
            let call = Call::new(Method::PUT, path_of(kind, &step.id)).body(Value::Object(body));
            write::update(session, kind, &step.id, call.only_as_read(&step.etag)).await?;
            Ok(Done::Changed)
        }
        Action::Impossible => Err(Failure::new(step.note.clone())),
        Action::Delete => {
            let mut call = Call::new(Method::DELETE, format!("{}/{}", kind.path, segment(&step.id)));
            if kind.name == "workspace" {
                let found = session.client.look_up(Call::get(path_of(kind, &step.id))).await?;
                call = call.body(json!({ "name": found.body["name"] }));
            }
            session.client.call(call.only_as_read(&step.etag)).await?;
            Ok(Done::Deleted)
        }
    }
}

fn remember(lock: &mut Lock, organisation: &str, step: &Step, done: &Done) -> Result<(), Failure> {
    match done {
        Done::Made(made) => lock.put(organisation, &step.address, &made.row.id, &step.applied),
        Done::Changed => lock.put(organisation, &step.address, &step.id, &step.applied),
        Done::Deleted => lock.remove(organisation, &step.address),
    }
}
