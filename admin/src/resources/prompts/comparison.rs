//! What changed between two versions of a prompt: field by field, messages one by one, and texts of several lines by the
//! lines that went and came. Bounded, because templates are a megabyte of anything: what does not fit is left out and
//! said so.

use super::Prompt;
use super::line_diff::{LineChange, line_changes};
use super::render::blocking;
use super::version::PromptVersion;
use crate::app::App;
use crate::crud::versions::diff::{DiffOperation, Difference, diff_within};
use crate::crud::{self, Answer, RowLock};
use crate::http::ApiError;
use crate::http::backpressure::turns::Turns;
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use serde_json::{Value, json};
use shared::prompt::VersionName;
use std::sync::LazyLock;
use std::time::Duration;

pub const MAX_DIFFERENCES: usize = 1000;
/// Of all texts together.
pub const MAX_LINES: usize = 5000;
/// Versions that are compared at once, of all and of one organisation. They take a core each.
static TURNS: LazyLock<Turns> = LazyLock::new(|| Turns::new(2, 1, MAX_WAIT));
/// As long as a comparison waits for its turn.
const MAX_WAIT: Duration = Duration::from_secs(10);
const TOO_MANY: ApiError =
    ApiError::RateLimited { message: "Too many versions are being compared; try again shortly", retry_after: 5 };

#[derive(Debug, Serialize)]
struct PromptDifference {
    #[serde(flatten)]
    change: Difference,
    /// In place of both values, where a text of several lines was replaced.
    lines: Option<Vec<LineChange>>,
}

/// From the default version to the latest one, unless others are named: what publishing would change.
pub async fn compare_versions(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let query = call.query();
    let named = |field: &str, otherwise: &'static str| query.text(field).unwrap_or(otherwise).to_owned();
    let (from, to) = (named("from", "default"), named("to", "latest"));
    let db = app.db.get().await?;
    let workspace = tenancy::asked(&*db, &call.caller, query.text("workspace_id")).await?;
    let prompt = crud::find::<Prompt>(&*db, &call, &name, workspace, RowLock::No).await?;
    let from = prompt.version(&*db, VersionName::parse(&from)).await?;
    let to = prompt.version(&*db, VersionName::parse(&to)).await?;
    drop(db);
    let turn = TURNS.enter(call.caller.organisation_id()).await.ok_or(TOO_MANY)?;
    Ok(Json(
        blocking(move || {
            // Kept to the end, also when nobody waits for the answer any more.
            let _turn = turn;
            Ok(comparison(&from, &to))
        })
        .await?,
    ))
}

fn comparison(from: &PromptVersion, to: &PromptVersion) -> Value {
    let (mut before, mut after) = (from.content(), to.content());
    (before["string"], after["string"]) = templates(&from.template, &to.template);
    let (data, is_complete) = differences(&before, &after);
    json!({
        "object": "list",
        "total": data.len(),
        "data": data,
        "from": { "id": from.id, "version": from.number },
        "to": { "id": to.id, "version": to.number },
        "is_complete": is_complete,
    })
}

/// Templates that are JSON are compared as what they hold; all others as texts.
fn templates(from: &str, to: &str) -> (Value, Value) {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok().filter(|read| read.is_array() || read.is_object());
    match (read(from), read(to)) {
        (Some(from), Some(to)) => (from, to),
        _ => (from.into(), to.into()),
    }
}

fn differences(from: &Value, to: &Value) -> (Vec<PromptDifference>, bool) {
    let (found, mut is_complete) = diff_within(from, to, MAX_DIFFERENCES);
    let mut lines_left = MAX_LINES;
    let shown = found.into_iter().map(|mut change| {
        let lines = match (change.op, &change.from, &change.to) {
            (DiffOperation::Replace, Some(Value::String(from)), Some(Value::String(to)))
                if from.contains('\n') || to.contains('\n') =>
            {
                // What could not be shown is not looked for.
                let mut lines = if lines_left == 0 { Vec::new() } else { line_changes(from, to) };
                is_complete &= lines_left > 0;
                is_complete &= lines.len() <= lines_left;
                lines.truncate(lines_left);
                lines_left -= lines.len();
                Some(lines)
            }
            _ => None,
        };
        if lines.is_some() {
            (change.from, change.to) = (None, None);
        }
        PromptDifference { change, lines }
    });
    let shown = shown.collect();
    (shown, is_complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(from: (&str, Value), to: (&str, Value)) -> (Value, bool) {
        let (before, after) = templates(from.0, to.0);
        let content = |string: Value, rest: Value| json!({ "string": string, "parameters": rest });
        let (found, is_complete) = differences(&content(before, from.1), &content(after, to.1));
        (json!(found), is_complete)
    }

    #[test]
    fn messages_are_compared_one_by_one_and_their_texts_by_lines() {
        let message = |text: &str| json!([{ "role": "user", "content": text }]).to_string();
        let (found, is_complete) = compared(
            (&message("Hi {{name}}.\nBe kind.\nBye."), json!({ "temperature": 0.5 })),
            (&message("Hi {{name}}.\nBe brief.\nBye."), json!({ "temperature": 1, "seed": 7 })),
        );
        let expected = json!([
            { "op": "replace", "path": "string[0].content", "from": null, "to": null, "lines": [
                { "op": "remove", "line": 2, "text": "Be kind." }, { "op": "add", "line": 2, "text": "Be brief." },
            ]},
            { "op": "replace", "path": "parameters.temperature", "from": 0.5, "to": 1, "lines": null },
            { "op": "add", "path": "parameters.seed", "from": null, "to": 7, "lines": null },
        ]);
        assert_eq!((found, is_complete), (expected, true));
    }

    #[test]
    fn a_text_that_became_messages_is_compared_as_text() {
        let (found, _) = compared(("plain", json!({})), (r#"[{"role":"user"}]"#, json!({})));
        let expected = json!([{ "op": "replace", "path": "string", "from": "plain", "to": r#"[{"role":"user"}]"#, "lines": null }]);
        assert_eq!(found, expected);
        assert_eq!(compared(("[1, 2]", json!({})), ("[1,2]", json!({}))).0, json!([]), "spaces between are nothing");
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said_so() {
        let many = |value: i32| Value::Object((0..2000).map(|n| (format!("p{n}"), json!(value))).collect());
        let (found, is_complete) = compared(("", many(1)), ("", many(2)));
        assert_eq!((found.as_array().unwrap().len(), is_complete), (MAX_DIFFERENCES, false));
        let lines = |word: &str| (0..6000).map(|n| format!("{word}{n}\n")).collect::<String>();
        let (found, is_complete) = compared((&lines("a"), json!({})), (&lines("b"), json!({})));
        assert_eq!((found[0]["lines"].as_array().unwrap().len(), is_complete), (MAX_LINES, false));
    }
}
