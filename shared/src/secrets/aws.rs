//! AWS Secrets Manager: what is asked of it, and how to read what it answers. Nothing here sends or signs.

use super::cloud::{Request, Response};
use super::seal::Secret;
use super::{FetchError, plain, refused};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub fn get_secret(endpoint: &str, secret_id: &str) -> Request {
    let body = json!({ "SecretId": secret_id }).to_string().into_bytes();
    Request::post(format!("{endpoint}/"), "application/x-amz-json-1.1", body)
        .with("x-amz-target", "secretsmanager.GetSecretValue")
}

pub fn secret(response: &Response) -> Result<Secret, FetchError> {
    let body = response.json().unwrap_or_default();
    if !response.is_success() {
        return Err(refusal(response.status, &body));
    }
    if let Some(text) = body["SecretString"].as_str() {
        return Ok(text.to_owned().into());
    }
    let bytes = body["SecretBinary"].as_str().and_then(|text| STANDARD.decode(text).ok());
    bytes.map(Secret::from).ok_or(FetchError::Malformed("neither text nor bytes"))
}

fn refusal(status: u16, body: &Value) -> FetchError {
    let kind = body["__type"].as_str().unwrap_or_default();
    let kind = plain(kind.rsplit('#').next().unwrap_or_default());
    match kind.as_str() {
        "ResourceNotFoundException" => FetchError::Missing(kind),
        // A secret that is scheduled for deletion is refused this way.
        "InvalidRequestException" => FetchError::Missing(kind),
        "InternalServiceError" | "InternalServiceErrorException" | "ThrottlingException" | "RequestLimitExceeded" => {
            FetchError::Away(kind)
        }
        _ => refused(status, &kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &str) -> Response {
        Response { status, body: body.as_bytes().to_vec() }
    }

    #[test]
    fn a_secret_is_text_or_bytes_and_each_refusal_means_what_it_says() {
        let found = secret(&response(200, r#"{"Name":"n","SecretString":"s3cret"}"#)).unwrap();
        assert_eq!(found.expose_text(), Some("s3cret"));
        assert_eq!(secret(&response(200, r#"{"SecretBinary":"AAE="}"#)).unwrap().expose(), [0, 1]);
        let of = |status, kind: &str| {
            secret(&response(status, &format!(r#"{{"__type":"{kind}","message":"about s3cret"}}"#))).unwrap_err()
        };
        for (status, kind, keeps_stale) in [
            (400, "ResourceNotFoundException", false),
            (400, "com.amazonaws.secretsmanager#InvalidRequestException", false),
            (400, "AccessDeniedException", false),
            (400, "ExpiredTokenException", false),
            (400, "UnrecognizedClientException", false),
            (400, "ThrottlingException", true),
            (500, "InternalServiceError", true),
            (503, "", true),
        ] {
            let error = of(status, kind);
            assert_eq!(error.keeps_stale(), keeps_stale, "{status} {kind}: {error}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        assert!(matches!(secret(&response(200, "<html>")), Err(FetchError::Malformed(_))));
    }
}
