//! What an application does with batches: it uploads, asks for one, looks how far it is, and reads the results.

use crate::prove::client::{Body, Caller, empty, pieces};
use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http::{HeaderValue, Method, header};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The line of a row that the mock answers with these words after a while.
pub fn line(number: u32, fault: &Value, padding: &str) -> String {
    let content = json!({ "mock": fault }).to_string();
    let body = json!({ "model": "gpt-4o-mini", "messages": [
        { "role": "system", "content": padding }, { "role": "user", "content": content } ] });
    let row =
        json!({ "custom_id": format!("row-{number}"), "method": "POST", "url": "/v1/chat/completions", "body": body });
    format!("{row}\n")
}

/// The id of an uploaded file.
pub async fn upload(
    caller: &Caller,
    lines: impl Stream<Item = String> + Send + Sync + 'static,
) -> anyhow::Result<String> {
    let head = "--xYz\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--xYz\r\n\
        Content-Disposition: form-data; name=\"file\"; filename=\"rows.jsonl\"\r\n\r\n";
    let end = "\r\n--xYz--\r\n";
    let form = stream::iter([Bytes::from_static(head.as_bytes())])
        .chain(lines.map(Bytes::from))
        .chain(stream::iter([Bytes::from_static(end.as_bytes())]));
    let body: Body = pieces(form);
    let mut request = caller.request(Method::POST, "/v1/files", body);
    let form = HeaderValue::from_static("multipart/form-data; boundary=xYz");
    request.headers_mut().insert(header::CONTENT_TYPE, form);
    id(&caller.answer(request).await?.1)
}

/// The id of a new batch whose rows the provider at this address answers.
pub async fn begin(caller: &Caller, file: &str, provider: &str) -> anyhow::Result<String> {
    let body = json!({ "input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "immediate",
        "gateway_options": { "x-gateway-provider": "openai", "x-gateway-custom-host": provider,
            "authorization": "Bearer sk-mock" } });
    id(&caller.answer(caller.post_json("/v1/batches", &body)).await?.1)
}

fn id(text: &str) -> anyhow::Result<String> {
    let object: Value = serde_json::from_str(text).with_context(|| text.to_owned())?;
    Ok(object["id"].as_str().with_context(|| text.to_owned())?.to_owned())
}

pub async fn get(caller: &Caller, path: &str) -> anyhow::Result<Value> {
    let (status, text) = caller.answer(caller.request(Method::GET, path, empty())).await?;
    ensure!(status.is_success(), "{path}: {status} {text}");
    Ok(serde_json::from_str(&text)?)
}

/// The batch once it is over. Whoever is asked may be away now and then.
pub async fn until_over(callers: &[Caller], batch: &str, longest: Duration) -> anyhow::Result<Value> {
    let (path, end) = (format!("/v1/batches/{batch}"), Instant::now() + longest);
    let mut last = None;
    loop {
        for caller in callers {
            if let Ok(found) = get(caller, &path).await {
                let status = found["status"].as_str().unwrap_or_default();
                if ["completed", "failed", "expired", "cancelled"].contains(&status) {
                    return Ok(found);
                }
                last = Some(found);
            }
        }
        if Instant::now() > end {
            bail!("the batch is not over after {} s: {last:?}", longest.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// The lines of a file of results; none when there is no file.
pub async fn results(caller: &Caller, file: &Value) -> anyhow::Result<Vec<Value>> {
    let Some(file) = file.as_str() else { return Ok(Vec::new()) };
    let path = format!("/v1/files/{file}/content");
    let (status, text) = caller.answer(caller.request(Method::GET, &path, empty())).await?;
    ensure!(status.is_success(), "{path}: {status}");
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}
