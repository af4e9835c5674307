//! One request, from head to planned answer. Order: the fault that came with the head, the body, the queued fault that is for
//! such a body, credentials, the fault that came in the body, the answer.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use serde_json::Value;

use super::ask::Ask;
use super::bill::{self, BillKey, Billed};
use super::body::{Abort, Ending, Outgoing};
use super::counts::Outcome;
use super::fault::{BadFault, Fault};
use super::question::Question;
use super::receive::{self, Received};
use super::reply::Reply;
use super::route::{Endpoint, canonical, lacks_api_version, last_segment, raw_prediction};
use super::shape::{self, Payload, Step};
use super::state::Serving;
use super::vendor_table::vendor_at;
use super::vendors::{self, Call};
use super::wire::Link;
use super::{anthropic, control, mcp, objects, openai, responses, small_wires, top_level, websocket};

pub async fn answer(request: Request<Incoming>, link: Arc<Link>) -> Result<Response<Outgoing>, Abort> {
    let (head, body) = request.into_parts();
    if head.uri.path().starts_with("/__mock/") {
        return control::answer(&head, body, link).await;
    }
    let endpoint = Endpoint::of(&head.method, head.uri.path());
    let mut serving = link.state.begin(endpoint);
    let early = match fault_of_head(&head, &link) {
        Ok(fault) => fault,
        Err(BadFault(reason)) => return Ok(refusal(&head, endpoint, 400, &reason, serving, link)),
    };
    let received = match &early {
        Some(fault) if fault.early_answer => Received::default(),
        _ => receive::body(body, endpoint).await.map_err(|_| Abort)?,
    };
    // Counting tokens is no turn of a conversation.
    let early = early.or_else(|| match endpoint {
        Endpoint::CountTokens => None,
        _ => link.state.fault_for(&received.bytes),
    });
    if link.state.remembers() {
        link.state.remember(received.recorded(&head, link.id));
    }
    if !is_authenticated(&head, endpoint) {
        return Ok(refusal(&head, endpoint, 401, "Incorrect API key provided.", serving, link));
    }
    let key = link.state.bill.as_ref().and_then(|_| BillKey::find(&head.headers, &received.bytes));
    let Reaction { fault, status, payload } = match react(&head, endpoint, early, &received, serving.id, &link) {
        Ok(reaction) => reaction,
        Err((status, message)) => return Ok(refusal(&head, endpoint, status, &message, serving, link)),
    };
    let key = key.filter(|_| status < 400);
    bill_reading(&link, key.as_ref(), endpoint, &received, &payload);
    if let Some(latency) = fault.latency() {
        tokio::time::sleep(latency).await;
    }
    if fault.no_answer {
        if fault.reset {
            link.reset();
        }
        serving.ends(Outcome::Cut);
        return Err(Abort);
    }
    if endpoint == Endpoint::Realtime && status == 200 {
        return Ok(websocket::upgrade(head, link, serving));
    }
    let written = key.filter(|_| is_billed(endpoint));
    if let (Some(key), Some(bill), Payload::Whole(body)) = (&written, &link.state.bill, &payload) {
        let reported = bill::reported(&serde_json::from_slice(body).unwrap_or_default());
        bill.add(key, Billed { completion: reported.completion, ..Billed::default() });
    }
    let written = written.filter(|_| matches!(payload, Payload::Events(_)));
    Ok(respond_billed(&head, &fault, status, payload, serving, link, written))
}

/// What is paid for by tokens.
fn is_billed(endpoint: Endpoint) -> bool {
    matches!(
        endpoint,
        Endpoint::Chat | Endpoint::Completions | Endpoint::Embeddings | Endpoint::Messages | Endpoint::Responses
    )
}

