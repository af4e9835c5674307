//! What has to be done so that a gateway holds what the files say. A plan can be saved: its steps carry the tags of the objects as
//! they were read, and names of variables in place of secrets.

use super::address::Address;
pub use super::compare::Change;
use super::compare::{MERGED, differences};
use super::documents::{Object, Tree};
use super::live::MASK;
use super::lock::{Applied, Lock};
use super::state::{Live, State};
use crate::kinds::{Kind, SECRET_FIELDS};
use crate::outcome::Failure;
use crate::secrets::{self, PLACEHOLDER};
use crate::session::Session;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const VERSION: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Create,
    Update,
    Delete,
    /// Somebody else changed it since it was applied; nothing is done unless that is to be overwritten.
    Conflict,
    /// A field differs that cannot be changed in an object that exists.
    Impossible,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Step {
    pub action: Action,
    pub address: Address,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub id: String,
    /// The tag of the object as it was read.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub etag: String,
    pub changes: Vec<Change>,
    /// What is sent: templates.
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    pub body: Map<String, Value>,
    /// All that the file says, for the lock; without secrets.
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    pub applied: Map<String, Value>,
    pub depends_on: Vec<Address>,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub note: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Plan {
    pub version: u32,
    pub gateway: String,
    pub organisation: String,
    /// Where the files and their lock are, as it was given: relative to where the program is run.
    pub folder: PathBuf,
    pub objects: usize,
    pub steps: Vec<Step>,
    /// Objects that are as the files say, for the lock.
    pub unchanged: Vec<Step>,
    /// Fields that hold secrets, which nobody can compare.
    pub not_compared: usize,
}

#[derive(Debug, Default)]
pub struct Options {
    pub prune: bool,
    pub max_deletes: usize,
    pub take_over: bool,
    /// Send secret fields again, although it is not known whether they differ.
    pub write_secrets: bool,
    pub targets: Vec<String>,
}

impl Plan {
    pub fn count(&self, action: Action) -> usize {
        self.steps.iter().filter(|step| step.action == action).count()
    }

    pub fn parse(text: &str) -> Result<Self, Failure> {
        let plan: Self =
            serde_json::from_str(text).map_err(|error| Failure::new(format!("this is no plan: {error}")))?;
        match plan.version {
            VERSION => Ok(plan),
            _ => Err(Failure::new("the plan is of another version of portcullis")),
        }
    }
}

/// Compares files with a gateway.
pub async fn make(session: &Session, tree: &Tree, lock: &Lock, options: &Options) -> Result<Plan, Failure> {
    if options.prune && !tree.is_whole {
        return Err(Failure::new("--prune needs the whole folder: one file does not say what the others hold"));
    }
    let own = State::load(session, kinds_of(tree, lock)).await?;
    let canonical: BTreeMap<Address, &Object> =
        tree.objects.iter().map(|(address, object)| (own.canonical(address), object)).collect();
    let is_meant = |address: &Address| {
        options.targets.is_empty() || options.targets.iter().any(|target| *target == address.to_string())
    };
    for target in &options.targets {
        if !tree.objects.keys().chain(canonical.keys()).any(|address| address.to_string() == *target) {
            return Err(Failure::new(format!("{target} is not in these files")));
        }
    }
    let mut wanted = Vec::new();
    for address in canonical.keys().filter(|address| is_meant(address)) {
        if own.find(address)?.is_some() {
            wanted.push(address.clone());
        }
    }
    let gone: Vec<&Applied> = lock
        .applied(&own.organisation)
        .filter(|_| tree.is_whole && options.targets.is_empty())
        .filter(|applied| !canonical.contains_key(&applied.address))
        .filter(|applied| own.find(&applied.address).ok().flatten().is_some_and(|row| row.id == applied.id))
        .collect();
    wanted.extend(gone.iter().map(|applied| applied.address.clone()));
    let live = own.read(wanted).await?;
    let mut plan = Plan {
        version: VERSION,
        gateway: session.url.clone(),
        organisation: own.organisation.clone(),
        folder: tree.folder.clone(),
        objects: canonical.len(),
        steps: Vec::new(),
        unchanged: Vec::new(),
        not_compared: 0,
    };
    for (address, object) in canonical.iter().filter(|(address, _)| is_meant(address)) {
        let depends_on = tree.dependencies(&object.address).iter().map(|found| own.canonical(found)).collect();
        let step = Step {
            action: Action::Create,
            address: address.clone(),
            id: own.find(address)?.map(|row| row.id.clone()).unwrap_or_default(),
            etag: String::new(),
            changes: Vec::new(),
            body: Map::new(),
            applied: Map::new(),
            depends_on,
            note: String::new(),
        };
        let applied = lock.find(&own.organisation, address).filter(|applied| applied.id == step.id);
        let step = compare(&own, object, step, live.get(address), applied, options, &mut plan.not_compared);
        if step.changes.is_empty() && step.action != Action::Create {
            plan.unchanged.push(step)
        } else {
            plan.steps.push(step)
        }
    }
    sort(&mut plan.steps);
    plan.steps.extend(deletions(&gone, &live, options));
    Ok(plan)
}

fn kinds_of(tree: &Tree, lock: &Lock) -> Vec<&'static Kind> {
    let names: BTreeSet<&str> = tree.objects.keys().map(|address| address.kind).chain(lock.kinds()).collect();
    super::state::all_kinds().filter(|kind| names.contains(kind.name)).collect()
}

