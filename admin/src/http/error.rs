//! Why a request was refused: one enum, one mapping to status, code and body. The body names the request, which an
//! error does not know, so it travels in the response's extensions and `observe` writes it out.

use super::field_fault::FieldFault;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use shared::config::Fault;
use shared::db::table::RowError;
use shared::identity::jwt::Rejection;
use shared::routes::Scopes;
use shared::secrets::seal::SealError;
use shared::telemetry::{Brief, LogLimit};

/// For how long after a sign-in a session does what a stolen one must not.
pub const RECENT_MINUTES: u16 = 10;

#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// `field` is the path of what is wrong, as `usage_limits.credit_limit`.
    #[error("{}{message}", field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default())]
    Invalid { field: Option<String>, message: String },
    /// Everything that is wrong with a body or a query; never empty.
    #[error("{}", faults_message(.0))]
    Faults(Vec<FieldFault>),
    /// Everything that is wrong with a config.
    #[error("{}", config_message(.0))]
    Config(Vec<Fault>),
    #[error("The body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("There is no such operation{}", hinted(.hint))]
    NoSuchPath { hint: Option<String> },
    #[error("This path does not have that method{}", hinted(.hint))]
    WrongMethod { allow: String, hint: Option<String> },
    #[error("This kind of credential may not perform the operation")]
    WrongKeyKind,
    #[error("This credential may not perform the operation (needs {needs})")]
    MissingScope { needs: Scopes },
    #[error("{0}")]
    Forbidden(&'static str),
    /// A login that came to nothing, in words that repeat nothing that was sent.
    #[error("{0}")]
    SignInRefused(String),
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// The session is good, and its person has to sign in again for this.
    #[error("Sign in again: this asks for a sign-in of the last {RECENT_MINUTES} minutes")]
    Reauthenticate,
    #[error("{0}")]
    Token(#[from] Rejection),
    #[error("{0}")]
    Conflict(String),
    /// Deleting it would take something away from others, whom `by` lists.
    #[error("This {object} is in use by {}; `?force=true` deletes it all the same", InUseBy::spoken(.by))]
    InUse { object: &'static str, by: Vec<InUseBy> },
    /// It runs by default for those whom `by` lists, and no force takes it from them.
    #[error("This {object} is a default of {}; take it out of those defaults first", InUseBy::spoken(.by))]
    DefaultOf { object: &'static str, by: Vec<InUseBy> },
    /// It is no longer as the caller, who said so with `If-Match`, saw it.
    #[error("{0}")]
    Changed(Box<ChangedSince>),
    /// Also the answer for what exists outside the caller's organisation or workspace: never confirm it.
    #[error("There is no such {0}")]
    NotFound(&'static str),
    /// The same, of what a field of the request names.
    #[error("{field}: there is no such {object}")]
    NoSuch { field: String, object: &'static str },
    /// A miss in the public price list, whose clients read `error` as a text.
    #[error("There is no {0}")]
    NotListed(&'static str),
    #[error("This feature is switched off ({setting})")]
    FeatureOff { setting: &'static str },
    /// More of something than this installation allows.
    #[error("{message} ({setting})")]
    LimitReached { message: String, setting: &'static str },
    #[error("This operation is part of the interface but not built yet")]
    NotBuilt,
    #[error(
        "Secrets cannot be stored: this installation has no master key (GATEWAY_MASTER_KEY_FILE, GATEWAY_MASTER_KEY)"
    )]
    NoMasterKey,
    /// Somebody asks for more at once, or more often, than their share.
    #[error("{message}")]
    RateLimited { message: &'static str, retry_after: u64 },
    #[error(
        "The database did not finish within the time of one statement (DATABASE_STATEMENT_TIMEOUT_MS); ask for less, \
         for example for a shorter time (time_of_generation_min, time_of_generation_max)"
    )]
    TooSlow,
    /// In the words of SCIM, whose errors have kinds of their own.
    #[error("{detail}")]
    Scim { status: StatusCode, kind: &'static str, detail: String },
    #[error("The server failed; the request id finds the cause in its log")]
    Internal,
    #[error("The database cannot be reached; try again shortly")]
    Unavailable,
}

impl ApiError {
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid { field: None, message: message.into() }
    }

    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { field: Some(field.into()), message: message.into() }
    }

    pub fn no_such(field: impl Into<String>, object: &'static str) -> Self {
        Self::NoSuch { field: field.into(), object }
    }

    /// The same error, found inside `outer`.
    pub fn under(self, outer: &str) -> Self {
        let joined = |inner: String| match inner.as_str() {
            "" => outer.to_owned(),
            inner if inner.starts_with('[') => format!("{outer}{inner}"),
            inner => format!("{outer}.{inner}"),
        };
        match self {
            Self::Invalid { field, message } => Self::field(joined(field.unwrap_or_default()), message),
            Self::Faults(faults) => {
                let moved = faults.into_iter().map(|one| FieldFault { field: joined(one.field.clone()), ..one });
                Self::Faults(moved.collect())
            }
            other => other,
        }
    }

    /// The same error with its fields under other names, and its messages in other words.
    pub fn reworded(self, name: impl Fn(String) -> String, message: impl Fn(String) -> String) -> Self {
        match self {
            Self::Invalid { field, message: text } => Self::Invalid { field: field.map(name), message: message(text) },
            Self::Faults(faults) => {
                let moved =
                    |one: FieldFault| FieldFault { field: name(one.field), message: message(one.message), ..one };
                Self::Faults(faults.into_iter().map(moved).collect())
            }
            Self::NoSuch { field, object } => Self::NoSuch { field: name(field), object },
            other => other,
        }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Self::Invalid { .. } | Self::Faults(_) | Self::Config(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NoSuchPath { .. } => StatusCode::NOT_FOUND,
            Self::WrongMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::WrongKeyKind | Self::MissingScope { .. } | Self::Forbidden(_) | Self::SignInRefused(_) => {
                StatusCode::FORBIDDEN
            }
            Self::Unauthenticated(_) | Self::Reauthenticate => StatusCode::UNAUTHORIZED,
            Self::Token(rejection) if rejection.is_forbidden() => StatusCode::FORBIDDEN,
            Self::Token(_) => StatusCode::UNAUTHORIZED,
            Self::Conflict(_) | Self::InUse { .. } | Self::DefaultOf { .. } => StatusCode::CONFLICT,
            Self::Changed(_) => StatusCode::PRECONDITION_FAILED,
            Self::NotFound(_) | Self::NoSuch { .. } | Self::NotListed(_) => StatusCode::NOT_FOUND,
            Self::FeatureOff { .. } | Self::LimitReached { .. } => StatusCode::PAYMENT_REQUIRED,
            Self::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Scim { status, .. } => *status,
            Self::NotBuilt => StatusCode::NOT_IMPLEMENTED,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable | Self::NoMasterKey | Self::TooSlow => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// `AB10` is ours; the contract ends at `AB09`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid { .. } | Self::Faults(_) | Self::Config(_) | Self::TooLarge { .. } => "AB01",
            Self::NoSuchPath { .. } | Self::WrongMethod { .. } => "AB02",
            Self::WrongKeyKind | Self::MissingScope { .. } | Self::Forbidden(_) | Self::SignInRefused(_) => "AB03",
            Self::Internal | Self::Unavailable | Self::TooSlow | Self::NoMasterKey => "AB04",
            Self::Scim { status, .. } if *status == StatusCode::CONFLICT => "AB07",
            Self::Scim { .. } => "AB01",
            Self::Unauthenticated(_) | Self::Reauthenticate => "AB05",
            Self::RateLimited { .. } => "AB06",
            Self::Token(rejection) => rejection.code(),
            Self::Conflict(_) | Self::InUse { .. } | Self::DefaultOf { .. } | Self::Changed(_) => "AB07",
            Self::NotFound(_) | Self::NoSuch { .. } | Self::NotListed(_) => "AB08",
            Self::FeatureOff { .. } | Self::LimitReached { .. } => "AB09",
            Self::NotBuilt => "AB10",
        }
    }

    fn kind(&self) -> &'static str {
        match self.code() {
            _ if matches!(self, Self::Reauthenticate) => "reauthenticate",
            "AB03" => "permission_error",
            "AB04" => "server_error",
            "AB05" => "authentication_error",
            "AB06" => "rate_limit_error",
            "AB07" => "conflict_error",
            "AB08" => "not_found_error",
            "AB09" => "billing_error",
            "AB10" => "not_implemented_error",
            _ => "invalid_request_error",
        }
    }

    /// The shape that identity providers read.
    pub fn scim_body(&self) -> Value {
        let kind = match self {
            Self::Scim { kind, .. } => kind,
            Self::Conflict(_) => "uniqueness",
            Self::Invalid { field: None, .. } => "invalidSyntax",
            Self::Invalid { .. } | Self::Faults(_) | Self::NoSuch { .. } => "invalidValue",
            _ => "",
        };
        let mut body = json!({
            "schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"],
            "status": self.status().as_u16().to_string(),
            "detail": self.to_string(),
        });
        if !kind.is_empty() {
            body["scimType"] = kind.into();
        }
        body
    }

    /// The one shape that all known clients read: a superset of the two published ones. A hint is a part of its sentence.
    pub fn body(&self, request_id: &str, hint: Option<&str>) -> Value {
        let message = match hint {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        };
        let errors: Vec<Value> = match self {
            Self::Invalid { field: Some(field), message } => {
                vec![FieldFault::new(field.as_str(), message.as_str()).to_json()]
            }
            Self::NoSuch { field, object } => {
                vec![FieldFault::new(field.as_str(), format!("there is no such {object}")).to_json()]
            }
            Self::Faults(faults) => faults.iter().map(FieldFault::to_json).collect(),
            Self::Config(faults) => faults.iter().map(config_error).collect(),
            _ => Vec::new(),
        };
        let field = errors.first().map(|error| &error["field"]);
        let error = match self {
            Self::NotListed(_) => json!(message),
            _ => json!({ "message": message, "type": self.kind(), "param": field, "code": self.code() }),
        };
        let mut data = json!({ "message": message, "errorCode": self.code(), "errors": errors });
        if let Self::InUse { by, .. } | Self::DefaultOf { by, .. } = self {
            data["in_use_by"] = json!(by);
        }
        if let Self::Changed(since) = self {
            data["changed"] = json!(since);
        }
        json!({ "success": false, "message": message, "data": data, "error": error, "request_id": request_id })
    }
}

/// Somebody who relies on what was to be deleted.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct InUseBy {
    /// As in the `object` field of what it is.
    pub object: &'static str,
    pub id: uuid::Uuid,
    pub name: String,
    pub workspace_id: Option<uuid::Uuid>,
}

impl InUseBy {
    /// The first few, and how many more there are.
    fn spoken(by: &[Self]) -> String {
        const SHOWN: usize = 5;
        let named = by.iter().take(SHOWN).map(|one| format!("{} `{}`", one.object, one.name));
        let named = named.collect::<Vec<_>>().join(", ");
        if by.len() > SHOWN { format!("{named} and {} more", by.len() - SHOWN) } else { named }
    }
}

/// Who changed an object since somebody saw it, as far as the audit trail knows.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ChangedSince {
    /// As times are written.
    pub at: String,
    /// `user`, `api_key` or `system`.
    pub by_type: Option<String>,
    pub by_id: Option<uuid::Uuid>,
    pub by_name: Option<String>,
    pub fields: Vec<String>,
}

