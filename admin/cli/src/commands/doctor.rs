//! `doctor`: what can be asked over HTTP about a gateway's health and about what it holds.

use crate::global::Global;
use crate::http::{Call, Client};
use crate::kinds;
use crate::objects;
use crate::outcome::{Exit, Failure};
use crate::output::Column;
use crate::session::Session;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

/// Look for what is wrong: connection, key, clocks, accounts of providers, keys that end. Ends with 3 when something fails.
#[derive(clap::Args)]
pub struct Doctor {
    /// Try the account of every integration; this asks the providers.
    #[arg(long)]
    providers: bool,
}

const COLUMNS: &[Column] = &[Column::new("state", "state"), Column::new("what", "what"), Column::new("fix", "fix")];
/// A clock that is off by more makes signatures and expiries fail.
const MAX_SKEW_SECONDS: i64 = 30;
const ENDS_SOON_DAYS: i64 = 14;

#[derive(Default)]
struct Findings(Vec<Value>);

impl Findings {
    fn put(&mut self, state: &str, what: impl Into<String>, fix: &str) {
        self.0.push(json!({ "state": state, "what": what.into(), "fix": fix }));
    }
}

pub async fn run(global: &Global, doctor: &Doctor) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let mut findings = Findings::default();
    if reaches(&session, &mut findings).await {
        look_at_keys(&session, &mut findings).await;
        if doctor.providers {
            test_integrations(&session, &mut findings).await;
        }
    }
    session.output.rows(&findings.0, COLUMNS)?;
    let has_failed = findings.0.iter().any(|finding| finding["state"] == "fail");
    session.output.hint("portcullis budgets");
    Ok(if has_failed { Exit::Wanting } else { Exit::Fine })
}

async fn reaches(session: &Session, findings: &mut Findings) -> bool {
    let public = Client::new(&session.url, None, false);
    let answer = match public {
        Ok(client) => client.send(Call::get("/openapi.json")).await,
        Err(failure) => Err(failure),
    };
    let response = match answer {
        Ok(response) if response.status().is_success() => response,
        Ok(response) => {
            findings.put(
                "fail",
                format!("{} answers HTTP {}", session.url, response.status().as_u16()),
                "is the address right?",
            );
            return false;
        }
        Err(failure) => {
            findings.put("fail", failure.to_string(), "check the address, the name and the certificate");
            return false;
        }
    };
    findings.put("ok", format!("{} answers", session.url), "");
    if session.url.starts_with("http://")
        && !["localhost", "127.0.0.1", "[::1]"].iter().any(|host| session.url.contains(host))
    {
        findings.put("warn", "keys travel in the clear", "put TLS before the gateway and use https");
    }
    let date = crate::http::header(&response, "date");
    if let Ok(theirs) = DateTime::parse_from_rfc2822(&date) {
        let skew = (Utc::now() - theirs.to_utc()).num_seconds().abs();
        let state = if skew > MAX_SKEW_SECONDS { "fail" } else { "ok" };
        findings.put(
            state,
            format!("clocks differ by {skew} s"),
            if skew > MAX_SKEW_SECONDS { "synchronise the clocks" } else { "" },
        );
    }
    match session.client.look_up(Call::get("/api-keys/self")).await {
        Ok(own) => {
            findings.put("ok", format!("the key is good ({})", own.body["type"].as_str().unwrap_or("?")), "");
            true
        }
        Err(failure) => {
            findings.put("fail", failure.to_string(), "portcullis login URL --key-stdin");
            false
        }
    }
}

async fn look_at_keys(session: &Session, findings: &mut Findings) {
    let Ok(kind) = kinds::find("api-key") else { return };
    let rows = match objects::list(session, kind).await {
        Ok(rows) => rows,
        Err(failure) => {
            return findings.put("warn", format!("keys cannot be listed: {failure}"), "a key with more scopes");
        }
    };
    let name = |row: &Value| crate::output::printable(row["name"].as_str().unwrap_or("?"));
    for row in &rows {
        let end = row["expires_at"].as_str().and_then(|end| DateTime::parse_from_rfc3339(end).ok());
        let days = end.map(|end| (end.to_utc() - Utc::now()).num_days());
        if days.is_some_and(|days| days < ENDS_SOON_DAYS) {
            findings.put(
                "warn",
                format!("the key {} ends in {} days", name(row), days.unwrap_or(0).max(0)),
                "portcullis edit api-key NAME",
            );
        }
        if row["usage_limits"]["status"] == "exhausted" {
            findings.put("warn", format!("the budget of the key {} is used up", name(row)), "portcullis budgets");
        }
    }
    findings.put("ok", format!("{} keys looked at", rows.len()), "");
}

async fn test_integrations(session: &Session, findings: &mut Findings) {
    let Ok(kind) = kinds::find("integration") else { return };
    let rows = match objects::list(session, kind).await {
        Ok(rows) => rows,
        Err(failure) => {
            return findings.put("warn", format!("integrations cannot be listed: {failure}"), "a key with more scopes");
        }
    };
    for row in &rows {
        let slug = row["slug"].as_str().unwrap_or_default();
        let call = Call::new(reqwest::Method::POST, format!("/integrations/{}/test", crate::http::segment(slug)));
        match session.client.look_up(call).await {
            Ok(answer) if answer.body["success"] == false => {
                findings.put(
                    "fail",
                    format!("{slug}: {}", answer.body["message"].as_str().unwrap_or("refused")),
                    "portcullis edit integration NAME",
                );
            }
            Ok(_) => findings.put("ok", format!("{slug}: the account is accepted"), ""),
            Err(failure) => findings.put("fail", format!("{slug}: {failure}"), "portcullis edit integration NAME"),
        }
    }
}
