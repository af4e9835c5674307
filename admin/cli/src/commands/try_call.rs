//! `try`: one chat through the gateway. The answer is data; the way that it took is written to stderr.

use crate::http::{Call, header};
use crate::outcome::{Exit, Failure};
use crate::output;
use crate::session::Session;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use std::time::Instant;

/// Make one call, and say which way it took and what it cost.
#[derive(clap::Args)]
pub struct Try {
    /// What to ask.
    prompt: String,
    /// The model, as gpt-4o or @openai-eu/gpt-4o.
    #[arg(short, long)]
    model: String,
    /// The slug of a config to follow.
    #[arg(long)]
    config: Option<String>,
    /// Write the answer as it arrives.
    #[arg(long)]
    stream: bool,
    /// A header of the call, as "x-gateway-metadata: {…}".
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
}

pub async fn run(session: &Session, arguments: &Try) -> Result<Exit, Failure> {
    let body = json!({
        "model": arguments.model, "stream": arguments.stream,
        "messages": [{ "role": "user", "content": arguments.prompt }],
    });
    let mut call = Call::new(Method::POST, "/chat/completions").body(body).header("x-gateway-include-cost", "true");
    call.is_stream = true;
    if let Some(config) = &arguments.config {
        call = call.header("x-gateway-config", config.clone());
    }
    for text in &arguments.headers {
        let (name, value) = text.split_once(':').ok_or_else(|| Failure::new(format!("`{text}` is not NAME: VALUE")))?;
        call = call.header(name.trim(), value.trim());
    }
    let began = Instant::now();
    // A used-up budget answers 412 here, which is no conflict.
    let mut response = session.client.stream(call).await.map_err(|failure| match failure {
        Failure::Conflict(text) => Failure::Failed(text),
        other => other,
    })?;
    let id = header(&response, "x-gateway-request-id");
    let way = Way::new(&response);
    let usage =
        if arguments.stream { write_stream(&mut response).await? } else { write_answer(session, response).await? };
    eprintln!("{}", output::printable(&way.text(began, &usage)));
    session.output.hint(&format!("portcullis logs why {}", output::printable(&id)));
    Ok(Exit::Fine)
}

/// What the head of the answer says about the way of the call.
struct Way {
    provider: String,
    option: String,
    tries: String,
    cost: String,
    cache: String,
}

impl Way {
    fn new(response: &Response) -> Self {
        Self {
            provider: header(response, "x-gateway-provider"),
            option: header(response, "x-gateway-last-used-option-index"),
            tries: header(response, "x-gateway-attempt-count"),
            cost: header(response, "x-gateway-cost"),
            cache: header(response, "x-gateway-cache-status"),
        }
    }

    fn text(&self, began: Instant, usage: &Value) -> String {
        let mut words = vec![format!("{} by {}", self.provider, self.option)];
        words.push(format!("{} tries", if self.tries.is_empty() { "?" } else { &self.tries }));
        words.push(format!("{} ms", began.elapsed().as_millis()));
        if usage.is_object() {
            words.push(format!("{} + {} tokens", usage["prompt_tokens"], usage["completion_tokens"]));
        }
        if !self.cost.is_empty() {
            words.push(format!("{} USD", self.cost));
        }
        if self.cache == "HIT" {
            words.push("from the cache".to_owned());
        }
        words.join(", ")
    }
}

async fn write_answer(session: &Session, response: Response) -> Result<Value, Failure> {
    let body: Value = response.json().await.map_err(|error| Failure::new(format!("the answer broke off: {error}")))?;
    if session.output.is_structured() {
        session.output.object(&body)?;
    } else {
        output::write_foreign(&format!("{}\n", body["choices"][0]["message"]["content"].as_str().unwrap_or_default()))?;
    }
    Ok(body["usage"].clone())
}

async fn write_stream(response: &mut Response) -> Result<Value, Failure> {
    let (mut pending, mut usage) = (Vec::new(), Value::Null);
    while let Some(chunk) =
        response.chunk().await.map_err(|error| Failure::new(format!("the answer broke off: {error}")))?
    {
        if output::is_closed() {
            break;
        }
        pending.extend_from_slice(&chunk);
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            let Some(data) = String::from_utf8_lossy(&line).strip_prefix("data:").map(str::to_owned) else { continue };
            let Ok(event) = serde_json::from_str::<Value>(data.trim()) else { continue };
            if let Some(text) = event["choices"][0]["delta"]["content"].as_str() {
                output::write_foreign(text)?;
            }
            if event["usage"].is_object() {
                usage = event["usage"].clone();
            }
        }
    }
    output::write("\n")?;
    Ok(usage)
}
