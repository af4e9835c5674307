//! What virtual keys call things: providers by their old spellings, settings in camel case beside the other fields.

use crate::http::{ApiError, FieldFault};
use crate::resources::integrations::{Fields, Mapping, parse_mappings};
use serde_json::{Map, Value, json};

static PROVIDERS: &[(&str, &str)] = &[
    ("open-ai", "openai"),
    ("azure", "azure-openai"),
    ("aws-bedrock", "bedrock"),
    ("vertex", "vertex-ai"),
    ("mistral", "mistral-ai"),
    ("together", "together-ai"),
    ("fireworks", "fireworks-ai"),
    ("perplexity", "perplexity-ai"),
];
/// Settings whose old name is not the new one in camel case.
static SETTINGS: &[(&str, &str)] = &[
    ("apiVersion", "azure_api_version"),
    ("resourceName", "azure_resource_name"),
    ("deploymentName", "azure_deployment_name"),
    ("deploymentConfig", "azure_deployment_config"),
];
/// What settings begin with; other unknown fields are a client's own business.
static PREFIXES: &[&str] =
    &["azure", "aws", "vertex", "openai", "workersAi", "huggingface", "snowflake", "amznSagemaker", "custom"];

pub fn provider(name: &str) -> &str {
    PROVIDERS.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| *new)
}

/// What the names of settings begin with, for the check of bodies.
pub fn setting_prefixes() -> Vec<String> {
    let next = || ('A'..='Z').chain(['_']);
    let begins = PREFIXES.iter().flat_map(|prefix| next().map(move |next| format!("{prefix}{next}")));
    SETTINGS.iter().map(|(old, _)| (*old).to_owned()).chain(begins).collect()
}

/// The settings among the fields of a body.
pub fn extras(rest: Fields) -> Fields {
    let is_setting = |name: &str| {
        let begins = |prefix: &&&str| {
            name.strip_prefix(**prefix)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_'))
        };
        SETTINGS.iter().any(|(old, _)| *old == name) || PREFIXES.iter().any(|prefix| begins(&prefix))
    };
    rest.into_iter().filter(|(name, _)| is_setting(name)).collect()
}

/// The same under the names that integrations have for them.
pub fn configurations(provider: &str, given: &Fields) -> Fields {
    let value = |name: &str, value: &Value| match name {
        "azure_deployment_config" => deployments(value),
        _ => value.clone(),
    };
    let fields = given.iter().map(|(old, sent)| {
        let name = setting(old);
        (name.clone(), value(&name, sent))
    });
    let mut fields: Fields = fields.collect();
    let has_list = fields.contains_key("azure_deployment_config");
    // One deployment was written beside the resource before there were lists of them.
    if provider == "azure-openai"
        && !has_list
        && let (Some(name), Some(version)) = (fields.get("azure_deployment_name"), fields.get("azure_api_version"))
    {
        let one = json!([{ "deploymentName": name, "apiVersion": version, "is_default": true }]);
        fields.insert("azure_deployment_config".into(), deployments(&one));
    }
    fields
}