fn compare(
    own: &State<'_>,
    object: &Object,
    mut step: Step,
    live: Option<&Live>,
    applied: Option<&Applied>,
    options: &Options,
    not_compared: &mut usize,
) -> Step {
    let meant: Map<String, Value> = object
        .fields
        .iter()
        .filter(|(field, _)| object.is_managed(field))
        .map(|(field, value)| (field.clone(), own.named(value, &step.address, false)))
        .collect();
    step.applied = meant
        .iter()
        .filter(|(field, _)| !SECRET_FIELDS.contains(&field.as_str()))
        .map(|(field, value)| (field.clone(), secrets::redacted(field, value)))
        .collect();
    let secret_fields = || meant.iter().filter(|(field, value)| secrets::has_secret(field, value));
    *not_compared += secret_fields().count();
    let Some(live) = live else {
        // All that the file says, whether it is managed later or not.
        step.body = object
            .fields
            .iter()
            .map(|(field, value)| (field.clone(), own.named(value, &step.address, false)))
            .collect();
        step.id = String::new();
        return step;
    };
    step.action = Action::Update;
    step.etag = live.etag.clone();
    for difference in differences(step.address.kind(), &meant, &live.fields) {
        if difference.is_fixed {
            step.action = Action::Impossible;
            step.note = format!("{} cannot be changed: delete the object and make it again", difference.field);
        }
        let file = completed(&difference.field, &meant[&difference.field], live.fields.get(&difference.field));
        if is_foreign_change(applied, &difference.field, &live.fields)
            && !options.take_over
            && step.action != Action::Impossible
        {
            step.action = Action::Conflict;
            step.note = format!("changed since it was applied, at {}", live.changed_at);
        }
        step.changes.extend(difference.changes);
        step.body.insert(difference.field, file);
    }
    if options.write_secrets {
        for (field, value) in secret_fields() {
            step.changes.push(Change { path: field.clone(), from: Value::Null, to: PLACEHOLDER.into() });
            step.body.entry(field.clone()).or_insert_with(|| value.clone());
        }
    }
    if step.action == Action::Impossible {
        step.body.clear();
    }
    step
}

/// A change replaces a whole field, so the parts that are not ours are sent as they are. Fields with secrets are merged by the
/// server instead: there a part goes away only by being null.
fn completed(field: &str, file: &Value, live: Option<&Value>) -> Value {
    match (file, live) {
        (Value::Object(file), Some(Value::Object(live))) if MERGED.contains(&field) => {
            let mut parts = live.clone();
            parts.extend(file.clone());
            Value::Object(parts)
        }
        (Value::Object(file), Some(Value::Object(live))) if SECRET_FIELDS.contains(&field) => {
            let mut parts = file.clone();
            for name in live.keys().filter(|name| !name.starts_with(MASK)) {
                parts.entry(name.clone()).or_insert(Value::Null);
            }
            Value::Object(parts)
        }
        _ => file.clone(),
    }
}

