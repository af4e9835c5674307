//! What each kind of provider must be told, and in which form. Pure: judged on the fields as they will be stored, after
//! an update was laid over them. Fields that nobody described here are kept as they came.

use super::secrets::Fields;
use crate::http::{ApiError, FieldFault};
use axum::http::{HeaderName, HeaderValue};
use serde_json::Value;
use shared::outbound::Guard;
use shared::providers::{Auth, ProviderEntry};

const LONGEST_KEY: usize = 4096;
/// All settings together, in bytes.
const LARGEST: usize = 256 << 10;

/// What there is to judge.
pub struct AccountToCheck<'a> {
    pub provider: &'a ProviderEntry,
    pub key: Option<&'a str>,
    pub configurations: &'a Fields,
    /// Fields that come from outside secrets: `key`, `configurations.<field>`.
    pub mapped: Vec<String>,
    pub hosts: &'a Guard,
}

impl AccountToCheck<'_> {
    pub fn check(&self) -> Result<(), ApiError> {
        // It will stand in a header.
        let is_key = |key: &str| !key.trim().is_empty() && key.len() <= LONGEST_KEY && !key.contains(char::is_control);
        if self.key.is_some_and(|key| !is_key(key)) {
            let message = format!("must have 1 to {LONGEST_KEY} characters, none of them a control character");
            return Err(ApiError::field("key", message));
        }
        let size = self.configurations.values().map(|value| value.to_string().len()).sum::<usize>();
        if size > LARGEST {
            return Err(ApiError::field("configurations", format!("must have at most {LARGEST} bytes")));
        }
        self.everywhere()?;
        let needs_key = match &*self.provider.slug {
            "azure-openai" => self.azure_openai()?,
            "azure-ai" => self.azure_ai()?,
            "bedrock" | "sagemaker" => self.aws()?,
            "bedrock-mantle" | "claude-platform-aws" if self.configurations.contains_key("aws_auth_type") => {
                self.aws()?
            }
            "vertex-ai" => self.vertex()?,
            "workers-ai" => self.needs("workers_ai_account_id")?,
            "cortex" => self.snowflake()?,
            _ => matches!(self.provider.auth, Auth::Header { .. }),
        };
        if needs_key && self.key.is_none() && !self.is_mapped("key") {
            return Err(ApiError::field("key", "is required"));
        }
        Ok(())
    }

    /// What any provider may have.
    fn everywhere(&self) -> Result<(), ApiError> {
        for name in ["custom_host", "huggingface_base_url", "azure_foundry_url"] {
            if let Some(value) = self.configurations.get(name) {
                host(value, self.hosts).map_err(|error| error.under(&path(name)))?;
            }
        }
        if let Some(value) = self.configurations.get("custom_headers") {
            headers(value).map_err(|error| error.under(&path("custom_headers")))?;
        }
        for name in TEXTS {
            if self.configurations.get(*name).is_some_and(|value| !value.is_string()) {
                return Err(ApiError::field(path(name), "must be a string"));
            }
        }
        Ok(())
    }

    fn azure_openai(&self) -> Result<bool, ApiError> {
        let needs_key = self.azure_auth()?;
        self.require("azure_resource_name")?;
        let deployments = self.configurations.get("azure_deployment_config");
        let Some(deployments) = deployments else { return self.needs("azure_deployment_config").map(|_| needs_key) };
        let items = deployments.as_array().filter(|items| !items.is_empty());
        let items =
            items.ok_or_else(|| ApiError::field(path("azure_deployment_config"), "must be a list of at least 1"))?;
        for (n, item) in items.iter().enumerate() {
            deployment(item).map_err(|error| error.under(&path(&format!("azure_deployment_config[{n}]"))))?;
        }
        Ok(needs_key)
    }

    fn azure_ai(&self) -> Result<bool, ApiError> {
        let needs_key = self.azure_auth()?;
        self.require("azure_foundry_url")?;
        Ok(needs_key)
    }

    fn azure_auth(&self) -> Result<bool, ApiError> {
        match self.choice("azure_auth_mode", &["default", "entra", "managed", "workload", "entraFederated"])? {
            "default" => Ok(true),
            "entra" => {
                for name in ["azure_entra_tenant_id", "azure_entra_client_id", "azure_entra_client_secret"] {
                    self.require(name)?;
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    fn aws(&self) -> Result<bool, ApiError> {
        let auth = self.choice("aws_auth_type", &["accessKey", "assumedRole", "serviceRole", "apiKey"])?;
        self.require("aws_region")?;
        match auth {
            "accessKey" => {
                self.require("aws_access_key_id")?;
                self.require("aws_secret_access_key")?;
            }
            "assumedRole" => self.require("aws_role_arn")?,
            _ => {}
        }
        Ok(auth == "apiKey")
    }

    fn vertex(&self) -> Result<bool, ApiError> {
        let auth = self.choice("vertex_auth_type", &["basic", "serviceAccount", "workloadIdentity"])?;
        self.require("vertex_region")?;
        let json = "vertex_service_account_json";
        if auth == "serviceAccount" {
            self.require(json)?;
        }
        let is_object = |value: &Value| match value {
            Value::String(text) => serde_json::from_str::<Fields>(text).is_ok(),
            other => other.is_object(),
        };
        if self.configurations.get(json).is_some_and(|value| !is_object(value)) {
            return Err(ApiError::field(path(json), "must be a JSON object"));
        }
        Ok(auth == "basic")
    }

    /// A key pair, of which the proxy makes tokens, or a token as the key.
    fn snowflake(&self) -> Result<bool, ApiError> {
        self.require("snowflake_account")?;
        let has_pair = self.require("snowflake_private_key").is_ok();
        if has_pair {
            self.require("snowflake_user")?;
        }
        Ok(!has_pair)
    }

    /// A field without which the provider cannot be reached, beside its key.
    fn needs(&self, name: &str) -> Result<bool, ApiError> {
        self.require(name).map(|()| true)
    }

    fn require(&self, name: &str) -> Result<(), ApiError> {
        let is_there = self.configurations.get(name).is_some_and(|value| value.as_str() != Some(""));
        if is_there || self.is_mapped(&path(name)) {
            return Ok(());
        }
        Err(ApiError::field(path(name), "is required"))
    }

    fn choice(&self, name: &str, allowed: &[&'static str]) -> Result<&'static str, ApiError> {
        self.require(name)?;
        let sent = self.configurations.get(name).and_then(Value::as_str);
        let found = allowed.iter().find(|one| Some(**one) == sent);
        let wrong = || FieldFault::not_among(path(name), sent.unwrap_or_default(), allowed);
        found.copied().ok_or_else(|| ApiError::Faults(vec![wrong()]))
    }

    fn is_mapped(&self, target: &str) -> bool {
        self.mapped.iter().any(|one| one == target)
    }
}

/// Described fields that hold a text.
static TEXTS: &[&str] = &[
    "openai_organization",
    "openai_project",
    "azure_resource_name",
    "azure_entra_tenant_id",
    "azure_entra_client_id",
    "azure_entra_client_secret",
    "azure_entra_scope",
    "azure_managed_client_id",
    "azure_workload_client_id",
    "azure_workload_tenant_id",
    "azure_api_version",
    "azure_deployment_name",
    "aws_region",
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_role_arn",
    "aws_external_id",
    "vertex_region",
    "vertex_project_id",
    "workers_ai_account_id",
    "snowflake_account",
    "snowflake_user",
    "snowflake_private_key",
    "snowflake_private_key_passphrase",
];

fn path(name: &str) -> String {
    format!("configurations.{name}")
}

/// An address that credentials will be sent to: judged as the proxy will judge it.
pub fn host(value: &Value, hosts: &Guard) -> Result<(), ApiError> {
    let Some(url) = value.as_str() else { return Err(ApiError::invalid("must be a URL")) };
    hosts.custom_host(url).map(|_| ()).map_err(|rule| ApiError::invalid(format!("cannot be used: {rule}")))
}

/// Headers that can be sent as they are.
pub fn headers(value: &Value) -> Result<(), ApiError> {
    const MOST: usize = 100;
    let Some(fields) = value.as_object().filter(|fields| fields.len() <= MOST) else {
        return Err(ApiError::invalid(format!("must be an object of at most {MOST} headers")));
    };
    for (n, (name, value)) in fields.iter().enumerate() {
        let is_header = HeaderName::try_from(name).is_ok();
        let is_value = value.as_str().is_some_and(|value| HeaderValue::try_from(value).is_ok());
        if !is_header || !is_value {
            return Err(ApiError::invalid(format!("its entry {} is no header of a name and a text", n + 1)));
        }
    }
    Ok(())
}

fn deployment(item: &Value) -> Result<(), ApiError> {
    for (name, most) in [("azure_deployment_name", 255), ("azure_api_version", 30), ("azure_model_slug", 255)] {
        match item.get(name).and_then(Value::as_str) {
            None => return Err(ApiError::field(name, "is required")),
            Some(text) if text.is_empty() || text.chars().count() > most => {
                return Err(ApiError::field(name, format!("must have 1 to {most} characters")));
            }
            Some(_) => {}
        }
    }
    if item.get("alias").is_some_and(|alias| !alias.is_string() && !alias.is_null()) {
        return Err(ApiError::field("alias", "must be a string"));
    }
    if item.get("is_default").is_some_and(|flag| !flag.is_boolean() && !flag.is_null()) {
        return Err(ApiError::field("is_default", "must be a boolean"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use shared::providers::Providers;

    fn judged(provider: &str, key: Option<&str>, configurations: Value, mapped: &[&str]) -> Result<(), String> {
        let table = Providers::bundled().unwrap();
        let account = AccountToCheck {
            provider: table.get(provider).unwrap(),
            key,
            configurations: configurations.as_object().unwrap(),
            mapped: mapped.iter().map(|one| (*one).to_owned()).collect(),
            hosts: &Guard::new(&["trusted.test".into()], &[]).unwrap(),
        };
        match account.check() {
            Ok(()) => Ok(()),
            Err(ApiError::Invalid { field, .. }) => Err(field.unwrap_or_default()),
            Err(ApiError::Faults(faults)) => Err(faults[0].field.clone()),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn each_kind_of_provider_asks_for_its_own_fields() {
        let azure = |more: Value| {
            let mut fields = json!({
                "azure_auth_mode": "default",
                "azure_resource_name": "r",
                "azure_deployment_config":
                    [{ "azure_deployment_name": "d", "azure_api_version": "v", "azure_model_slug": "gpt-4o" }],
            });
            fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            fields
        };
        let aws = |auth: &str, more: Value| {
            let mut fields = json!({ "aws_auth_type": auth, "aws_region": "us-east-1" });
            fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            fields
        };
        for (provider, key, fields, fault) in [
            ("openai", Some("k"), json!({}), None),
            ("openai", None, json!({}), Some("key")),
            ("openai", Some(" "), json!({}), Some("key")),
            ("openai", Some("k\r\nx-injected: 1"), json!({}), Some("key")),
            ("openai", Some("k"), json!({ "openai_project": 1 }), Some("configurations.openai_project")),
            ("openai", Some("k"), json!({ "invented": [1] }), None),
            ("ollama", None, json!({}), None),
            ("azure-openai", Some("k"), azure(json!({})), None),
            ("azure-openai", None, azure(json!({})), Some("key")),
            ("azure-openai", None, azure(json!({ "azure_auth_mode": "managed" })), None),
            (
                "azure-openai",
                None,
                azure(json!({ "azure_auth_mode": "entra" })),
                Some("configurations.azure_entra_tenant_id"),
            ),
            (
                "azure-openai",
                Some("k"),
                azure(json!({ "azure_auth_mode": "x" })),
                Some("configurations.azure_auth_mode"),
            ),
            ("azure-openai", Some("k"), json!({}), Some("configurations.azure_auth_mode")),
            (
                "azure-openai",
                Some("k"),
                azure(json!({ "azure_deployment_config": [] })),
                Some("configurations.azure_deployment_config"),
            ),
            (
                "azure-openai",
                Some("k"),
                azure(json!({ "azure_deployment_config": [{ "azure_deployment_name": "d" }] })),
                Some("configurations.azure_deployment_config[0].azure_api_version"),
            ),
            ("azure-ai", Some("k"), json!({ "azure_auth_mode": "default" }), Some("configurations.azure_foundry_url")),
            ("bedrock", None, aws("serviceRole", json!({})), None),
            ("bedrock", None, aws("apiKey", json!({})), Some("key")),
            ("bedrock", None, aws("accessKey", json!({})), Some("configurations.aws_access_key_id")),
            ("bedrock", None, aws("assumedRole", json!({})), Some("configurations.aws_role_arn")),
            ("sagemaker", None, aws("assumedRole", json!({ "aws_role_arn": "arn" })), None),
            ("bedrock", None, json!({ "aws_auth_type": "serviceRole" }), Some("configurations.aws_region")),
            ("vertex-ai", None, json!({ "vertex_auth_type": "workloadIdentity", "vertex_region": "r" }), None),
            (
                "vertex-ai",
                None,
                json!({ "vertex_auth_type": "serviceAccount", "vertex_region": "r", "vertex_service_account_json": "x" }),
                Some("configurations.vertex_service_account_json"),
            ),
            ("workers-ai", Some("k"), json!({}), Some("configurations.workers_ai_account_id")),
            ("cortex", Some("k"), json!({ "snowflake_account": "a" }), None),
            ("cortex", None, json!({ "snowflake_account": "a" }), Some("key")),
            (
                "cortex",
                None,
                json!({ "snowflake_account": "a", "snowflake_private_key": "k" }),
                Some("configurations.snowflake_user"),
            ),
            (
                "cortex",
                None,
                json!({ "snowflake_account": "a", "snowflake_private_key": "k", "snowflake_user": "u" }),
                None,
            ),
            ("bedrock-mantle", None, aws("serviceRole", json!({})), None),
        ] {
            assert_eq!(judged(provider, key, fields.clone(), &[]).err().as_deref(), fault, "{provider} {fields}");
        }
    }

    #[test]
    fn a_field_that_comes_from_an_outside_secret_is_not_missing() {
        assert!(judged("openai", None, json!({}), &["key"]).is_ok());
        let fields = json!({ "aws_auth_type": "accessKey", "aws_region": "r", "aws_access_key_id": "a" });
        assert!(judged("bedrock", None, fields.clone(), &["key"]).is_err());
        assert!(judged("bedrock", None, fields, &["configurations.aws_secret_access_key"]).is_ok());
    }

    #[test]
    fn credentials_go_to_public_or_trusted_hosts_and_headers_can_be_sent() {
        for (fields, fault) in [
            (json!({ "custom_host": "https://llm.example.com/v1" }), None),
            (json!({ "custom_host": "http://trusted.test:8000" }), None),
            (json!({ "custom_host": "http://169.254.169.254/latest" }), Some("configurations.custom_host")),
            (json!({ "custom_host": "http://10.0.0.1" }), Some("configurations.custom_host")),
            (json!({ "custom_host": "ftp://x" }), Some("configurations.custom_host")),
            (json!({ "custom_host": 7 }), Some("configurations.custom_host")),
            (json!({ "custom_headers": { "x-team": "a" } }), None),
            (json!({ "custom_headers": { "x team": "a" } }), Some("configurations.custom_headers")),
            (json!({ "custom_headers": { "x-team": "a\nb" } }), Some("configurations.custom_headers")),
            (json!({ "custom_headers": { "x-team": 1 } }), Some("configurations.custom_headers")),
            (json!({ "custom_headers": [] }), Some("configurations.custom_headers")),
        ] {
            assert_eq!(judged("openai", Some("k"), fields.clone(), &[]).err().as_deref(), fault, "{fields}");
        }
    }
}