impl std::fmt::Display for ChangedSince {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "This was changed since it was read (at {}", self.at)?;
        if let Some(name) = &self.by_name {
            write!(f, " by {name}")?;
        }
        match self.fields.as_slice() {
            [] => f.write_str("); read it again"),
            fields => write!(f, ": {}); read it again", fields.join(", ")),
        }
    }
}

fn hinted(hint: &Option<String>) -> String {
    hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default()
}

fn faults_message(faults: &[FieldFault]) -> String {
    let Some(first) = faults.first() else { return "The request is not valid".into() };
    match faults.len() {
        1 => first.sentence(),
        count => format!("{} (and {} more)", first.sentence(), count - 1),
    }
}

fn config_message(faults: &[Fault]) -> String {
    let Some(first) = faults.first() else { return "The config is not valid".into() };
    let others = match faults.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    format!("{}: {}{others}", config_field(first), first.message)
}

/// Where a fault is in the body.
fn config_field(fault: &Fault) -> String {
    if fault.path.is_empty() { "config".into() } else { format!("config.{}", fault.path) }
}

fn config_error(fault: &Fault) -> Value {
    json!({ "code": fault.code, "path": fault.path, "field": config_field(fault), "message": fault.message })
}

/// An error on its way to `observe`, which turns it into a body.
#[derive(Clone)]
pub struct ErrorExtension(pub std::sync::Arc<ApiError>);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        let headers = response.headers_mut();
        match &self {
            Self::WrongMethod { allow, .. } => {
                if let Ok(allow) = HeaderValue::from_str(allow) {
                    headers.insert(header::ALLOW, allow);
                }
            }
            Self::Unauthenticated(_) | Self::Token(_) if self.status() == StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::Unavailable => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            Self::RateLimited { retry_after, .. } => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(*retry_after));
            }
            _ => {}
        }
        response.extensions_mut().insert(ErrorExtension(self.into()));
        response
    }
}

