//! Why a request was refused: one enum, one mapping to status, code and body. The body names the request, which an
//! error does not know, so it travels in the response's extensions and `observe` writes it out.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use shared::config::Fault;
use shared::db::table::RowError;
use shared::identity::jwt::Rejection;
use shared::routes::Scopes;
use shared::seal::SealError;

#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// `field` is the path of what is wrong, as `usage_limits.credit_limit`.
    #[error("{}{message}", field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default())]
    Invalid { field: Option<String>, message: String },
    /// Everything that is wrong with a config.
    #[error("{}", config_message(.0))]
    Config(Vec<Fault>),
    #[error("The body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("There is no such path")]
    NoSuchPath,
    #[error("This path does not have that method")]
    WrongMethod { allow: String },
    #[error("This kind of credential may not perform the operation")]
    WrongKeyKind,
    #[error("This credential may not perform the operation (needs {needs})")]
    MissingScope { needs: Scopes },
    #[error("{0}")]
    Forbidden(&'static str),
    #[error("{0}")]
    Unauthenticated(&'static str),
    #[error("{0}")]
    Token(#[from] Rejection),
    #[error("{0}")]
    Conflict(String),
    /// Also the answer for what exists outside the caller's organisation or workspace: never confirm it.
    #[error("There is no such {0}")]
    NotFound(&'static str),
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

    /// The same error, found inside `outer`.
    pub fn under(self, outer: &str) -> Self {
        let Self::Invalid { field, message } = self else { return self };
        let field = match field {
            None => outer.to_owned(),
            Some(inner) if inner.starts_with('[') => format!("{outer}{inner}"),
            Some(inner) => format!("{outer}.{inner}"),
        };
        Self::field(field, message)
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Self::Invalid { .. } | Self::Config(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::WrongMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::WrongKeyKind | Self::MissingScope { .. } | Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
            Self::Token(rejection) if rejection.is_forbidden() => StatusCode::FORBIDDEN,
            Self::Token(_) => StatusCode::UNAUTHORIZED,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::NotFound(_) | Self::NotListed(_) => StatusCode::NOT_FOUND,
            Self::FeatureOff { .. } | Self::LimitReached { .. } => StatusCode::PAYMENT_REQUIRED,
            Self::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::TooSlow => StatusCode::GATEWAY_TIMEOUT,
            Self::NotBuilt => StatusCode::NOT_IMPLEMENTED,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable | Self::NoMasterKey => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// `AB10` is ours; the contract ends at `AB09`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid { .. } | Self::Config(_) | Self::TooLarge { .. } => "AB01",
            Self::NoSuchPath | Self::WrongMethod { .. } => "AB02",
            Self::WrongKeyKind | Self::MissingScope { .. } | Self::Forbidden(_) => "AB03",
            Self::Internal | Self::Unavailable | Self::TooSlow | Self::NoMasterKey => "AB04",
            Self::Unauthenticated(_) => "AB05",
            Self::RateLimited { .. } => "AB06",
            Self::Token(rejection) => rejection.code(),
            Self::Conflict(_) => "AB07",
            Self::NotFound(_) | Self::NotListed(_) => "AB08",
            Self::FeatureOff { .. } | Self::LimitReached { .. } => "AB09",
            Self::NotBuilt => "AB10",
        }
    }

    fn kind(&self) -> &'static str {
        match self.code() {
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

    /// The one shape that all known clients read: a superset of the two published ones.
    pub fn body(&self, request_id: &str) -> Value {
        let message = self.to_string();
        let errors: Vec<Value> = match self {
            Self::Invalid { field: Some(field), message } => vec![json!({ "field": field, "message": message })],
            Self::Config(faults) => faults.iter().map(config_error).collect(),
            _ => Vec::new(),
        };
        let field = errors.first().map(|error| &error["field"]);
        let error = match self {
            Self::NotListed(_) => json!(message),
            _ => json!({ "message": message, "type": self.kind(), "param": field, "code": self.code() }),
        };
        json!({
            "success": false,
            "message": message,
            "data": { "message": message, "errorCode": self.code(), "errors": errors },
            "error": error,
            "request_id": request_id,
        })
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
            Self::WrongMethod { allow } => {
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
                tracing::error!(error = shared::db::explain(&error), "a query failed");
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
                tracing::error!("no connection to Postgres was free or could be made in time");
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
                tracing::error!(%error, "a secret cannot be sealed or opened");
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
        tracing::error!(error = format!("{error:#}"), "a request failed");
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