/// What a request reads is paid for from now on, whatever becomes of its answer. Rows of a batch are run at once.
fn bill_reading(link: &Link, key: Option<&BillKey>, endpoint: Endpoint, received: &Received, payload: &Payload) {
    let (Some(key), Some(bill)) = (key, &link.state.bill) else { return };
    match endpoint {
        Endpoint::Mcp => {
            let asked: Value = serde_json::from_slice(&received.bytes).unwrap_or_default();
            if asked["method"] == "tools/call" {
                bill.add(key, Billed { calls: 1, ..Billed::default() });
            }
        }
        _ if is_billed(endpoint) => {
            let prompt = match payload {
                Payload::Whole(body) => bill::reported(&serde_json::from_slice(body).unwrap_or_default()).prompt,
                _ => Ask::parse(&received.bytes).map_or(0, |ask| ask.prompt_tokens()),
            };
            bill.add(key, Billed { calls: 1, prompt, ..Billed::default() });
        }
        _ => {}
    }
}

fn fault_of_head(head: &Parts, link: &Link) -> Result<Option<Fault>, BadFault> {
    if let Some(fault) = Fault::from_headers(&head.headers)? {
        return Ok(Some(fault));
    }
    Ok(Fault::from_query(head.uri.query())?.or_else(|| link.state.next_fault()))
}

/// What to say, once the body is known.
struct Reaction {
    fault: Fault,
    status: u16,
    payload: Payload,
}

fn react(
    head: &Parts,
    endpoint: Endpoint,
    early: Option<Fault>,
    received: &Received,
    id: u64,
    link: &Link,
) -> Result<Reaction, (u16, String)> {
    if let Some(vendor) = vendor_at(endpoint) {
        let call = Call { endpoint, path: head.uri.path(), query: head.uri.query() };
        let (fault, status, payload) = vendors::react(vendor, &call, early, &received.bytes, id)?;
        return Ok(Reaction { fault, status, payload });
    }
    if lacks_api_version(head.uri.path(), head.uri.query()) {
        return Err((404, "Resource not found".into()));
    }
    let reads_json = matches!(
        endpoint,
        Endpoint::Chat
            | Endpoint::Completions
            | Endpoint::Embeddings
            | Endpoint::Messages
            | Endpoint::CountTokens
            | Endpoint::Responses
    );
    let mut ask = match reads_json && early.as_ref().is_none_or(|fault| !fault.early_answer) {
        true => Ask::parse(&received.bytes).map_err(|error| (400, format!("We could not parse your JSON: {error}")))?,
        false => Ask::default(),
    };
    let vertex = raw_prediction(head.uri.path());
    if vertex == Some(true) {
        ask.stream = Some(true);
    }
    let fault = match early {
        Some(fault) => fault,
        None => ask.fault().map_err(|BadFault(reason)| (400, reason))?.unwrap_or_default(),
    };
    let status = fault.status.unwrap_or(200);
    if let Some(body) = &fault.body {
        let payload = Payload::Whole(Bytes::from(body.clone()));
        return Ok(Reaction { fault, status, payload });
    }
    if status >= 400 || (fault.error_in_200 && !ask.is_streaming()) {
        let named = if status >= 400 { status } else { 500 };
        let payload = Payload::whole(error_body(endpoint, named, "mock error, as asked"));
        return Ok(Reaction { fault, status, payload });
    }
    if let Some(flaw) = flaw(head, endpoint, &fault, &ask, &received.bytes) {
        return Err((400, flaw));
    }
    if endpoint == Endpoint::Mcp {
        let mut fault = fault;
        let reply = mcp::answer(head, &received.bytes, id);
        fault.headers.extend(reply.headers);
        if reply.stays_open {
            fault.stall_after_bytes = Some(u64::MAX);
        }
        return Ok(Reaction { fault, status: reply.status, payload: reply.payload });
    }
    let payload = match endpoint {
        Endpoint::Chat if ask.messages.is_none() && !fault.early_answer => {
            return Err((400, "Missing required parameter: 'messages'.".into()));
        }
        Endpoint::Chat => openai::chat(&ask, &fault, id),
        Endpoint::Completions => openai::completion(&ask, &fault, id),
        Endpoint::Embeddings => openai::embeddings(&ask, &fault),
        Endpoint::Messages => anthropic::message(&ask, &fault, id),
        Endpoint::CountTokens => anthropic::count_tokens(&ask),
        Endpoint::Models => match last_segment(head.uri.path()) {
            "models" => openai::models(),
            id => openai::model(id).ok_or_else(|| (404, format!("The model '{id}' does not exist")))?,
        },
        Endpoint::Bytes => {
            let length = last_segment(head.uri.path()).parse();
            Payload::Pattern(length.map_err(|_| (404, "expected /bytes/{number}".to_owned()))?)
        }
        Endpoint::Fixed => Payload::Whole(link.state.fixed.clone()),
        Endpoint::Realtime => Payload::Whole(Bytes::new()),
        Endpoint::Responses => responses::response(&ask, &fault, id),
        Endpoint::Objects => {
            let path = canonical(head.uri.path());
            let account = link.state.bill.as_ref().map(|bill| (bill, &head.headers));
            let shelved = link.state.shelf.answer(&head.method, path, &received.bytes, id, account);
            shelved.unwrap_or_else(|| objects::answer(&head.method, path, &received.bytes, id, &Reply::of(&fault)))
        }
        Endpoint::Buckets => {
            let (path, query) = (head.uri.path(), head.uri.query());
            link.state.buckets.answer(&head.method, path, query, &received.bytes, id)?
        }
        // Those of other vendors were answered above.
        _ => Payload::whole(received.recorded(head, link.id).to_json().to_string().into_bytes()),
    };
    Ok(Reaction { fault, status, payload })
}