/// The cause is logged and never shown. What Postgres refuses because of the values is the sender's fault; resources
/// check before that and say it better, this is the net below them.
impl From<tokio_postgres::Error> for ApiError {
    fn from(error: tokio_postgres::Error) -> Self {
        let refused = error.code().and_then(|state| refusal(state.code()));
        match refused {
            Some(refused) => {
                let constraint = error.as_db_error().and_then(|error| error.constraint());
                tracing::debug!(constraint, %refused, "Postgres refused the values");
                refused
            }
            None => {
                static FAILED_QUERY: LogLimit = LogLimit::new();
                if let Some(skipped) = FAILED_QUERY.pass() {
                    let error = Brief(shared::db::explain(&error));
                    tracing::error!(%error, skipped, "a query failed");
                }
                if is_outage(&error) { Self::Unavailable } else { Self::Internal }
            }
        }
    }
}

/// Integrity (class 23), text that cannot be stored (22), and values too large for an index (54).
fn refusal(sql_state: &str) -> Option<ApiError> {
    match sql_state {
        "23505" => Some(ApiError::Conflict("An object with these values exists already".into())),
        "23503" => Some(ApiError::NotFound("object as the one referred to")),
        "23514" | "22001" | "22021" | "22P05" | "54000" => {
            Some(ApiError::invalid("A value is longer than allowed or not of the allowed form"))
        }
        // Two transactions waited for each other; the one that was ended can be tried again.
        "40001" | "40P01" => Some(ApiError::Unavailable),
        // Our own bound; nobody else cancels our statements.
        "57014" => Some(ApiError::TooSlow),
        _ => None,
    }
}