/// Whether what is there is not what was applied: then somebody else wrote it.
fn is_foreign_change(applied: Option<&Applied>, field: &str, live: &Map<String, Value>) -> bool {
    let changed = applied.map(|applied| applied.changed_fields(live)).unwrap_or_default();
    changed.iter().any(|path| path.split('.').next() == Some(field))
}

/// What others need comes first.
fn sort(steps: &mut [Step]) {
    let needs: BTreeMap<Address, Vec<Address>> =
        steps.iter().map(|step| (step.address.clone(), step.depends_on.clone())).collect();
    fn depth(address: &Address, needs: &BTreeMap<Address, Vec<Address>>, seen: usize) -> usize {
        let below = needs.get(address).into_iter().flatten().filter(|other| other.kind == address.kind);
        // Circles are faults of the files; here they only must come to an end.
        if seen > needs.len() { 0 } else { below.map(|other| 1 + depth(other, needs, seen + 1)).max().unwrap_or(0) }
    }
    steps.sort_by_cached_key(|step| (step.address.kind().rank, depth(&step.address, &needs, 0), step.address.clone()));
}

/// In the opposite order: what is used by others goes after them.
fn deletions(gone: &[&Applied], live: &BTreeMap<Address, Live>, options: &Options) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for applied in gone {
        let Some(found) = live.get(&applied.address) else { continue };
        let note = match () {
            () if !options.prune => "applied from here and gone from the files: --prune deletes it",
            () if gone.len() > options.max_deletes => "more would be deleted than --max-deletes allows",
            () => "",
        };
        steps.push(Step {
            action: Action::Delete,
            address: applied.address.clone(),
            id: applied.id.clone(),
            etag: found.etag.clone(),
            changes: Vec::new(),
            body: Map::new(),
            applied: Map::new(),
            depends_on: Vec::new(),
            note: note.to_owned(),
        });
    }
    sort(&mut steps);
    steps.reverse();
    steps
}

/// The plan for people.
pub fn text(plan: &Plan) -> String {
    let mut text = format!("Plan for {}, {} objects\n", plan.gateway, plan.objects);
    for step in &plan.steps {
        let mark = match step.action {
            Action::Create => '+',
            Action::Update => '~',
            Action::Delete => '-',
            Action::Conflict => '≠',
            Action::Impossible => '!',
        };
        let address = crate::output::printable(&step.address.to_string());
        text += format!("  {mark} {address}  {}", step.note).trim_end();
        text.push('\n');
        let width = step.changes.iter().map(|change| change.path.chars().count()).max().unwrap_or(0);
        for change in &step.changes {
            let path = crate::output::printable(&change.path);
            text += &format!("      {path:<width$}  {} → {}\n", shown(&change.from), shown(&change.to));
        }
    }
    let held_back = plan.steps.iter().filter(|step| step.action == Action::Delete && !step.note.is_empty()).count();
    text += &format!(
        "{} to add, {} to change, {} to delete ({held_back} held back), {} in conflict.\n",
        plan.count(Action::Create),
        plan.count(Action::Update),
        plan.count(Action::Delete) - held_back,
        plan.count(Action::Conflict),
    );
    let impossible = plan.count(Action::Impossible);
    if impossible > 0 {
        text += &format!("{impossible} cannot be done.\n");
    }
    if plan.not_compared > 0 {
        text += &format!("{} secret fields are not compared; --write-secrets sends them again.\n", plan.not_compared);
    }
    text
}

fn shown(value: &Value) -> String {
    const MAX_LETTERS: usize = 100;
    let text = crate::output::printable(&value.to_string());
    if text.chars().count() <= MAX_LETTERS { text } else { text.chars().take(MAX_LETTERS).chain(['…']).collect() }
}

/// Whether applying it would change anything.
pub fn has_changes(plan: &Plan) -> bool {
    !plan.steps.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_part_that_the_file_no_longer_says_is_cleared_where_the_server_merges() {
        let live = json!({ "region": "eu", "masked_secret": "ab*****cd", "host": "h" });
        let file = json!({ "region": "us", "secret": "${env:S}" });
        let expected = json!({ "region": "us", "secret": "${env:S}", "host": null });
        assert_eq!(completed("configurations", &file, Some(&live)), expected);
        assert_eq!(completed("config", &file, Some(&live)), file);
    }
}