/// What a provider refuses always, and what is refused only to who asks to be held to the wire.
fn flaw(head: &Parts, endpoint: Endpoint, fault: &Fault, ask: &Ask<'_>, body: &[u8]) -> Option<String> {
    let is_vertex = raw_prediction(head.uri.path()).is_some();
    if is_vertex && endpoint == Endpoint::Messages && !fault.early_answer && ask.anthropic_version.is_none() {
        return Some("anthropic_version: Field required".to_owned());
    }
    let version = head.headers.get("anthropic-version").map(HeaderValue::as_bytes);
    if endpoint == Endpoint::Messages && version == Some(top_level::WITHOUT_SAMPLING) {
        return top_level::sampling_flaw(body);
    }
    fault.strict.then(|| top_level::flaw(endpoint, body, is_vertex)).flatten()
}

fn respond(
    head: &Parts,
    fault: &Fault,
    status: u16,
    payload: Payload,
    serving: Serving,
    link: Arc<Link>,
) -> Response<Outgoing> {
    respond_billed(head, fault, status, payload, serving, link, None)
}

/// The words of its stream are billed under this key as they leave.
fn respond_billed(
    head: &Parts,
    fault: &Fault,
    status: u16,
    payload: Payload,
    serving: Serving,
    link: Arc<Link>,
    billed: Option<BillKey>,
) -> Response<Outgoing> {
    let is_stream = matches!(payload, Payload::Events(_) | Payload::Pieces(..));
    let content_type = match &payload {
        _ if fault.content_type.is_some() => header(fault.content_type.as_deref().unwrap_or_default()),
        Payload::Events(_) => HeaderValue::from_static("text/event-stream; charset=utf-8"),
        Payload::Pattern(_) => HeaderValue::from_static("application/octet-stream"),
        Payload::Whole(_) => HeaderValue::from_static("application/json"),
        Payload::Typed(kind, _) | Payload::Pieces(kind, _) => HeaderValue::from_static(kind),
    };
    let outcome = if status >= 400 { Outcome::Error } else { Outcome::Ok };
    let request_id = header(&format!("req_mock_{:016}", serving.id));
    let mut ending = Ending::plain(link.clone(), Some(serving), outcome);
    (ending.resets, ending.closes, ending.stamps) = (fault.reset, fault.close_idle, fault.stamp);
    ending.tag = fault.tag.clone().map(|tag| (tag, 0));
    ending.billed = billed.map(|key| (key, 0));
    let payload = match payload {
        Payload::Whole(mut body) if fault.bad_json => Payload::Whole(body.split_to(body.len() / 2)),
        payload => payload,
    };
    let length = payload.length().filter(|_| !fault.no_content_length);
    let mut steps = shape::plan(payload, fault);
    if head.version == Version::HTTP_2 && steps.back() == Some(&Step::Cut) {
        // A reset stream forgets what it has not sent yet.
        steps.insert(steps.len() - 1, Step::Wait(std::time::Duration::from_millis(10)));
    }
    let body = Outgoing::new(steps, length, ending);
    let mut response = Response::new(if head.method == Method::HEAD { body.unsent() } else { body });
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert("x-request-id", request_id);
    if is_stream {
        headers.insert("cache-control", HeaderValue::from_static("no-cache"));
    }
    add_headers(headers, fault);
    if head.version == Version::HTTP_11 {
        if fault.early_answer {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
            link.linger();
        }
        if fault.informational {
            link.write_ahead(b"HTTP/1.1 103 Early Hints\r\nlink: </mock>; rel=preload\r\n\r\n");
        }
    }
    response
}

