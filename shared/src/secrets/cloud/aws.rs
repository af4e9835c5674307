//! AWS: what is asked of STS and of the machine's own identity services, and how to read what they answer. Nothing here
//! sends or signs.

use super::http::{Request, Response, form};
use super::sigv4::AwsKeys;
use super::{LoginError, MAX_LIFE, plain, refused, text};
use crate::secrets::seal::Secret;
use chrono::{DateTime, Utc};
use std::time::Duration;

/// Keys that end.
#[derive(Debug, Clone)]
pub struct LentKeys {
    pub keys: AwsKeys,
    pub until: Option<DateTime<Utc>>,
}

/// For keys that do not say when they end: those of the environment may be changed.
const UNSAID: Duration = Duration::from_secs(300);

impl LentKeys {
    pub fn lasts(&self, now: DateTime<Utc>) -> Duration {
        let left = self.until.map_or(UNSAID, |end| (end - now).to_std().unwrap_or_default());
        left.min(MAX_LIFE)
    }
}

pub fn endpoint(service: &str, region: &str) -> String {
    let suffix = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("https://{service}.{region}.{suffix}")
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
pub fn assumed(response: &Response) -> Result<LentKeys, LoginError> {
    let body = String::from_utf8_lossy(&response.body);
    let element = |name: &str| {
        let rest = body.split_once(&format!("<{name}>"))?.1;
        Some(rest.split_once(&format!("</{name}>"))?.0.trim().to_owned())
    };
    if !response.is_success() {
        return Err(refused(response.status, &plain(&element("Code").unwrap_or_default())));
    }
    let need = |name: &str| element(name).and_then(sendable).ok_or(LoginError::Malformed("no keys from STS"));
    Ok(LentKeys {
        keys: AwsKeys {
            id: need("AccessKeyId")?,
            secret: need("SecretAccessKey")?,
            session: Some(need("SessionToken")?),
        },
        until: element("Expiration").and_then(|time| time.parse().ok()),
    })
}

/// As the container and instance services answer.
pub fn lent(response: &Response) -> Result<LentKeys, LoginError> {
    if !response.is_success() {
        return Err(LoginError::Away(format!("the machine's identity service said {}", response.status)));
    }
    let body = response.json().unwrap_or_default();
    let field = |name: &str| body[name].as_str().map(str::to_owned).and_then(sendable);
    let need = |name: &str| field(name).ok_or(LoginError::Malformed("no keys from the machine"));
    Ok(LentKeys {
        keys: AwsKeys { id: need("AccessKeyId")?, secret: need("SecretAccessKey")?, session: field("Token") },
        until: body["Expiration"].as_str().and_then(|time| time.parse().ok()),
    })
}

/// Identity and session will stand in headers.
fn sendable(text: String) -> Option<Secret> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &str) -> Response {
        Response { status, body: body.as_bytes().to_vec() }
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
            assert_eq!(found.lasts("2026-01-05T10:00:00Z".parse().unwrap()), Duration::from_secs(1800));
            assert_eq!(found.lasts("2026-01-05T11:00:00Z".parse().unwrap()), Duration::ZERO);
        }
        let denied =
            "<ErrorResponse><Error><Code>AccessDenied</Code><Message>role s3cret</Message></Error></ErrorResponse>";
        let denied = assumed(&response(403, denied)).unwrap_err();
        assert_eq!(denied, LoginError::Denied("status 403, AccessDenied".into()));
        let folded = json.replace("tok", "t\\r\\nok").replace("ASIA1", "A\\nB");
        assert!(lent(&response(200, &folded)).is_err());
    }
}
