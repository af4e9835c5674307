//! `keys`: API keys of applications and people.

use super::resources::confirm;
use crate::http::{Call, Tagged};
use crate::kinds::{self, Kind};
use crate::objects::{self, object_query, path_of};
use crate::outcome::{Exit, Failure};
use crate::output::{self, printable};
use crate::secret_file::SecretFile;
use crate::session::Session;
use chrono::{Duration, Utc};
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Make, list, rotate, suspend and delete API keys.
#[derive(clap::Subcommand)]
pub enum Keys {
    Create(Create),
    /// List keys with their masks, states and ends.
    List,
    Rotate(Rotate),
    /// Switch a key off at once.
    Suspend {
        name: String,
    },
    /// Switch a suspended key on again.
    Resume {
        name: String,
    },
    /// Delete a key for good.
    Delete {
        name: String,
    },
    /// Find a key by the mask that logs and lists show, or by the key's end.
    Find {
        mask: String,
    },
}

/// Make a key of a workspace. Its secret is written to stdout, or to a file, and never shown again.
#[derive(clap::Args)]
pub struct Create {
    /// What it is for.
    name: String,
    /// Scopes by commas, as completions.write,models.list; `inference` is all that an application needs.
    #[arg(long, value_delimiter = ',', default_value = "inference")]
    scopes: Vec<String>,
    /// Requests a minute.
    #[arg(long)]
    rpm: Option<u64>,
    /// Tokens a minute.
    #[arg(long)]
    tpm: Option<u64>,
    /// US dollars, as 50, 50/month or 50/week.
    #[arg(long, value_parser = budget)]
    budget: Option<Value>,
    /// When it ends: 90d, 12h, or a date.
    #[arg(long, value_parser = moment)]
    expires: Option<String>,
    /// Write the secret to this file, which only you can read.
    #[arg(long)]
    secret_out: Option<PathBuf>,
}

/// Give a key a new secret.
#[derive(clap::Args)]
pub struct Rotate {
    name: String,
    /// How long the old secret stays good: 1h, 7d. It ends at once unless given.
    #[arg(long, value_parser = duration)]
    keep_old: Option<Duration>,
    /// Write the secret to this file, which only you can read.
    #[arg(long)]
    secret_out: Option<PathBuf>,
}

/// What an application needs to make calls.
const INFERENCE: &[&str] = &["completions.write", "models.list"];

pub async fn run(session: &Session, command: Keys) -> Result<Exit, Failure> {
    let kind = kinds::find("api-key")?;
    match command {
        Keys::Create(create) => return make(session, kind, &create).await,
        Keys::Rotate(rotate) => return give_new_secret(session, kind, &rotate).await,
        Keys::List => {
            let rows = rows(session, kind).await?;
            session.output.rows(&rows, kind.columns)?;
            session.output.hint("portcullis keys create NAME --budget 50/month");
        }
        Keys::Find { mask } => {
            let end = mask.rsplit('*').next().unwrap_or(&mask);
            let end: String = end.chars().rev().take(3).collect::<Vec<_>>().into_iter().rev().collect();
            let mut rows = rows(session, kind).await?;
            rows.retain(|row| row["key"].as_str().is_some_and(|key| key.ends_with(&end)));
            session.output.rows(&rows, kind.columns)?;
            session.output.hint("portcullis keys suspend NAME");
        }
        Keys::Suspend { name } => set_status(session, kind, &name, "suspended").await?,
        Keys::Resume { name } => set_status(session, kind, &name, "active").await?,
        Keys::Delete { name } => {
            let (id, found) = find(session, kind, &name).await?;
            confirm(session, &format!("Delete the key {}?", printable(&name)))?;
            let call = Call::new(Method::DELETE, path_of(kind, &id)).query(object_query(session, kind));
            session.client.call(call.only_as_read(&found.etag)).await?;
            eprintln!("Deleted the key {}.", printable(&name));
            session.output.hint("portcullis keys list");
        }
    }
    Ok(Exit::Fine)
}

async fn rows(session: &Session, kind: &Kind) -> Result<Vec<Value>, Failure> {
    if session.client.is_shown() {
        session.client.list(kind.path, &session.in_workspace()).await?;
    }
    objects::list(session, kind).await
}

async fn find(session: &Session, kind: &Kind, name: &str) -> Result<(String, Tagged), Failure> {
    let found = objects::find(session, kind, name).await?;
    Ok((found.body["id"].as_str().unwrap_or_default().to_owned(), found))
}

