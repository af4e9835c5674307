//! The settings of an account (`configurations`) as a table: for whom each is, when it is needed and what it means. The
//! check of bodies, the OpenAPI document and `GET /providers/types` read it; `fields.rs` judges the values.

use crate::openapi::schema::{self, Schema};
use shared::providers::{Auth, ProviderEntry};

pub struct ProviderField {
    pub name: &'static str,
    /// The providers that read it; none named: all of them.
    pub of: &'static [&'static str],
    pub need: FieldNeed,
    /// What may stand there, where that is a list.
    pub allowed: &'static [&'static str],
    pub says: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldNeed {
    Optional,
    Always,
    /// When another setting has this value.
    When(&'static str, &'static str),
}

use FieldNeed::{Always, Optional, When};

const AZURE: &[&str] = &["azure-openai", "azure-ai"];
const AWS: &[&str] = &["bedrock", "sagemaker"];

const fn field(
    name: &'static str,
    of: &'static [&'static str],
    need: FieldNeed,
    allowed: &'static [&'static str],
    says: &'static str,
) -> ProviderField {
    ProviderField { name, of, need, allowed, says }
}

pub static FIELDS: &[ProviderField] = &[
    field(
        "custom_host",
        &[],
        Optional,
        &[],
        "The address to call instead of the provider's own, as https://llm.example.com/v1.",
    ),
    field("custom_headers", &[], Optional, &[], "Headers that are sent with every call; their values are sealed."),
    field("openai_organization", &["openai"], Optional, &[], "The organisation that calls are counted for."),
    field("openai_project", &["openai"], Optional, &[], "The project that calls are counted for."),
    field(
        "azure_auth_mode",
        AZURE,
        Always,
        &["default", "entra", "managed", "workload", "entraFederated"],
        "How the account is authenticated; `default` is by `key`.",
    ),
    field(
        "azure_resource_name",
        &["azure-openai"],
        Always,
        &[],
        "The resource, as in https://<resource>.openai.azure.com.",
    ),
    field(
        "azure_deployment_config",
        &["azure-openai"],
        Always,
        &[],
        "The deployments, each with azure_deployment_name, azure_api_version, azure_model_slug, and perhaps alias and is_default.",
    ),
    field("azure_foundry_url", &["azure-ai"], Always, &[], "The address of the Foundry endpoint."),
    field("azure_entra_tenant_id", AZURE, When("azure_auth_mode", "entra"), &[], "The tenant of the application."),
    field("azure_entra_client_id", AZURE, When("azure_auth_mode", "entra"), &[], "The application's id."),
    field(
        "azure_entra_client_secret",
        AZURE,
        When("azure_auth_mode", "entra"),
        &[],
        "The application's secret; sealed.",
    ),
    field("azure_entra_scope", AZURE, Optional, &[], "The scope of its tokens."),
    field("azure_managed_client_id", AZURE, Optional, &[], "Which managed identity, where there are several."),
    field("azure_workload_client_id", AZURE, Optional, &[], "The workload identity's client."),
    field("azure_workload_tenant_id", AZURE, Optional, &[], "The workload identity's tenant."),
    field("azure_api_version", AZURE, Optional, &[], "The API version of calls that name no deployment."),
    field("azure_deployment_name", AZURE, Optional, &[], "The deployment of calls that name none."),
    field(
        "aws_auth_type",
        AWS,
        Always,
        &["accessKey", "assumedRole", "serviceRole", "apiKey"],
        "How the account is authenticated; `apiKey` is by `key`.",
    ),
    field("aws_region", AWS, Always, &[], "The region, as us-east-1."),
    field("aws_access_key_id", AWS, When("aws_auth_type", "accessKey"), &[], "The access key's id; sealed."),
    field("aws_secret_access_key", AWS, When("aws_auth_type", "accessKey"), &[], "The access key's secret; sealed."),
    field("aws_role_arn", AWS, When("aws_auth_type", "assumedRole"), &[], "The role to assume."),
    field("aws_external_id", AWS, Optional, &[], "The external id that the role asks for; sealed."),
    field(
        "vertex_auth_type",
        &["vertex-ai"],
        Always,
        &["basic", "serviceAccount", "workloadIdentity"],
        "How the account is authenticated; `basic` is by `key`.",
    ),
    field("vertex_region", &["vertex-ai"], Always, &[], "The region, as us-central1."),
    field("vertex_project_id", &["vertex-ai"], Optional, &[], "The project; that of the service account when absent."),
    field(
        "vertex_service_account_json",
        &["vertex-ai"],
        When("vertex_auth_type", "serviceAccount"),
        &[],
        "The service account's file, as an object or its text; sealed.",
    ),
    field("workers_ai_account_id", &["workers-ai"], Always, &[], "The account at Cloudflare."),
    field(
        "snowflake_account",
        &["cortex"],
        Always,
        &[],
        "The account, as in https://<account>.snowflakecomputing.com.",
    ),
    field("huggingface_base_url", &["huggingface"], Optional, &[], "The address of an inference endpoint."),
];

/// Those that a provider reads.
pub fn fields_of(provider: &ProviderEntry) -> impl Iterator<Item = &'static ProviderField> {
    FIELDS.iter().filter(move |one| one.of.is_empty() || one.of.contains(&&*provider.slug))
}

/// Whether the account needs `key`, as far as that can be said without the other settings.
pub fn key_need(provider: &ProviderEntry) -> FieldNeed {
    match &*provider.slug {
        "azure-openai" | "azure-ai" => When("azure_auth_mode", "default"),
        "bedrock" | "sagemaker" => When("aws_auth_type", "apiKey"),
        "vertex-ai" => When("vertex_auth_type", "basic"),
        _ if matches!(provider.auth, Auth::Header { .. }) => Always,
        _ => Optional,
    }
}

/// All settings as one object; further ones are those that configs place at targets.
pub fn described(mut object: Schema) -> Schema {
    // The account's credential is `key`, beside the settings.
    for name in shared::config::placement_fields().filter(|name| *name != "api_key") {
        object = object.may(name, schema::anything().says("As at the target of a config."));
    }
    FIELDS.iter().fold(object, |all, one| all.may(one.name, schema::anything().says(one.says)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::providers::Providers;

    #[test]
    fn every_row_is_about_providers_and_settings_that_exist() {
        let providers = Providers::bundled().unwrap();
        for one in FIELDS {
            assert!(one.of.iter().all(|slug| providers.get(slug).is_some()), "{}", one.name);
            if let When(setting, value) = one.need {
                let other = FIELDS.iter().find(|field| field.name == setting).unwrap();
                assert!(other.allowed.contains(&value), "{}", one.name);
            }
        }
        let azure = providers.get("azure-openai").unwrap();
        assert!(fields_of(azure).any(|one| one.name == "azure_resource_name"));
        assert!(!fields_of(azure).any(|one| one.name == "aws_region"));
        assert_eq!(key_need(providers.get("openai").unwrap()), Always);
        assert_eq!(key_need(providers.get("ollama").unwrap()), Optional);
    }
}
