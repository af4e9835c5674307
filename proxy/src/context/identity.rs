//! Which request it is: its ids, when it came, and what its route and its headers say of how to answer it.

use crate::request::refusal::Dialect;
use crate::request::request_id;
use chrono::{DateTime, Utc};
use http::HeaderValue;
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

pub struct RequestIdentity {
    pub started: Instant,
    /// The same by the calendar.
    pub began_at: DateTime<Utc>,
    /// Since the start, when the body was understood.
    pub parsed_after: Option<Duration>,
    uuid: Uuid,
    /// The same in letters.
    id: [u8; Hyphenated::LENGTH],
    /// The one that the caller gave, or that was made for it once it was needed.
    pub trace_id: Option<HeaderValue>,
    /// The alias prefix of the request's headers; ours are repeated under it.
    pub alias: Option<String>,
    pub dialect: Dialect,
    /// A page of another origin asks: its browser shows it the answer only if the answer says so.
    pub is_from_browser: bool,
    /// Streams and long answers tell what they cost, too.
    pub includes_cost: bool,
    /// How a client without a key may get one, where that can be told.
    pub challenge: Option<HeaderValue>,
    /// Whose request it is, once that is known.
    pub workspace_id: Option<Uuid>,
}

impl RequestIdentity {
    pub fn begin() -> Self {
        let now = SystemTime::now();
        let uuid = request_id::new(now);
        let mut id = [0; Hyphenated::LENGTH];
        uuid.hyphenated().encode_lower(&mut id);
        Self {
            started: Instant::now(),
            began_at: now.into(),
            parsed_after: None,
            uuid,
            id,
            trace_id: None,
            alias: None,
            dialect: Dialect::default(),
            is_from_browser: false,
            includes_cost: false,
            challenge: None,
            workspace_id: None,
        }
    }

    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    pub fn id(&self) -> &str {
        std::str::from_utf8(&self.id).unwrap_or_default()
    }

    /// The id as a header. Made anew each time: to share one costs more than to write it.
    pub fn id_header(&self) -> HeaderValue {
        HeaderValue::from_bytes(&self.id).unwrap_or(HeaderValue::from_static(""))
    }

    /// Made now, if the caller gave none.
    pub fn trace_id(&mut self) -> &HeaderValue {
        self.trace_id.get_or_insert_with(new_trace)
    }
}

fn new_trace() -> HeaderValue {
    let mut text = Uuid::encode_buffer();
    let text = request_id::random().hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}