async fn make(session: &Session, kind: &Kind, create: &Create) -> Result<Exit, Failure> {
    let scopes = create.scopes.iter().flat_map(|scope| match scope.as_str() {
        "inference" => INFERENCE.iter().map(|scope| (*scope).to_owned()).collect(),
        scope => vec![scope.to_owned()],
    });
    let mut body = json!({ "name": create.name, "scopes": scopes.collect::<Vec<_>>() });
    let limit = |kind, value: Option<u64>| value.map(|value| json!({ "type": kind, "unit": "rpm", "value": value }));
    let limits: Vec<Value> =
        [limit("requests", create.rpm), limit("tokens", create.tpm)].into_iter().flatten().collect();
    if !limits.is_empty() {
        body["rate_limits"] = limits.into();
    }
    if let Some(budget) = &create.budget {
        body["usage_limits"] = budget.clone();
    }
    if let Some(end) = &create.expires {
        body["expires_at"] = end.clone().into();
    }
    if let Some(workspace) = &session.workspace {
        body["workspace_id"] = workspace.clone().into();
    }
    let file = create.secret_out.as_deref().map(SecretFile::prepare).transpose()?;
    let made = session.client.call(Call::new(Method::POST, kind.create_path()).body(body)).await?;
    hand_over(session, &made, file)?;
    session.output.hint("PORTCULLIS_API_KEY=… portcullis try \"Hello\" -m MODEL");
    Ok(Exit::Fine)
}

async fn give_new_secret(session: &Session, kind: &Kind, rotate: &Rotate) -> Result<Exit, Failure> {
    let file = rotate.secret_out.as_deref().map(SecretFile::prepare).transpose()?;
    let (id, found) = find(session, kind, &rotate.name).await?;
    let mut body = Map::new();
    body.insert("key_transition_period_ms".into(), rotate.keep_old.map_or(0, |keep| keep.num_milliseconds()).into());
    let call = Call::new(Method::POST, format!("{}/rotate", path_of(kind, &id))).body(Value::Object(body));
    let made = session.client.call(call.only_as_read(&found.etag)).await?;
    hand_over(session, &made, file)?;
    session.output.hint(&format!("portcullis get api-key {}", printable(&rotate.name)));
    Ok(Exit::Fine)
}

/// The secret is data: it alone goes to stdout, unless the whole answer is asked for.
fn hand_over(session: &Session, made: &Value, file: Option<SecretFile>) -> Result<(), Failure> {
    let secret = made["key"].as_str().ok_or_else(|| Failure::new("the answer holds no key"))?;
    if let Some(file) = file {
        let path = file.finish(&format!("{secret}\n"))?;
        eprintln!("The secret is in {}.", path.display());
        let mut shown = made.clone();
        shown["key"] = Value::Null;
        return if session.output.is_structured() { session.output.object(&shown) } else { Ok(()) };
    }
    eprintln!("This is the only time that the secret is shown.");
    if session.output.is_structured() { session.output.object(made) } else { output::write(&format!("{secret}\n")) }
}

async fn set_status(session: &Session, kind: &Kind, name: &str, status: &str) -> Result<(), Failure> {
    let (id, found) = find(session, kind, name).await?;
    let call = Call::new(Method::PUT, path_of(kind, &id)).body(json!({ "status": status }));
    session.client.call(call.only_as_read(&found.etag)).await?;
    eprintln!("The key {} is {status}.", printable(name));
    session.output.hint("portcullis keys list");
    Ok(())
}

fn budget(text: &str) -> Result<Value, String> {
    let (amount, period) = text.split_once('/').map_or((text, None), |(amount, period)| (amount, Some(period)));
    let wrong = || "a budget is 50, 50/month or 50/week".to_owned();
    let amount: f64 = amount.parse().map_err(|_| wrong())?;
    let mut budget = json!({ "type": "cost", "credit_limit": amount });
    if amount.fract() == 0.0 {
        budget["credit_limit"] = Value::from(amount as i64);
    }
    match period {
        None => {}
        Some("month" | "monthly") => budget["periodic_reset"] = "monthly".into(),
        Some("week" | "weekly") => budget["periodic_reset"] = "weekly".into(),
        Some(_) => return Err(wrong()),
    }
    Ok(budget)
}

/// `30m`, `12h`, `90d`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no length of time, as 30m, 12h or 90d");
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let number: i64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
    let found = match unit {
        'm' => Duration::try_minutes(number),
        'h' => Duration::try_hours(number),
        'd' => Duration::try_days(number),
        _ => None,
    };
    found.filter(|found| *found > Duration::zero()).ok_or_else(wrong)
}

/// A length of time from now on, or what the API reads as a time.
fn moment(text: &str) -> Result<String, String> {
    match duration(text) {
        Ok(length) => {
            Utc::now().checked_add_signed(length).map(|end| end.to_rfc3339()).ok_or_else(|| "too far".to_owned())
        }
        Err(_) if text.starts_with(|letter: char| letter.is_ascii_digit()) && text.contains('-') => Ok(text.to_owned()),
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_and_lengths_of_time_are_read_or_refused() {
        assert_eq!(
            budget("50/month").unwrap(),
            json!({ "type": "cost", "credit_limit": 50, "periodic_reset": "monthly" })
        );
        assert_eq!(budget("2.5").unwrap(), json!({ "type": "cost", "credit_limit": 2.5 }));
        assert!(budget("50/year").is_err() && budget("much").is_err());
        assert_eq!(duration("90d").unwrap(), Duration::days(90));
        for wrong in ["", "d", "90", "-1d", "9w", "99999999999999999d", "é"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(moment("2030-01-01").unwrap(), "2030-01-01");
    }
}