/// What older clients leave to be understood.
pub fn fill(provider: &str, fields: &mut Fields) {
    let has = |fields: &Fields, name: &str| fields.contains_key(name);
    let (name, value) = match provider {
        "azure-openai" | "azure-ai" => ("azure_auth_mode", "default"),
        "bedrock" | "sagemaker" if has(fields, "aws_role_arn") => ("aws_auth_type", "assumedRole"),
        "bedrock" | "sagemaker" if has(fields, "aws_access_key_id") => ("aws_auth_type", "accessKey"),
        "bedrock" | "sagemaker" => ("aws_auth_type", "apiKey"),
        "vertex-ai" if has(fields, "vertex_service_account_json") => ("vertex_auth_type", "serviceAccount"),
        "vertex-ai" => ("vertex_auth_type", "basic"),
        _ => return,
    };
    if !has(fields, name) {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Mappings onto `key` and `model_config.<setting>`, as integrations have them.
pub fn mappings(sent: Value) -> Result<Vec<Mapping>, ApiError> {
    let mut mappings = parse_mappings(sent, "model_config")?;
    for one in &mut mappings {
        if let Some(name) = one.target_field.strip_prefix("model_config.") {
            one.target_field = format!("configurations.{}", setting(name));
        }
    }
    Ok(mappings)
}

/// An error about the account, with the field names of virtual keys.
pub fn error_in_old_names(error: ApiError) -> ApiError {
    let old = |field: &str| match field {
        "ai_provider_id" => "provider".to_owned(),
        field => field.strip_prefix("configurations.").map_or_else(|| field.to_owned(), old_setting),
    };
    match error {
        ApiError::Invalid { field: Some(field), message } => ApiError::field(old(&field), message),
        ApiError::Faults(faults) => {
            let faults = faults.into_iter().map(|one| FieldFault { field: old(&one.field), ..one });
            ApiError::Faults(faults.collect())
        }
        other => other,
    }
}

fn setting(old: &str) -> String {
    SETTINGS.iter().find(|(name, _)| *name == old).map_or_else(|| snake(old), |(_, new)| (*new).to_owned())
}

fn old_setting(new: &str) -> String {
    let (name, rest) = new.split_at(new.find(['[', '.']).unwrap_or(new.len()));
    let old = SETTINGS.iter().find(|(_, one)| *one == name);
    old.map_or_else(|| camel(name), |(old, _)| (*old).to_owned()) + rest
}

/// The items of `deploymentConfig`; a deployment serves the model that it is an alias of, or is named after.
fn deployments(value: &Value) -> Value {
    let item = |item: &Value| {
        let Some(fields) = item.as_object() else { return item.clone() };
        let mut renamed = Map::new();
        for (name, value) in fields {
            let name = match name.as_str() {
                "apiVersion" => "azure_api_version",
                "deploymentName" => "azure_deployment_name",
                "modelSlug" => "azure_model_slug",
                other => other,
            };
            renamed.insert(name.to_owned(), value.clone());
        }
        let model = renamed.get("alias").filter(|alias| alias.is_string()).or(renamed.get("azure_deployment_name"));
        if let Some(model) = model.cloned() {
            renamed.entry("azure_model_slug").or_insert(model);
        }
        Value::Object(renamed)
    };
    match value {
        Value::Array(items) => items.iter().map(item).collect(),
        other => other.clone(),
    }
}

/// `awsAccessKeyId` is `aws_access_key_id`.
fn snake(name: &str) -> String {
    name.chars().fold(String::new(), |mut text, c| {
        if c.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
        text
    })
}

fn camel(name: &str) -> String {
    let mut is_start = false;
    name.chars().fold(String::new(), |mut text, c| {
        match c {
            '_' => is_start = true,
            c if is_start => {
                text.push(c.to_ascii_uppercase());
                is_start = false;
            }
            c => text.push(c),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_settings_get_the_names_that_integrations_have() {
        let rest = json!({
            "resourceName": "r",
            "deploymentConfig": [{ "deploymentName": "d", "apiVersion": "v", "alias": "gpt-4o" }],
            "azureEntraClientSecret": "s",
            "workspaceId": "ignored",
            "slug": "ignored",
            "customer": "ignored",
        });
        let given = extras(rest.as_object().unwrap().clone());
        assert_eq!(given.keys().collect::<Vec<_>>(), ["resourceName", "deploymentConfig", "azureEntraClientSecret"]);
        let fields = Value::Object(configurations("azure-openai", &given));
        let expected = json!({
            "azure_resource_name": "r",
            "azure_deployment_config": [{
                "azure_deployment_name": "d", "azure_api_version": "v", "alias": "gpt-4o", "azure_model_slug": "gpt-4o",
            }],
            "azure_entra_client_secret": "s",
        });
        assert_eq!(fields, expected);
        let single = json!({ "deploymentName": "d", "apiVersion": "v" });
        let fields = configurations("azure-openai", single.as_object().unwrap());
        assert_eq!(fields["azure_deployment_config"][0]["azure_model_slug"], "d");
    }

    #[test]
    fn what_was_left_to_be_understood_is_filled_in_and_nothing_else() {
        for (provider, sent, name, value) in [
            ("bedrock", json!({ "aws_access_key_id": "a" }), "aws_auth_type", "accessKey"),
            ("bedrock", json!({ "aws_role_arn": "a" }), "aws_auth_type", "assumedRole"),
            ("bedrock", json!({}), "aws_auth_type", "apiKey"),
            ("bedrock", json!({ "aws_auth_type": "serviceRole" }), "aws_auth_type", "serviceRole"),
            ("vertex-ai", json!({}), "vertex_auth_type", "basic"),
            ("azure-openai", json!({}), "azure_auth_mode", "default"),
        ] {
            let mut fields = sent.as_object().unwrap().clone();
            fill(provider, &mut fields);
            assert_eq!(fields[name], value, "{provider} {sent}");
        }
        let mut none = Fields::new();
        fill("openai", &mut none);
        assert!(none.is_empty());
    }

    #[test]
    fn refusals_name_the_field_as_it_was_sent() {
        for (field, expected) in [
            ("ai_provider_id", "provider"),
            ("key", "key"),
            ("configurations.aws_region", "awsRegion"),
            ("configurations.azure_deployment_config[0].alias", "deploymentConfig[0].alias"),
        ] {
            let error = error_in_old_names(ApiError::field(field, "x"));
            assert!(matches!(error, ApiError::Invalid { field: Some(found), .. } if found == expected), "{field}");
        }
    }

    #[test]
    fn providers_are_known_by_their_old_names_too() {
        assert_eq!((provider("open-ai"), provider("openai"), provider("zhipu")), ("openai", "openai", "zhipu"));
    }
}
