//! Objects of every kind, made through the interface of the old programs as operators and applications make them, read by the
//! same programs, and read again after the upgrade: whatever was stored must be answered as it was, field by field. New
//! fields are new, and nothing else may differ.

mod kinds;

use super::super::client::{Caller, empty, whole};
use anyhow::{Context as _, ensure};
use http::{HeaderValue, Method, StatusCode, header};
use kinds::Step;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The longest that an old program may take until something that it does by itself is done.
const PATIENCE: Duration = Duration::from_secs(60);
/// Rows of a list that are read.
const PAGES: usize = 5;
const PAGE: usize = 100;

/// Who asks: for the whole organisation, and with a key of a workspace.
pub struct Callers {
    pub administrator: Caller,
    pub application: Caller,
}

/// What was made, and how it was answered then.
pub struct Objects {
    answers: Vec<Stored>,
    kinds: BTreeSet<&'static str>,
    /// What this release could not make yet.
    not_built: BTreeSet<&'static str>,
    names: Names,
}

struct Stored {
    kind: &'static str,
    by: By,
    path: String,
    answer: Value,
}

/// Whose key a request is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Administrator,
    Application,
}

/// Fields of what was made, by the name of the step and their own: they stand in the paths and bodies of later steps.
#[derive(Debug, Default)]
pub struct Names(BTreeMap<String, String>);

impl Names {
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn learn(&mut self, step: &str, answer: &Value) {
        let data = answer["data"].as_object();
        for (field, value) in answer.as_object().into_iter().chain(data).flatten() {
            if let Value::String(text) = value {
                self.set(&format!("{step}.{field}"), text);
            }
        }
    }

    /// None where one of them is not known: what it names was not made.
    fn fill(&self, text: &str) -> Option<String> {
        let mut filled = text.to_owned();
        for (name, value) in &self.0 {
            filled = filled.replace(&format!("<{name}>"), value);
        }
        (!filled.contains('<')).then_some(filled)
    }
}

impl Objects {
    /// Makes them all. What a release has no operation for is left out, and told; anything else that is refused is an error.
    pub async fn make(callers: &Callers, names: Names) -> anyhow::Result<Self> {
        let mut objects = Self { answers: Vec::new(), kinds: BTreeSet::new(), not_built: BTreeSet::new(), names };
        for step in kinds::steps() {
            if !objects.take(callers, &step).await.with_context(|| format!("making {}", step.kind))? {
                objects.not_built.insert(step.kind);
            }
        }
        objects.not_built.retain(|kind| !objects.kinds.contains(kind));
        Ok(objects)
    }

    /// False where there is no such operation.
    async fn take(&mut self, callers: &Callers, step: &Step) -> anyhow::Result<bool> {
        let (Some(path), Some(body)) = (self.names.fill(&step.path), self.names.fill(&step.body)) else {
            return Ok(false);
        };
        let (status, answer) = send(callers, step, &path, &body).await?;
        if [StatusCode::NOT_IMPLEMENTED, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&status) {
            return Ok(false);
        }
        ensure!(status.is_success(), "{} {path} {body}: {status}: {answer}", step.method);
        self.names.learn(step.name, &answer);
        self.kinds.insert(step.kind);
        for read in &step.reads {
            let Some(path) = self.names.fill(read) else { continue };
            if !self.answers.iter().any(|stored| stored.path == path) {
                self.answers.push(Stored { kind: step.kind, by: step.by, path, answer: Value::Null });
            }
        }
        Ok(true)
    }

    /// Reads all of them as they are now, once nothing that was begun goes on.
    pub async fn read(&mut self, callers: &Callers) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let mut is_quiet = true;
            for stored in &mut self.answers {
                let (status, answer) = get(callers, stored.by, &stored.path).await?;
                ensure!(status.is_success(), "{}: {status}: {answer}", stored.path);
                is_quiet &= kinds::is_at_rest(stored.kind, &answer);
                stored.answer = answer;
            }
            if is_quiet {
                return Ok(());
            }
            ensure!(begun.elapsed() < PATIENCE, "what was begun does not end");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// What is answered otherwise than it was, each with the place.
    pub async fn differences(&self, callers: &Callers) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        for stored in &self.answers {
            let (status, answer) = get(callers, stored.by, &stored.path).await?;
            match status.is_success() {
                true => compare(stored.kind, &stored.path, &stored.answer, &answer, &mut found),
                false => found.push(format!("{}: {status}: {answer}", stored.path)),
            }
        }
        Ok(found)
    }

    pub fn kinds(&self) -> &BTreeSet<&'static str> {
        &self.kinds
    }

    pub fn not_built(&self) -> &BTreeSet<&'static str> {
        &self.not_built
    }

    /// How many answers are compared, and how many fields they have.
    pub fn size(&self) -> (usize, usize) {
        (self.answers.len(), self.answers.iter().map(|stored| fields(&stored.answer)).sum())
    }

    pub fn name(&self, name: &str) -> Option<&str> {
        self.names.0.get(name).map(String::as_str)
    }
}