fn add_headers(headers: &mut HeaderMap, fault: &Fault) {
    match &fault.retry_after {
        Some(Value::String(text)) => drop(headers.insert(RETRY_AFTER, header(text))),
        Some(number) => drop(headers.insert(RETRY_AFTER, header(&number.to_string()))),
        None => {}
    }
    if let Some(wait) = fault.retry_after_ms {
        headers.insert("retry-after-ms", header(&wait.to_string()));
    }
    for (name, value) in &fault.headers {
        if let Ok(name) = name.parse::<HeaderName>() {
            headers.append(name, header(value));
        }
    }
}

fn refusal(
    head: &Parts,
    endpoint: Endpoint,
    status: u16,
    message: &str,
    serving: Serving,
    link: Arc<Link>,
) -> Response<Outgoing> {
    let payload = Payload::whole(error_body(endpoint, status, message));
    let mut fault = Fault::default();
    if let Some(vendor) = vendor_at(endpoint) {
        let named = vendor.headers(&Question::default(), status).into_iter();
        fault.headers.extend(named.map(|(name, value)| (name.to_owned(), value)));
    }
    respond(head, &fault, status, payload, serving, link)
}

fn error_body(endpoint: Endpoint, status: u16, message: &str) -> Vec<u8> {
    let body = match vendor_at(endpoint) {
        Some(vendor) => vendor.error(status, message),
        None if endpoint.speaks_anthropic() => anthropic::error(status, message),
        None => openai::error(status, message),
    };
    body.to_string().into_bytes()
}

/// Any credential will do but none and `sk-bad`: a proxy must have forwarded one. Only Bedrock takes signatures, and
/// only Google takes keys in the query.
fn is_authenticated(head: &Parts, endpoint: Endpoint) -> bool {
    const KEY_HEADERS: [&str; 3] = ["x-api-key", "x-goog-api-key", "api-key"];
    if endpoint == Endpoint::Mcp || small_wires::is_open(head.uri.path()) {
        return true;
    }
    let is_bedrock = matches!(endpoint, Endpoint::Converse | Endpoint::Invoke | Endpoint::Buckets);
    let key = match head.headers.get(AUTHORIZATION) {
        Some(value) if is_bedrock && is_signature(value) => return true,
        Some(value) => {
            ["Bearer ", "Key ", "Signature "].iter().find_map(|scheme| value.as_bytes().strip_prefix(scheme.as_bytes()))
        }
        None => match KEY_HEADERS.iter().find_map(|name| head.headers.get(*name)) {
            Some(key) => Some(key.as_bytes()),
            None => query_key(head).filter(|_| vendor_at(endpoint).is_some() && !is_bedrock).map(str::as_bytes),
        },
    };
    key.is_some_and(|key| !key.is_empty() && key != b"sk-bad")
}

/// Shape alone: the mock has no secret to check it with.
fn is_signature(value: &HeaderValue) -> bool {
    let signed = value.to_str().ok().and_then(|text| text.strip_prefix("AWS4-HMAC-SHA256 "));
    let parts: Vec<&str> = signed.unwrap_or_default().split(',').map(str::trim).collect();
    let has = |name: &str| parts.iter().any(|part| part.strip_prefix(name).is_some_and(|rest| !rest.is_empty()));
    has("Credential=") && has("SignedHeaders=") && has("Signature=")
}

fn query_key(head: &Parts) -> Option<&str> {
    head.uri.query()?.split('&').find_map(|pair| pair.strip_prefix("key="))
}

/// Faults may ask for header values that HTTP forbids; those become empty.
fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}
