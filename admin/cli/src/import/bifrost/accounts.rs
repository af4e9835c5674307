//! What accounts at Azure, AWS and Google have beside a key.

use crate::import::address::azure_resource;
use crate::import::result::Import;
use crate::import::slug;
use crate::import::source::Source;
use crate::tree::template::escaped;
use serde_json::{Map, Value, json};

const AZURE_API_VERSION: &str = "2024-10-21";

/// Whether accounts are more than a key and an address.
pub fn has_own_settings(id: &str) -> bool {
    matches!(id, "azure-openai" | "vertex-ai" | "bedrock")
}

/// Whether the gateway refuses such an account without a key.
pub fn needs_key(id: &str, configurations: &Map<String, Value>) -> bool {
    match id {
        "azure-openai" => configurations.get("azure_auth_mode") == Some(&json!("default")),
        id => !has_own_settings(id),
    }
}

/// What a key lacks without which no account can be made of it.
pub fn missing(id: &str, key: &Source, import: &Import) -> Option<&'static str> {
    let key = key.value();
    let text = |section: &str, field: &str| key[section][field].as_str().unwrap_or_default().to_owned();
    match id {
        "azure-openai" => {
            let endpoint = text("azure_key_config", "endpoint");
            let deployments = key["azure_key_config"]["deployments"].as_object();
            let has_deployment = deployments.is_some_and(|deployments| deployments.values().any(Value::is_string));
            if azure_resource(&endpoint).is_none() && import.variable_in(&endpoint).is_none() {
                return Some("no `endpoint` of an Azure OpenAI resource: store it as a provider by hand");
            }
            (!has_deployment).then_some("no `deployments`, of which the gateway needs one")
        }
        "vertex-ai" if text("vertex_key_config", "region").is_empty() => Some("no `region`, which the gateway needs"),
        "bedrock" if text("bedrock_key_config", "region").is_empty() => Some("no `region`, which the gateway needs"),
        _ => None,
    }
}

/// Reads what a key of this provider has, into an integration's `configurations`.
pub fn read(
    id: &str,
    slug: &str,
    has_key: bool,
    key: &mut Source,
    configurations: &mut Map<String, Value>,
    import: &mut Import,
) {
    let section = match id {
        "azure-openai" => "azure_key_config",
        "vertex-ai" => "vertex_key_config",
        "bedrock" => "bedrock_key_config",
        _ => return,
    };
    let Some(config) = key.take_section(section) else { return };
    let mut account = Account { slug, config, configurations, import };
    match id {
        "azure-openai" => account.azure(),
        "vertex-ai" => account.vertex(),
        _ => account.bedrock(has_key),
    }
    let Account { config, import, .. } = account;
    import.unmapped_rest(config, |field| {
        match field {
            "deployments" => "ask for the model by its whole name",
            _ => "no field of an account",
        }
        .to_owned()
    });
}

struct Account<'a> {
    slug: &'a str,
    config: Source,
    configurations: &'a mut Map<String, Value>,
    import: &'a mut Import,
}

impl Account<'_> {
    fn set(&mut self, ours: &str, value: impl Into<Value>) {
        self.configurations.insert(ours.to_owned(), value.into());
    }

    /// Returns whether the key has this, and it is not empty.
    fn configure(&mut self, theirs: &str, ours: &str, is_secret: bool) -> bool {
        let Some(text) = self.config.take_text(theirs) else { return false };
        if text.value.is_empty() {
            self.import.unmapped(text.location, "empty");
            return false;
        }
        let value = if is_secret {
            let own_name = slug::variable(&format!("{} {theirs}", self.slug));
            self.import.credential(&text.location, &text.value, &own_name)
        } else {
            self.import.text(&text.value)
        };
        self.set(ours, value);
        self.import.mapped(text.location, format!("configurations.{ours} of the integration"));
        true
    }

    fn vertex(&mut self) {
        self.configure("project_id", "vertex_project_id", false);
        self.configure("region", "vertex_region", false);
        let has_document = self.configure("auth_credentials", "vertex_service_account_json", true);
        self.set("vertex_auth_type", if has_document { "serviceAccount" } else { "workloadIdentity" });
    }

    fn bedrock(&mut self, has_key: bool) {
        self.configure("region", "aws_region", false);
        let has_keys = self.configure("access_key", "aws_access_key_id", true)
            & self.configure("secret_key", "aws_secret_access_key", true);
        let has_role = self.configure("role_arn", "aws_role_arn", false);
        let auth = match (has_key, has_role, has_keys) {
            (true, ..) => "apiKey",
            (_, true, _) => "assumedRole",
            (.., true) => "accessKey",
            _ => "serviceRole",
        };
        self.set("aws_auth_type", auth);
    }

    fn azure(&mut self) {
        if let Some(endpoint) = self.config.take_text("endpoint") {
            if let Some(resource) = azure_resource(&endpoint.value) {
                self.set("azure_resource_name", resource);
                self.import.mapped(endpoint.location, "configurations.azure_resource_name of the integration");
            } else if let Some(variable) = self.import.variable_in(&endpoint.value) {
                let what = format!("the resource's name, the first word of the address in {variable},");
                let own_name = format!("{variable}_RESOURCE");
                let resource = self.import.wanted(&endpoint.location, &endpoint.value, &own_name, &what);
                self.set("azure_resource_name", resource);
            }
        }
        let entra = [
            self.configure("tenant_id", "azure_entra_tenant_id", false),
            self.configure("client_id", "azure_entra_client_id", false),
            self.configure("client_secret", "azure_entra_client_secret", true),
        ];
        self.set("azure_auth_mode", if entra == [true; 3] { "entra" } else { "default" });
        let version = self.config.take_text("api_version");
        let api_version = match version {
            Some(version) => {
                let text = self.import.text(&version.value);
                self.import.mapped(version.location, "azure_api_version of the deployments");
                text
            }
            None => AZURE_API_VERSION.to_owned(),
        };
        let mut deployments: Vec<Value> = Vec::new();
        for (model, deployment) in self.config.take_section("deployments").map(Source::into_fields).unwrap_or_default()
        {
            match deployment.value().as_str() {
                Some(name) => {
                    deployments.push(json!({
                        "azure_deployment_name": escaped(name),
                        "azure_api_version": api_version,
                        "azure_model_slug": escaped(&model),
                        "is_default": deployments.is_empty(),
                    }));
                    self.import.mapped(deployment.location, "azure_deployment_config of the integration");
                }
                None => self.import.unmapped(deployment.location, "no name of a deployment"),
            }
        }
        self.set("azure_deployment_config", deployments);
    }
}
