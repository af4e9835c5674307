//! What a batch is run with: `gateway_options`, a map of the gateway's own headers. Some of them are credentials, so only
//! those that are known to be none are shown and stored as they are; the others are sealed, and a mask stands in their place.

use crate::request::headers::{Aliases, PREFIX};
use crate::request::refusal::Refusal;
use http::{HeaderName, HeaderValue, header};
use pingora_http::RequestHeader;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shared::config::placement_fields;
use shared::headers::gateway_headers;
use shared::nearest::nearest;
use shared::secrets::seal::SealedPlace;
use std::collections::BTreeMap;
use uuid::Uuid;

const MAX_OPTIONS: usize = 64;
/// Of one value: a config may be written out.
const MAX_VALUE: usize = 16 << 10;
const MAX_URL: usize = 2048;
const SECRET_LENGTH: std::ops::RangeInclusive<usize> = 16..=256;
const MASK: &str = "*****";

/// Who asks is known already; the others make sense only where there is a client.
const NOT_OPTIONS: [&str; 5] =
    ["api-key", "client-auth", "fetch-integrated-models", "forward-headers", "sensitive-headers"];

/// What is no secret, and is shown.
const SHOWN: [&str; 32] = [
    "provider",
    "virtual-key",
    "mode",
    "config",
    "metadata",
    "trace-id",
    "request-timeout",
    "retry-count",
    "custom-host",
    "debug",
    "cache",
    "cache-force-refresh",
    "cache-namespace",
    "strict-open-ai-compliance",
    "strict-openai-compliance",
    "openai-organization",
    "openai-project",
    "openai-beta",
    "anthropic-beta",
    "anthropic-version",
    "aws-region",
    "aws-s3-bucket",
    "aws-s3-object-key",
    "aws-bedrock-model",
    "vertex-project-id",
    "vertex-region",
    "vertex-storage-bucket-name",
    "azure-resource-name",
    "azure-deployment-id",
    "azure-api-version",
    "provider-model",
    "provider-file-name",
];

/// What of them is secret, as it is sealed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedOptions {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Signs the notice of the batch's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_secret: Option<String>,
}

impl SealedOptions {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Where those of a batch are sealed.
    pub fn place(organisation: Uuid, batch: Uuid) -> SealedPlace {
        SealedPlace { organisation, table: "batches", row: batch, field: "sealed" }
    }
}

/// The options of a request, checked.
#[derive(Debug, Default)]
pub struct BatchOptions {
    /// By full names; a secret one has a mask for its value.
    pub shown: Map<String, Value>,
    pub sealed: SealedOptions,
    pub completion_url: Option<String>,
}

impl BatchOptions {
    /// What the request's own headers say, and `gateway_options` in its body, which win.
    pub fn read(head: &RequestHeader, sent: Option<&Value>, aliases: &Aliases) -> Result<Self, Refusal> {
        let mut options = Self::default();
        for (name, value) in &head.headers {
            let Some((suffix, _)) = aliases.suffix(name.as_str()) else { continue };
            let is_ours = suffix == "provider" && value.as_bytes().trim_ascii() == b"gateway";
            if !is_ours
                && is_option(suffix)
                && let Ok(text) = value.to_str()
            {
                options.put(suffix, text)?;
            }
        }
        // With a key of ours beside it, it is the provider's.
        let is_providers = aliases_have(head, aliases, "api-key") && aliases_have(head, aliases, "provider");
        if let Some(key) = head.headers.get(header::AUTHORIZATION).filter(|_| is_providers)
            && let Ok(text) = key.to_str()
        {
            options.put(header::AUTHORIZATION.as_str(), text)?;
        }
        match sent {
            None | Some(Value::Null) => {}
            Some(Value::Object(sent)) => options.read_body(sent, aliases)?,
            Some(_) => return Err(wrong("it must be an object of headers")),
        }
        options.finish()
    }