fn fields(value: &Value) -> usize {
    match value {
        Value::Object(object) => object.values().map(fields).sum(),
        Value::Array(array) => array.iter().map(fields).sum(),
        _ => 1,
    }
}

async fn send(callers: &Callers, step: &Step, path: &str, body: &str) -> anyhow::Result<(StatusCode, Value)> {
    let caller = callers.of(step.by);
    let mut request = caller.request(step.method.clone(), path, whole(body.to_owned()));
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(step.content_type));
    let (status, text) = caller.answer(request).await?;
    Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
}

/// A whole list has pages, which are read together.
async fn get(callers: &Callers, by: By, path: &str) -> anyhow::Result<(StatusCode, Value)> {
    let caller = callers.of(by);
    let ask = async |path: &str| {
        let (status, text) = caller.answer(caller.request(Method::GET, path, empty())).await?;
        anyhow::Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    };
    let Some((list, "pages")) = path.split_once('#') else { return ask(path).await };
    let sign = if list.contains('?') { '&' } else { '?' };
    let (mut status, mut all) = (StatusCode::OK, Vec::new());
    for number in 0..PAGES {
        let (answered, page) = ask(&format!("{list}{sign}page_size={PAGE}&current_page={number}")).await?;
        status = answered;
        let rows = page["data"].as_array().or_else(|| page["records"].as_array()).cloned();
        let Some(rows) = rows.filter(|_| status.is_success()) else { return Ok((status, page)) };
        let is_last = rows.len() < PAGE;
        all.extend(rows);
        if is_last {
            break;
        }
    }
    Ok((status, serde_json::json!({ "data": all })))
}

/// Notes each field that was there and is another now, or gone.
fn compare(kind: &str, place: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => compare_fields(kind, place, before, after, found),
        (Value::Array(before), Value::Array(after)) => compare_elements(kind, place, before, after, found),
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => {}
        _ if before == after => {}
        _ => found.push(format!("{place}: {before} is {after} now")),
    }
}

fn compare_fields(
    kind: &str,
    place: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    found: &mut Vec<String>,
) {
    for (name, value) in before {
        let place = format!("{place}.{name}");
        if kinds::may_change(kind, name) {
            continue;
        }
        match after.get(name) {
            Some(now) => compare(kind, &place, value, now, found),
            None => found.push(format!("{place}: {value} is gone")),
        }
    }
}

/// Rows of lists are found by their id; a list may have got more of them.
fn compare_elements(kind: &str, place: &str, before: &[Value], after: &[Value], found: &mut Vec<String>) {
    let has_ids = !before.is_empty() && before.iter().all(|one| one["id"].is_string());
    if !has_ids {
        if before.len() != after.len() {
            found.push(format!("{place}: {} elements are {} now", before.len(), after.len()));
        }
        for (number, (before, after)) in before.iter().zip(after).enumerate() {
            compare(kind, &format!("{place}[{number}]"), before, after, found);
        }
        return;
    }
    for one in before {
        let place = format!("{place}[{}]", one["id"]);
        match after.iter().find(|other| other["id"] == one["id"]) {
            Some(now) => compare(kind, &place, one, now, found),
            None => found.push(format!("{place} is gone")),
        }
    }
}

impl Callers {
    fn of(&self, by: By) -> &Caller {
        match by {
            By::Administrator => &self.administrator,
            By::Application => &self.application,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_gone_or_another_is_found_and_what_is_new_is_not() {
        let differences = |before: Value, after: Value| {
            let mut found = Vec::new();
            compare("labels", "x", &before, &after, &mut found);
            found
        };
        let before = json!({ "a": 1, "list": [{ "id": "p", "b": [1, 2] }, { "id": "q", "b": null }] });
        let same = json!({ "new": 1, "list": [{ "id": "new" }, { "id": "q", "b": null }, { "id": "p", "b": [1.0, 2] }], "a": 1.0 });
        assert!(differences(before.clone(), same).is_empty());
        for (after, count) in [
            (json!({ "a": 2, "list": before["list"] }), 1),
            (json!({ "list": before["list"] }), 1),
            (json!({ "a": 1, "list": [{ "id": "p", "b": [1] }] }), 2),
            (json!({ "a": 1, "list": [{ "id": "p", "b": [2, 1] }, { "id": "q", "b": 0 }] }), 3),
            (json!("gone"), 1),
        ] {
            assert_eq!(differences(before.clone(), after.clone()).len(), count, "{after}");
        }
    }

    #[test]
    fn every_step_names_what_came_before_it() {
        let mut names = Names::default();
        for name in ["workspace", "organisation", "owner", "provider", "mcp", "label.id"] {
            names.set(name, "x");
        }
        assert_eq!(names.fill("/a/<owner>"), Some("/a/x".into()));
        assert_eq!(names.fill("/a/<nobody.id>"), None);
        let mut known = names.0.keys().cloned().collect::<Vec<_>>();
        for step in kinds::steps() {
            known.push(step.name.to_owned());
            for text in [&step.path, &step.body] {
                for named in text.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default()) {
                    let of = named.split('.').next().unwrap_or_default();
                    assert!(known.iter().any(|known| known == named || known == of), "{}: <{named}>", step.kind);
                }
            }
        }
    }
}
