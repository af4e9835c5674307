//! AWS: what is asked of Secrets Manager, of STS and of the machine's own identity services, and how to read what they
//! answer. Nothing here sends or signs.

use super::http::{Request, Response, form};
use super::sigv4::AwsKeys;
use super::{FetchError, plain, refused, text};
use crate::seal::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

/// Keys that end.
#[derive(Debug, Clone)]
pub struct Lent {
    pub keys: AwsKeys,
    pub until: Option<DateTime<Utc>>,
}

pub fn endpoint(service: &str, region: &str) -> String {
    let suffix = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("https://{service}.{region}.{suffix}")
}

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

const VERSION: &str = "2011-06-15";
const SESSION: &str = "portcullis";

pub fn assume_role(endpoint: &str, role_arn: &Secret, external_id: Option<&Secret>) -> Request {
    let mut pairs = vec![
        ("Action", "AssumeRole"),
        ("Version", VERSION),
        ("RoleArn", text(role_arn)),
        ("RoleSessionName", SESSION),
        ("DurationSeconds", "3600"),
    ];
    pairs.extend(external_id.map(|id| ("ExternalId", text(id))));
    form_request(endpoint, &pairs)
}

/// Not signed: the token is the credential.
pub fn assume_role_with_web_identity(endpoint: &str, role_arn: &str, token: &str) -> Request {
    form_request(
        endpoint,
        &[
            ("Action", "AssumeRoleWithWebIdentity"),
            ("Version", VERSION),
            ("RoleArn", role_arn),
            ("RoleSessionName", SESSION),
            ("WebIdentityToken", token),
        ],
    )
}

fn form_request(endpoint: &str, pairs: &[(&str, &str)]) -> Request {
    Request::post(format!("{endpoint}/"), "application/x-www-form-urlencoded", form(pairs).into_bytes())
}

/// STS answers in XML, of which four elements matter; none of them can hold another or an entity.
pub fn assumed(response: &Response) -> Result<Lent, FetchError> {
    let body = String::from_utf8_lossy(&response.body);
    let element = |name: &str| {
        let rest = body.split_once(&format!("<{name}>"))?.1;
        Some(rest.split_once(&format!("</{name}>"))?.0.trim().to_owned())
    };
    if !response.is_success() {
        return Err(refused(response.status, &plain(&element("Code").unwrap_or_default())));
    }
    let need = |name: &str| element(name).map(Secret::from).ok_or(FetchError::Malformed("no keys from STS"));
    Ok(Lent {
        keys: AwsKeys {
            id: need("AccessKeyId")?,
            secret: need("SecretAccessKey")?,
            session: Some(need("SessionToken")?),
        },
        until: element("Expiration").and_then(|time| time.parse().ok()),
    })
}

/// As the container and instance services answer.
pub fn lent(response: &Response) -> Result<Lent, FetchError> {
    if !response.is_success() {
        return Err(FetchError::Away(format!("the machine's identity service said {}", response.status)));
    }
    let body = response.json().unwrap_or_default();
    let field = |name: &str| body[name].as_str().map(str::to_owned);
    let need = |name: &str| field(name).map(Secret::from).ok_or(FetchError::Malformed("no keys from the machine"));
    Ok(Lent {
        keys: AwsKeys {
            id: need("AccessKeyId")?,
            secret: need("SecretAccessKey")?,
            session: field("Token").map(Secret::from),
        },
        until: field("Expiration").and_then(|time| time.parse().ok()),
    })
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

    #[test]
    fn keys_are_read_from_xml_and_json() {
        let xml = "<AssumeRoleResponse><AssumeRoleResult><Credentials><SessionToken>tok</SessionToken>
            <SecretAccessKey>sec</SecretAccessKey><Expiration>2026-01-05T10:30:00.000Z</Expiration>
            <AccessKeyId>ASIA1</AccessKeyId></Credentials></AssumeRoleResult></AssumeRoleResponse>";
        let json =
            r#"{"AccessKeyId":"ASIA1","SecretAccessKey":"sec","Token":"tok","Expiration":"2026-01-05T10:30:00Z"}"#;
        for found in [assumed(&response(200, xml)).unwrap(), lent(&response(200, json)).unwrap()] {
            assert_eq!((text(&found.keys.id), text(&found.keys.secret)), ("ASIA1", "sec"));
            assert_eq!(found.keys.session.as_ref().map(text), Some("tok"));
            assert_eq!(found.until, "2026-01-05T10:30:00Z".parse().ok());
        }
        let denied =
            "<ErrorResponse><Error><Code>AccessDenied</Code><Message>role s3cret</Message></Error></ErrorResponse>";
        let denied = assumed(&response(403, denied)).unwrap_err();
        assert_eq!(denied, FetchError::Denied("status 403, AccessDenied".into()));
    }
}