    fn read_body(&mut self, sent: &Map<String, Value>, aliases: &Aliases) -> Result<(), Refusal> {
        for (name, value) in sent {
            let lower = name.to_ascii_lowercase();
            match (lower.as_str(), value) {
                (_, Value::Null) => {}
                ("completion_url", Value::String(url)) if url.len() <= MAX_URL => {
                    self.completion_url = Some(url.clone());
                }
                ("completion_url", _) => return Err(wrong("completion_url must be a URL of 2048 bytes at most")),
                ("completion_secret", Value::String(secret)) if SECRET_LENGTH.contains(&secret.len()) => {
                    self.sealed.completion_secret = Some(secret.clone());
                }
                ("completion_secret", _) => {
                    return Err(wrong("completion_secret must be a text of 16 to 256 bytes"));
                }
                ("authorization", value) => self.put("authorization", &text(name, value)?)?,
                (lower, value) => match aliases.suffix(lower) {
                    Some((suffix, _)) if is_option(suffix) => self.put(suffix, &text(name, value)?)?,
                    _ => return Err(unknown(name)),
                },
            }
        }
        Ok(())
    }

    fn put(&mut self, suffix: &str, text: &str) -> Result<(), Refusal> {
        let name = match suffix {
            "authorization" => suffix.to_owned(),
            suffix => [PREFIX, suffix].concat(),
        };
        if text.len() > MAX_VALUE || HeaderValue::from_bytes(text.as_bytes()).is_err() {
            return Err(wrong(&format!("the value of {name} is too long, or no header could have it")));
        }
        // A config that is written out may hold keys.
        let is_shown = SHOWN.contains(&suffix) && !(suffix == "config" && text.trim_start().starts_with('{'));
        match is_shown {
            true => {
                self.sealed.headers.remove(&name);
                self.shown.insert(name, text.into());
            }
            false => {
                self.shown.insert(name.clone(), MASK.into());
                self.sealed.headers.insert(name, text.to_owned());
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Self, Refusal> {
        if self.shown.len() > MAX_OPTIONS {
            return Err(wrong("it may have 64 headers at most"));
        }
        match (&self.completion_url, &self.sealed.completion_secret) {
            (Some(_), None) => Err(wrong("completion_url needs a completion_secret, which signs what is sent there")),
            (None, Some(_)) => Err(wrong("completion_secret is for a completion_url")),
            _ => Ok(self),
        }
    }
}

/// What a batch is run with, opened.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    headers: Vec<(HeaderName, HeaderValue)>,
    pub completion_secret: Option<String>,
}

impl RunOptions {
    pub fn new(shown: &Map<String, Value>, sealed: SealedOptions) -> Self {
        let plain = shown.iter().filter(|(name, _)| !sealed.headers.contains_key(*name));
        let plain = plain.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        let secret = sealed.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers = plain.chain(secret).filter_map(|(name, value)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::from_bytes(value.as_bytes()).ok()?))
        });
        Self { headers: headers.collect(), completion_secret: sealed.completion_secret }
    }

    /// A request that is run with them gets them as its headers.
    pub fn put_on(&self, head: &mut RequestHeader) {
        for (name, value) in &self.headers {
            let _ = head.insert_header(name.clone(), value.clone());
        }
    }
}

fn is_option(suffix: &str) -> bool {
    let is_header = gateway_headers::REQUEST.iter().any(|header| header.suffix == suffix);
    let is_effective = !NOT_OPTIONS.contains(&suffix) && !gateway_headers::RECORDED.contains(&suffix);
    (is_header || is_placement(suffix)) && is_effective
}

fn is_placement(suffix: &str) -> bool {
    let field = suffix.replace('-', "_");
    SHOWN.contains(&suffix) || placement_fields().any(|known| known == field)
}

fn aliases_have(head: &RequestHeader, aliases: &Aliases, wanted: &str) -> bool {
    head.headers.keys().any(|name| aliases.suffix(name.as_str()).is_some_and(|(suffix, _)| suffix == wanted))
}

/// A config and metadata may stand there as objects.
fn text(name: &str, value: &Value) -> Result<String, Refusal> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Object(_) => Ok(value.to_string()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        _ => Err(wrong(&format!("the value of {} must be a text", cut(name)))),
    }
}

