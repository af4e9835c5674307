//! What each kind of provider must be told, and in which form. Pure: judged on the fields as they will be stored, after
//! an update was laid over them. Fields that nobody described here are kept as they came.

use super::provider_fields::fields_of;
use super::secrets::Fields;
use crate::http::{ApiError, FieldFault};
use axum::http::{HeaderName, HeaderValue};
use serde_json::Value;
use shared::outbound::Guard;
use shared::providers::{Auth, ProviderEntry};

const MAX_KEY: usize = 4096;
/// All settings together, in bytes.
const MAX_SIZE: usize = 256 << 10;

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
        let is_key = |key: &str| !key.trim().is_empty() && key.len() <= MAX_KEY && !key.contains(char::is_control);
        if self.key.is_some_and(|key| !is_key(key)) {
            let message = format!("must have 1 to {MAX_KEY} characters, none of them a control character");
            return Err(ApiError::field("key", message));
        }
        let size = self.configurations.values().map(|value| value.to_string().len()).sum::<usize>();
        if size > MAX_SIZE {
            return Err(ApiError::field("configurations", format!("must have at most {MAX_SIZE} bytes")));
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
            return Err(self.missing("key".to_owned()));
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
        Err(self.missing(path(name)))
    }

    /// Something that has no value. A mapping with a misspelt target is why, where there is one.
    fn missing(&self, field: String) -> ApiError {
        let known: Vec<&str> = std::iter::once("key").chain(fields_of(self.provider).map(|one| one.name)).collect();
        let targets = self.mapped.iter().map(|target| target.strip_prefix("configurations.").unwrap_or(target));
        match targets.enumerate().find(|(_, target)| !known.contains(target)) {
            Some((n, target)) => {
                let at = format!("secret_mappings[{n}].target_field");
                ApiError::Faults(vec![FieldFault::not_among(at, target, &known)])
            }
            None => ApiError::field(field, "is required"),
        }
    }

    fn choice(&self, name: &str, allowed: &[&'static str]) -> Result<&'static str, ApiError> {
        self.require(name).map_err(|error| match error {
            ApiError::Invalid { field: Some(field), message } => {
                let mut fault = FieldFault::not_among(field, "", allowed);
                fault.message = format!("{message}: {}", fault.message);
                ApiError::Faults(vec![fault])
            }
            other => other,
        })?;
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
    const MAX_HEADERS: usize = 100;
    let Some(fields) = value.as_object().filter(|fields| fields.len() <= MAX_HEADERS) else {
        return Err(ApiError::invalid(format!("must be an object of at most {MAX_HEADERS} headers")));
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
mod tests;