impl From<bb8::RunError<tokio_postgres::Error>> for ApiError {
    fn from(error: bb8::RunError<tokio_postgres::Error>) -> Self {
        match error {
            bb8::RunError::User(error) => Self::from(error),
            bb8::RunError::TimedOut => {
                static NO_CONNECTION: LogLimit = LogLimit::new();
                if let Some(skipped) = NO_CONNECTION.pass() {
                    tracing::error!(skipped, "no connection to Postgres was free or could be made in time");
                }
                Self::Unavailable
            }
        }
    }
}

/// What went wrong with a key is the operator's to know, from the log.
impl From<SealError> for ApiError {
    fn from(error: SealError) -> Self {
        match error {
            SealError::NoMasterKey => Self::NoMasterKey,
            SealError::Database(error) => Self::from(error),
            error => {
                static UNSEALED: LogLimit = LogLimit::new();
                if let Some(skipped) = UNSEALED.pass() {
                    tracing::error!(%error, skipped, "a secret cannot be sealed or opened");
                }
                Self::Internal
            }
        }
    }
}

impl From<RowError> for ApiError {
    fn from(error: RowError) -> Self {
        match error {
            RowError::Postgres(error) => Self::from(error),
            shape @ RowError::Shape(_) => Self::from(anyhow::Error::from(shape)),
        }
    }
}

/// For rows that do not read as they should.
impl From<anyhow::Error> for ApiError {
    fn from(error: anyhow::Error) -> Self {
        static FAILED: LogLimit = LogLimit::new();
        if let Some(skipped) = FAILED.pass() {
            tracing::error!(error = %Brief(format!("{error:#}")), skipped, "a request failed");
        }
        Self::Internal
    }
}

/// Whether Postgres is away, as opposed to having refused a statement.
fn is_outage(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(state) => means_away(state.code()),
        None => error.is_closed() || std::error::Error::source(error).is_some_and(|cause| cause.is::<std::io::Error>()),
    }
}

/// Classes 08 (connection), 53 (resources) and 57P (shutdown, start-up).
fn means_away(sql_state: &str) -> bool {
    ["08", "53", "57P"].iter().any(|class| sql_state.starts_with(class))
}

#[cfg(test)]
mod tests;
