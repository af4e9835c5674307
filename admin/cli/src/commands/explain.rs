//! `explain` and `logs why`: where a request would go, or where one went and why.

use super::api;
use crate::http::Call;
use crate::outcome::{Exit, Failure};
use crate::output::{self, printable};
use crate::session::Session;
use reqwest::Method;
use serde_json::{Value, json};

/// Say what would become of a request without asking a provider.
#[derive(clap::Args)]
pub struct Explain {
    /// The body of the request, from a file of JSON or YAML, or from stdin (-).
    #[arg(short = 'f', long, value_name = "FILE")]
    file: String,
    /// The path of the request.
    #[arg(long, default_value = "/v1/chat/completions")]
    path: String,
    /// A config that is not saved, from a file: what would it do?
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// A header of the request, as "x-gateway-config: main".
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
}

pub async fn run(session: &Session, explain: &Explain) -> Result<Exit, Failure> {
    let mut headers = serde_json::Map::new();
    for header in &explain.headers {
        let (name, value) =
            header.split_once(':').ok_or_else(|| Failure::new(format!("`{header}` is not NAME: VALUE")))?;
        headers.insert(name.trim().to_lowercase(), value.trim().into());
    }
    if let Some(config) = &explain.config {
        headers.insert("x-gateway-config".into(), api::body(config)?.to_string().into());
    }
    let mut question =
        json!({ "method": "POST", "path": explain.path, "headers": headers, "body": api::body(&explain.file)? });
    if let Some(workspace) = &session.workspace {
        question["workspace_id"] = workspace.clone().into();
    }
    ask(session, question).await?;
    session.output.hint("portcullis try \"Hello\" -m MODEL");
    Ok(Exit::Fine)
}

pub async fn past(session: &Session, id: &str) -> Result<Exit, Failure> {
    ask(session, json!({ "request_id": id })).await?;
    session.output.hint(&format!("portcullis logs show {id}"));
    Ok(Exit::Fine)
}

async fn ask(session: &Session, question: Value) -> Result<(), Failure> {
    let answer = session.client.call(Call::new(Method::POST, "/explain").body(question)).await?;
    if session.output.is_structured() { session.output.object(&answer) } else { output::write(&panel(&answer)) }
}

/// The explanation for people: what applied, each target in order with its reasons, limits, warnings, and the end.
fn panel(answer: &Value) -> String {
    let text = |value: &Value| printable(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let mut lines = Vec::new();
    let config = &answer["config"];
    if config.is_object() {
        let name = ["slug", "id"].iter().find_map(|field| config[*field].as_str()).unwrap_or("written in the request");
        lines.push(format!("config    {} ({})", printable(name), text(&config["source"])));
    }
    for step in answer["plan"].as_array().into_iter().flatten() {
        let target = &step["target"];
        let mark = if step["is_reached"] == true { "→" } else { "·" };
        let (provider, model) = (text(&target["provider"]), text(&target["model"]));
        lines.push(format!("{mark} {:<8}{provider} {model}  {}", text(&step["option"]), text(&target["url"])));
        lines.extend(step["why"].as_array().into_iter().flatten().map(|why| format!("          {}", text(why))));
        if !target["refusal"].is_null() {
            lines.push(format!("          refused: {}", text(&target["refusal"])));
        }
        if step["outcome"].is_object() {
            lines.push(format!("          {}", ending(&step["outcome"])));
        }
    }
    for limit in answer["limits"].as_array().into_iter().flatten() {
        let figures = format!("{} of {} left", text(&limit["remaining"]), text(&limit["cap"]));
        lines.push(format!(
            "limit     {} {}: {figures}, {}",
            text(&limit["whose"]),
            text(&limit["kind"]),
            text(&limit["verdict"])
        ));
    }
    for warning in answer["warnings"].as_array().into_iter().flatten() {
        lines.push(format!("warning   {} {}", text(&warning["path"]), text(&warning["message"])));
    }
    if answer["outcome"].is_object() {
        lines.push(format!("end       {}", ending(&answer["outcome"])));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn ending(outcome: &Value) -> String {
    let mut words = vec![format!("HTTP {}", outcome["status"])];
    let mut put = |field: &str, unit: &str| {
        if !outcome[field].is_null() {
            words.push(format!(
                "{} {unit}",
                outcome[field].as_str().map_or_else(|| outcome[field].to_string(), printable)
            ));
        }
    };
    put("error_code", "");
    put("response_time", "ms");
    put("retries", "retries");
    put("req_units", "tokens in");
    put("res_units", "tokens out");
    put("cost", "cents");
    words.join(", ").replace(" ,", ",")
}
