//! What a status is called in the errors of Google and of AWS, whose clients tell errors apart by these words.

/// `error.status` of Google's errors.
pub fn google_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        412 => "FAILED_PRECONDITION",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        501 => "UNIMPLEMENTED",
        502 | 503 => "UNAVAILABLE",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}

/// The exception of an answer, in the header `x-amzn-errortype`.
pub fn aws_exception(status: u16) -> &'static str {
    match status {
        401 => "UnrecognizedClientException",
        403 => "AccessDeniedException",
        404 => "ResourceNotFoundException",
        408 | 504 => "ModelTimeoutException",
        412 => "ServiceQuotaExceededException",
        429 => "ThrottlingException",
        501..=503 => "ServiceUnavailableException",
        500.. => "InternalServerException",
        _ => "ValidationException",
    }
}

/// The exception of a stream, of which there are fewer.
pub fn aws_stream_exception(status: u16) -> &'static str {
    match status {
        429 => "throttlingException",
        408 | 502..=504 => "serviceUnavailableException",
        500.. => "internalServerException",
        _ => "validationException",
    }
}
