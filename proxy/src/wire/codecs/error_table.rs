//! Errors of every format, both ways (contract 7.x, 10.2 and 7.12).

use crate::wire::conversation::ErrorKind;
use crate::wire::conversation::ErrorKind::*;
use crate::wire::conversation::WireFormat;
use crate::wire::conversation::WireFormat::{Chat, Converse, Gemini, Messages};

/// Format, the vendor's type, its status, what it means. Reading looks for the type; writing takes the first of a kind.
static ROWS: &[(WireFormat, &str, u16, ErrorKind)] = &[
    (Chat, "invalid_request_error", 400, InvalidRequest),
    (Chat, "authentication_error", 401, Authentication),
    (Chat, "insufficient_quota", 429, Billing),
    (Chat, "permission_error", 403, Permission),
    (Chat, "not_found_error", 404, NotFound),
    (Chat, "timeout_error", 408, Timeout),
    (Chat, "invalid_request_error", 413, TooLarge),
    (Chat, "rate_limit_error", 429, RateLimit),
    (Chat, "rate_limit_exceeded", 429, RateLimit),
    (Chat, "tokens", 429, RateLimit),
    (Chat, "requests", 429, RateLimit),
    (Chat, "server_error", 503, Overloaded),
    (Chat, "server_error", 503, Unavailable),
    (Chat, "server_error", 500, Internal),
    (Messages, "invalid_request_error", 400, InvalidRequest),
    (Messages, "authentication_error", 401, Authentication),
    (Messages, "billing_error", 402, Billing),
    (Messages, "permission_error", 403, Permission),
    (Messages, "not_found_error", 404, NotFound),
    (Messages, "timeout_error", 504, Timeout),
    (Messages, "request_too_large", 413, TooLarge),
    (Messages, "rate_limit_error", 429, RateLimit),
    (Messages, "overloaded_error", 529, Overloaded),
    (Messages, "api_error", 500, Internal),
    (Messages, "api_error", 503, Unavailable),
    (Gemini, "INVALID_ARGUMENT", 400, InvalidRequest),
    (Gemini, "FAILED_PRECONDITION", 400, InvalidRequest),
    (Gemini, "OUT_OF_RANGE", 400, InvalidRequest),
    (Gemini, "UNAUTHENTICATED", 401, Authentication),
    (Gemini, "PERMISSION_DENIED", 403, Permission),
    (Gemini, "NOT_FOUND", 404, NotFound),
    (Gemini, "INVALID_ARGUMENT", 413, TooLarge),
    (Gemini, "RESOURCE_EXHAUSTED", 429, RateLimit),
    (Gemini, "RESOURCE_EXHAUSTED", 429, Billing),
    (Gemini, "CANCELLED", 499, Timeout),
    (Gemini, "DEADLINE_EXCEEDED", 504, Timeout),
    (Gemini, "UNAVAILABLE", 503, Overloaded),
    (Gemini, "UNAVAILABLE", 503, Unavailable),
    (Gemini, "INTERNAL", 500, Internal),
    (Gemini, "UNKNOWN", 500, Internal),
    (Converse, "ValidationException", 400, InvalidRequest),
    (Converse, "ServiceQuotaExceededException", 400, Billing),
    (Converse, "UnrecognizedClientException", 403, Authentication),
    (Converse, "AccessDeniedException", 403, Permission),
    (Converse, "ResourceNotFoundException", 404, NotFound),
    (Converse, "ModelTimeoutException", 408, Timeout),
    (Converse, "ValidationException", 413, TooLarge),
    (Converse, "ThrottlingException", 429, RateLimit),
    (Converse, "ModelNotReadyException", 429, Overloaded),
    (Converse, "ServiceUnavailableException", 503, Unavailable),
    (Converse, "InternalServerException", 500, Internal),
    (Converse, "ModelErrorException", 424, Internal),
    (Converse, "ModelStreamErrorException", 424, Internal),
];

/// What a status means where no type is given.
static STATUSES: &[(u16, ErrorKind)] = &[
    (400, InvalidRequest),
    (401, Authentication),
    (402, Billing),
    (403, Permission),
    (404, NotFound),
    (408, Timeout),
    (413, TooLarge),
    (422, InvalidRequest),
    (424, Internal),
    (429, RateLimit),
    (499, Timeout),
    (500, Internal),
    (502, Unavailable),
    (503, Unavailable),
    (504, Timeout),
    (529, Overloaded),
];

pub fn kind_of_status(status: u16) -> ErrorKind {
    let other = if (400..500).contains(&status) { InvalidRequest } else { Internal };
    STATUSES.iter().find(|(known, _)| *known == status).map_or(other, |(_, kind)| *kind)
}

/// Types are compared without case: AWS writes them in two ways.
pub fn kind_of_type(format: WireFormat, native: &str) -> Option<(u16, ErrorKind)> {
    let row = ROWS.iter().find(|(known, name, ..)| *known == format && name.eq_ignore_ascii_case(native));
    row.map(|(_, _, status, kind)| (*status, *kind))
}

/// The type in which `format` says an error of this kind.
pub fn type_for(format: WireFormat, kind: ErrorKind) -> &'static str {
    let row = ROWS.iter().find(|(known, _, _, meant)| *known == format && *meant == kind);
    row.map_or("api_error", |(_, name, ..)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_said_where_types_exist() {
        let kinds = [
            InvalidRequest,
            Authentication,
            Billing,
            Permission,
            NotFound,
            Timeout,
            TooLarge,
            RateLimit,
            Overloaded,
            Unavailable,
            Internal,
        ];
        for format in [Chat, Messages, Gemini, Converse] {
            for kind in kinds {
                assert!(ROWS.iter().any(|row| row.0 == format && row.3 == kind), "{format:?} {kind:?}");
            }
        }
    }

    #[test]
    fn an_unknown_status_is_the_callers_or_the_vendors_fault() {
        assert_eq!(kind_of_status(418), InvalidRequest);
        assert_eq!(kind_of_status(599), Internal);
        assert_eq!(kind_of_type(Converse, "throttlingException"), Some((429, RateLimit)));
    }
}