fn unknown(name: &str) -> Refusal {
    let known = gateway_headers::REQUEST.iter().map(|header| header.suffix).filter(|suffix| is_option(suffix));
    let lower = name.to_ascii_lowercase();
    let meant = nearest(lower.strip_prefix(PREFIX).unwrap_or(&lower), known);
    let guess = meant.map(|meant| format!(": did you mean {PREFIX}{meant}?")).unwrap_or_default();
    wrong(&format!("`{}` is no header that a batch can be run with{guess}", cut(name)))
}

fn cut(name: &str) -> String {
    name.chars().take(64).collect()
}

fn wrong(why: &str) -> Refusal {
    Refusal::invalid_parameter(format!("gateway_options: {why}"), "gateway_options")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn head(pairs: &[(&'static str, &str)]) -> RequestHeader {
        let mut head = RequestHeader::build("POST", b"/v1/batches", None).unwrap();
        for (name, value) in pairs {
            head.insert_header(*name, *value).unwrap();
        }
        head
    }

    fn read(pairs: &[(&'static str, &str)], sent: Value) -> Result<BatchOptions, Refusal> {
        BatchOptions::read(&head(pairs), Some(&sent), &Aliases::default())
    }

    #[test]
    fn what_is_said_in_the_body_wins_over_headers_and_secrets_are_masked() {
        let headers = [
            ("x-gateway-api-key", "pk_mine"),
            ("x-gateway-provider", "openai"),
            ("authorization", "Bearer sk-theirs"),
            ("x-gateway-trace-id", "t-1"),
        ];
        let sent = json!({ "x-gateway-provider": "@main", "X-Gateway-Metadata": { "team": "a" },
            "x-gateway-config": { "api_key": "sk-inline" }, "x-gateway-aws-secret-access-key": "aws" });
        let options = read(&headers, sent).unwrap();
        assert_eq!(
            Value::Object(options.shown.clone()),
            json!({ "x-gateway-provider": "@main", "x-gateway-metadata": "{\"team\":\"a\"}", "x-gateway-trace-id": "t-1",
                "x-gateway-config": MASK, "x-gateway-aws-secret-access-key": MASK, "authorization": MASK })
        );
        let sealed: Vec<&str> = options.sealed.headers.keys().map(String::as_str).collect();
        assert_eq!(sealed, ["authorization", "x-gateway-aws-secret-access-key", "x-gateway-config"]);
        let mut run = head(&[]);
        RunOptions::new(&options.shown, options.sealed).put_on(&mut run);
        assert_eq!(run.headers.get("x-gateway-config").unwrap(), "{\"api_key\":\"sk-inline\"}");
        assert_eq!(run.headers.get("authorization").unwrap(), "Bearer sk-theirs");
        assert!(run.headers.get("x-gateway-api-key").is_none());
    }

    #[test]
    fn a_key_of_ours_is_no_option() {
        let options =
            read(&[("authorization", "Bearer pk_mine"), ("x-gateway-provider", "gateway")], json!({})).unwrap();
        assert!(options.shown.is_empty() && options.sealed.is_empty(), "{options:?}");
    }

    #[test]
    fn what_no_batch_can_be_run_with_is_refused() {
        for sent in [
            json!([]),
            json!({ "x-gateway-api-key": "k" }),
            json!({ "x-gateway-metdata": "{}" }),
            json!({ "host": "h" }),
            json!({ "x-gateway-config": ["a"] }),
            json!({ "x-gateway-config": "x".repeat(MAX_VALUE + 1) }),
            json!({ "x-gateway-trace-id": "a\nb" }),
            json!({ "completion_url": "https://a.example" }),
            json!({ "completion_secret": "0123456789abcdef" }),
            json!({ "completion_url": "https://a.example", "completion_secret": "short" }),
            json!({ "completion_url": 7 }),
        ] {
            let refusal = read(&[], sent.clone()).unwrap_err();
            assert_eq!((refusal.status, refusal.param.as_deref()), (400, Some("gateway_options")), "{sent}");
        }
        let told = read(&[], json!({ "x-gateway-metdata": "{}" })).unwrap_err();
        assert!(told.message.contains("did you mean x-gateway-metadata?"), "{}", told.message);
        let whole = json!({ "completion_url": "https://a.example", "completion_secret": "0123456789abcdef" });
        assert!(read(&[], whole).unwrap().sealed.completion_secret.is_some());
    }
}
