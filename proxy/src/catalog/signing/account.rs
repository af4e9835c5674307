//! An account's fields and its key → the credential they make. Pure. Field names are those of integrations, of targets
//! in configs and of headers alike (see `shared::providers::AccountFields`).

mod aws;
mod azure;
mod google;
mod oracle;
mod snowflake;

use super::token_request::TokenRequest;
use http::{HeaderName, HeaderValue, header};
use shared::providers::AccountFields;
use shared::secrets::cloud::AwsKeys;
use shared::secrets::seal::Secret;
use std::fmt;

#[derive(Clone)]
pub enum AccountCredential {
    /// A key, as it is.
    Header(HeaderName, HeaderValue),
    /// Signed with keys that last.
    AwsKeys {
        keys: AwsKeys,
        region: String,
        service: &'static str,
    },
    /// Signed with keys that end.
    AwsLent {
        keys: TokenRequest,
        region: String,
        service: &'static str,
    },
    Bearer(TokenRequest),
    /// `key_id` is `tenancy/user/fingerprint`.
    Oracle {
        key_id: String,
        key: TokenRequest,
    },
}

/// Which field makes no credential, and why. No value of a field is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct BadAccount {
    pub field: &'static str,
    pub problem: &'static str,
}

impl AccountCredential {
    /// Whether an account of this provider may have one.
    pub fn is_made_for(provider: &str) -> bool {
        PROVIDERS.contains(&provider)
    }

    /// None where the key is sent as the provider's row says. `key_header` is the row's header for it.
    pub fn parse(
        provider: &str,
        fields: &dyn AccountFields,
        key: Option<&str>,
        key_header: Option<&HeaderName>,
    ) -> Result<Option<Self>, BadAccount> {
        if !Self::is_made_for(provider) {
            return Ok(None);
        }
        let account = Account { fields, key: key.map(str::trim).filter(|key| !key.is_empty()) };
        match provider {
            "bedrock" => account.aws("bedrock", header::AUTHORIZATION).map(Some),
            "bedrock-mantle" => account.aws("bedrock-mantle", header::AUTHORIZATION).map(Some),
            "sagemaker" => account.aws("sagemaker", header::AUTHORIZATION).map(Some),
            "claude-platform-aws" => account.aws("aws-external-anthropic", X_API_KEY.clone()).map(Some),
            "azure-openai" => account.azure(API_KEY.clone()).map(Some),
            // Foundry takes its keys as bearer tokens, but for Claude's, whose wire has its own header.
            "azure-ai" => account.azure(key_header.cloned().unwrap_or(header::AUTHORIZATION)).map(Some),
            "vertex-ai" => account.google().map(Some),
            "oracle" => account.oracle().map(Some),
            "cortex" => account.snowflake(),
            _ => Ok(None),
        }
    }

    /// Whether requests to this provider may have to be signed together with their bodies.
    pub fn signs_bodies(provider: &str) -> bool {
        matches!(provider, "bedrock" | "bedrock-mantle" | "sagemaker" | "claude-platform-aws" | "oracle")
    }

    /// Whether it stands for this process.
    pub fn is_own_identity(&self) -> bool {
        match self {
            Self::AwsLent { keys: request, .. } | Self::Bearer(request) => request.is_own_identity(),
            Self::Header(..) | Self::AwsKeys { .. } | Self::Oracle { .. } => false,
        }
    }

    /// The same account at another service of AWS: the files of Bedrock are in S3.
    pub fn at_aws_service(self, service: &'static str) -> Self {
        match self {
            Self::AwsKeys { keys, region, .. } => Self::AwsKeys { keys, region, service },
            Self::AwsLent { keys, region, .. } => Self::AwsLent { keys, region, service },
            other => other,
        }
    }
}

static PROVIDERS: [&str; 9] = [
    "bedrock",
    "bedrock-mantle",
    "sagemaker",
    "claude-platform-aws",
    "azure-openai",
    "azure-ai",
    "vertex-ai",
    "oracle",
    "cortex",
];

static API_KEY: HeaderName = HeaderName::from_static("api-key");
static X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// What there is to read.
struct Account<'a> {
    fields: &'a dyn AccountFields,
    key: Option<&'a str>,
}

const REQUIRED: &str = "is required";
/// Names, ids and scopes. Keys have a bound of their own.
const MAX_TEXT: usize = 2048;
const MAX_SECRET: usize = 32 << 10;

impl Account<'_> {
    /// Without the spaces around it; an empty one is none.
    fn raw(&self, field: &str) -> Option<&str> {
        self.fields.text(field).map(str::trim).filter(|text| !text.is_empty())
    }

    fn text(&self, field: &'static str) -> Result<Option<&str>, BadAccount> {
        match self.raw(field) {
            Some(text) if text.len() > MAX_TEXT || text.contains(char::is_control) => {
                Err(BadAccount { field, problem: "is too long or has a control character" })
            }
            text => Ok(text),
        }
    }

    fn need(&self, field: &'static str) -> Result<&str, BadAccount> {
        self.text(field)?.ok_or(BadAccount { field, problem: REQUIRED })
    }

    /// May have line ends, as private keys do.
    fn secret(&self, field: &'static str) -> Result<Option<Secret>, BadAccount> {
        match self.raw(field) {
            Some(text) if text.len() > MAX_SECRET => Err(BadAccount { field, problem: "is too long" }),
            text => Ok(text.map(|text| text.to_owned().into())),
        }
    }

    fn need_secret(&self, field: &'static str) -> Result<Secret, BadAccount> {
        self.secret(field)?.ok_or(BadAccount { field, problem: REQUIRED })
    }

    /// The key in a header: as a bearer token in `authorization`, else bare.
    fn key_header(&self, name: HeaderName) -> Result<AccountCredential, BadAccount> {
        let key = self.key.ok_or(BadAccount { field: "key", problem: REQUIRED })?;
        header_value("key", name, key)
    }
}

fn header_value(field: &'static str, name: HeaderName, text: &str) -> Result<AccountCredential, BadAccount> {
    let bare = text.strip_prefix("Bearer ").unwrap_or(text);
    let value = if name == header::AUTHORIZATION { format!("Bearer {bare}") } else { bare.to_owned() };
    let mut value = HeaderValue::try_from(value).map_err(|_| BadAccount { field, problem: "is no header value" })?;
    value.set_sensitive(true);
    Ok(AccountCredential::Header(name, value))
}

/// The kind alone.
impl fmt::Debug for AccountCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name, _) => write!(f, "Header({name})"),
            Self::AwsKeys { region, service, .. } => write!(f, "AwsKeys({service}, {region})"),
            Self::AwsLent { keys, region, service } => write!(f, "AwsLent({keys:?}, {service}, {region})"),
            Self::Bearer(request) => write!(f, "Bearer({request:?})"),
            Self::Oracle { .. } => f.write_str("Oracle"),
        }
    }
}

#[cfg(test)]
mod tests;
