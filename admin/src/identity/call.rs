//! One request that the gate let in, as its handler sees it: who calls, with which query and body, and where the
//! call came from. The body is whole, so a handler that fails leaves a complete audit record all the same.

use crate::http::{ApiError, Query, json};
use crate::identity::Caller;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri, header};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use shared::routes::Operation;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use uuid::Uuid;

/// A request by somebody who was authenticated and may perform the operation.
#[derive(Debug, Clone)]
pub struct Call {
    pub caller: Caller,
    pub origin: Arc<RequestOrigin>,
}

/// What is known of any request. `observe` fills `seen`, the gate the rest.
#[derive(Debug)]
pub struct RequestOrigin {
    pub seen: ClientInfo,
    pub operation: &'static Operation,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub query: Query,
    pub body: Bytes,
    /// Whether it uses a prefix of another product's headers: what we do not know is then ignored with a warning.
    pub is_lenient: bool,
    /// Whether a session's cookie is the credential: the caller's key is then none that is stored.
    pub is_by_session: bool,
    /// Whether it only asks what would become of it: nothing may be kept, recorded or mailed.
    pub is_dry_run: bool,
    warnings: Mutex<Vec<String>>,
    is_recorded: AtomicBool,
    /// Whether its `If-Match` was compared with an object.
    is_compared: AtomicBool,
    /// The `ETag` of its answer.
    tag: OnceLock<String>,
}

/// Warnings of one answer; whoever earns more has read enough.
const MAX_WARNINGS: usize = 50;

#[derive(Debug, Clone)]
pub struct ClientInfo {
    pub request_id: Uuid,
    pub client_ip: IpAddr,
    pub country: Option<String>,
}

impl ClientInfo {
    /// Of a request that did not come through `observe`.
    pub fn nothing() -> Self {
        Self { request_id: Uuid::new_v4(), client_ip: Ipv4Addr::UNSPECIFIED.into(), country: None }
    }
}

impl RequestOrigin {
    pub fn new(seen: ClientInfo, operation: &'static Operation, uri: Uri, headers: HeaderMap) -> Self {
        Self {
            seen,
            operation,
            uri,
            headers,
            query: Query::default(),
            body: Bytes::new(),
            is_lenient: false,
            is_by_session: false,
            is_dry_run: false,
            warnings: Mutex::default(),
            is_recorded: AtomicBool::new(false),
            is_compared: AtomicBool::new(false),
            tag: OnceLock::new(),
        }
    }

    /// Something that the caller should know although the request succeeds; never a value that was sent.
    pub fn warn(&self, text: String) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < MAX_WARNINGS {
            warnings.push(text);
        }
    }

    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The audit trail has this request; the gate need not add it.
    pub fn mark_recorded(&self) {
        self.is_recorded.store(true, Ordering::Release);
    }

    /// The object is held, and is as the caller saw it.
    pub fn mark_compared(&self) {
        self.is_compared.store(true, Ordering::Release);
    }

    /// Whether it came with a condition that nothing has looked at.
    pub fn has_open_condition(&self) -> bool {
        self.headers.contains_key(header::IF_MATCH) && !self.is_compared.load(Ordering::Acquire)
    }

    /// What the answer shows is in this state.
    pub fn tag(&self, tag: String) {
        let _ = self.tag.set(tag);
    }

    /// The tag of what it shows or has made; a dry run makes nothing.
    pub fn answered_tag(&self) -> Option<&str> {
        self.tag.get().map(String::as_str).filter(|_| !self.is_dry_run)
    }

    pub fn is_recorded(&self) -> bool {
        self.is_recorded.load(Ordering::Acquire)
    }
}

impl Call {
    pub fn query(&self) -> &Query {
        &self.origin.query
    }

    /// The body as a JSON object; `{}` when there is none.
    pub fn object(&self) -> Result<Map<String, Value>, ApiError> {
        json::object(&self.origin.body)
    }

    /// The body, read into its type.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        json::parse(Value::Object(self.object()?))
    }
}

impl<S: Sync> FromRequestParts<S> for Call {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let call = parts.extensions.get::<Self>().cloned();
        call.ok_or(ApiError::Unauthenticated("No valid credential was sent"))
    }
}

/// For operations that need no credential.
#[derive(Debug, Clone)]
pub struct PublicCall(pub Arc<RequestOrigin>);

impl<S: Sync> FromRequestParts<S> for PublicCall {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Arc<RequestOrigin>>().cloned().map(Self).ok_or(ApiError::Internal)
    }
}
