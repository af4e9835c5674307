//! Following logs as they arrive, as server-sent events. What may be seen is what the list shows, and is asked again every few
//! seconds: a stream outlives the request that began it.

use crate::app::App;
use crate::http::ApiError;
use crate::identity::Call;
use crate::identity::again::authenticate_again;
use crate::log_data::tail::{Cursor, Follower, HEARTBEAT, TailQuestion};
use crate::log_data::{LogView, filters};
use crate::openapi::{Doc, schema};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::Instant;

pub const PATH: &str = "/logs/tail";
const KIND: &str = "text/event-stream";
const LAST_EVENT_ID: &str = "last-event-id";
/// How often it is asked whether the caller may still see what is shown.
const CHECK: Duration = Duration::from_secs(15);
/// The longest silence. What stands in between gives up after a minute.
const HEARTBEAT_AFTER: Duration = Duration::from_secs(15);

pub async fn tail(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    let sent = call.origin.headers.get(LAST_EVENT_ID).filter(|id| !id.is_empty());
    let cursor = sent.map(|id| Cursor::parse(id.to_str().unwrap_or_default())).transpose()?;
    let view = view(&app, &call).await?;
    let question = TailQuestion { view, query: call.query().clone() };
    question.search().check()?;
    let follower = app.log_tail.open(&app.db, call.caller.actor_id(), question, cursor).await?;
    let stream = Stream { check_at: Instant::now() + CHECK, is_opened: false, app, call, follower };
    let events = futures::stream::unfold(stream, async |mut stream| {
        let events = stream.next().await?;
        Some((Ok::<_, Infallible>(events), stream))
    });
    let mut response = Body::from_stream(events).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(KIND));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that hold answers back until they are whole leave such ones alone.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

async fn view(app: &App, call: &Call) -> Result<LogView, ApiError> {
    let view = LogView::asked(&*app.db.get().await?, &call.caller, call.query().text("workspace_slug")).await?;
    view.checked(call.query())?;
    Ok(view)
}

struct Stream {
    app: App,
    call: Call,
    follower: Follower,
    check_at: Instant,
    is_opened: bool,
}

impl Stream {
    /// The next bytes; none when it is over.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.is_opened {
            self.is_opened = true;
            return Some(self.follower.opening.clone());
        }
        let silent_until = Instant::now() + HEARTBEAT_AFTER;
        loop {
            // Before anything is read: what waits here may be from before the caller lost the right to it.
            if Instant::now() >= self.check_at {
                self.check().await.ok()?;
                self.check_at = Instant::now() + CHECK;
            }
            tokio::select! {
                events = self.follower.next() => return events,
                () = tokio::time::sleep_until(self.check_at) => {}
                () = tokio::time::sleep_until(silent_until) => return Some(Bytes::from_static(HEARTBEAT)),
            }
        }
    }

    /// Fails also where it cannot be known: whoever still may follow comes back.
    async fn check(&mut self) -> Result<(), ApiError> {
        let caller = authenticate_again(&self.call, &self.app.db, &self.app.aliases, &self.app.tokens).await?;
        self.call.caller = caller;
        self.follower.see(view(&self.app, &self.call).await?);
        Ok(())
    }
}

pub fn docs() -> Doc {
    let cursor =
        schema::any_text().eg("7451-7453-902-1768473000").says("The `id` of the last event, to go on behind it.");
    filters::documented(Doc::get(PATH, "Follow logs as they arrive"))
        .details(
            "A stream of server-sent events without end. `event: log` has a log in one line of `data`, as the list shows it and \
             never with bodies, `event: gap` says how many were left out (`{\"skipped\": 7}`; null when nobody knows): a viewer gets at \
             most 200 logs in a second. Logs come in the order in which they arrive, late ones too. With `Last-Event-ID` the \
             stream goes on behind that event, up to two minutes later. A person or key can follow 5 streams at once, an \
             organisation 50; more are answered 429. Who may no longer see logs is cut off within seconds; comments keep the \
             connection open.",
        )
        .header("Last-Event-ID", cursor)
        .file(&[KIND])
}
