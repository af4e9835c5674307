//! The keys of a target that belong to one provider: credentials, regions, deployments. Each is the header of the same
//! name without its prefix.

use super::{key, needed};
use crate::openapi::schema::{Schema, any_object, choice, either, flag, list, object, text};
use serde_json::json;
use shared::config::{placement_fields, placement_words};

/// In the order in which the reader names them.
pub fn keys() -> Schema {
    placement_fields().fold(object(""), |all, name| all.may(name, field(name)))
}

/// The same as headers: names as in a config, examples and meanings.
pub fn headers() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let prefixes = HEADER_PREFIXES;
    let known = |name: &str| placement_fields().any(|field| field == name);
    let rows = TEXTS.iter().chain(OTHERS).copied();
    rows.filter(move |(name, ..)| known(name) && prefixes.iter().any(|prefix| name.starts_with(prefix)))
}

/// Fields of an account that may come as headers begin so.
const HEADER_PREFIXES: &[&str] =
    &["azure_", "aws_", "vertex_", "workers_ai_", "huggingface_", "snowflake_", "oracle_", "databricks_", "byteplus_"];

fn field(name: &str) -> Schema {
    let row = TEXTS.iter().chain(OTHERS).find(|(other, ..)| *other == name);
    let (_, example, says) = row.copied().unwrap_or((name, "text", ""));
    let schema = match (name, placement_words(name)) {
        (_, Some(words)) => choice(words).eg(example),
        ("mistral_fim_completion" | "provider_responses_proxy", _) => {
            either([flag().eg(true), choice(&["true", "false"])])
        }
        ("vertex_service_account_json", _) => {
            either([any_object().eg(json!({ "type": "service_account" })), text(1..=usize::MAX)])
        }
        ("deployments", _) => list(deployment()),
        _ => text(1..=usize::MAX).eg(example),
    };
    key(schema, says)
}

fn deployment() -> Schema {
    object("ConfigDeployment")
        .need("deployment_id", needed(text(1..=usize::MAX).eg("gpt-4o-eu"), "The deployment's name."))
        .may("alias", key(text(1..=usize::MAX).eg("gpt-4o"), "The model that it stands for."))
        .may("api_version", key(text(1..=usize::MAX).eg("2024-10-21"), "The version of Azure's interface."))
        .may("is_default", key(flag().eg(true), "Whether it is used for models that no alias names."))
        .closed()
}

/// Name, example, meaning: of those that are no plain text.
static OTHERS: &[(&str, &str, &str)] = &[
    (
        "azure_deployment_type",
        "serverless",
        "Azure AI Foundry: the kind of deployment, whose address azure_deployment_name and azure_region make.",
    ),
    ("azure_auth_mode", "managed", "Azure: how the gateway authenticates; `default` is by key."),
    ("aws_auth_type", "accessKey", "AWS: how the gateway authenticates."),
    ("mistral_fim_completion", "true", "Mistral: whether to complete between a prefix and a suffix."),
    (
        "provider_responses_proxy",
        "true",
        "Azure AI Foundry: whether bodies of /responses are sent on untouched, and not translated.",
    ),
    (
        "vertex_service_account_json",
        "{\"type\":\"service_account\"}",
        "Vertex AI: the service account, as an object or its JSON. Secret.",
    ),
    (
        "deployments",
        "[]",
        "Azure OpenAI: the deployments; the one whose alias is the body's model is used, else the default one.",
    ),
];

/// The same of plain texts. Rows of fields that the reader does not know are not shown.
static TEXTS: &[(&str, &str, &str)] = &[
    ("api_key", "sk-proj-0123456789", "The provider's key, for a provider that is named and not stored. Secret."),
    ("anthropic_beta", "prompt-caching-2024-07-31", "Sent as anthropic-beta."),
    ("anthropic_version", "2023-06-01", "Sent as anthropic-version; 2023-06-01 when absent."),
    ("openai_organization", "org-1", "OpenAI: the organisation that is billed."),
    ("openai_project", "proj_1", "OpenAI: the project that is billed."),
    ("openai_beta", "assistants=v2", "Sent as openai-beta."),
    ("resource_name", "my-resource", "Azure OpenAI: the resource, the first part of its host."),
    ("deployment_id", "gpt-4o-eu", "Azure OpenAI: the deployment."),
    ("api_version", "2024-10-21", "Azure OpenAI: the version of its interface."),
    ("azure_resource_name", "my-resource", "As resource_name."),
    ("azure_deployment_id", "gpt-4o-eu", "As deployment_id."),
    ("azure_api_version", "2024-10-21", "As api_version."),
    ("azure_model_name", "gpt-4o", "Azure OpenAI: the model behind the deployment."),
    ("azure_ad_token", "eyJ0eXAi", "Azure: a token of Entra, in place of a key. Secret."),
    ("azure_managed_client_id", "11111111-2222-3333-4444-555555555555", "Azure: the managed identity's client."),
    ("azure_workload_client_id", "11111111-2222-3333-4444-555555555555", "Azure: the workload identity's client."),
    ("azure_entra_client_id", "11111111-2222-3333-4444-555555555555", "Azure: the application in Entra."),
    ("azure_entra_client_secret", "s3cr3t-0123", "Azure: the application's secret. Secret."),
    ("azure_entra_tenant_id", "11111111-2222-3333-4444-555555555555", "Azure: the tenant in Entra."),
    (
        "azure_entra_scope",
        "https://cognitiveservices.azure.com/.default",
        "Azure: what the token is asked for; https://cognitiveservices.azure.com/.default when absent.",
    ),
    ("azure_foundry_url", "https://my-resource.services.ai.azure.com", "Azure AI Foundry: its address."),
    ("azure_endpoint_name", "my-endpoint", "Azure AI Foundry: the endpoint."),
    ("azure_region", "westeurope", "Azure AI Foundry: the region."),
    ("azure_deployment_name", "llama", "Azure AI Foundry: the deployment."),
    ("azure_extra_params", "drop", "Azure AI Foundry: what becomes of unknown parameters, sent as extra-parameters."),
    ("aws_access_key_id", "AKIA0123456789ABCDEF", "AWS: the id of the access key. Secret."),
    ("aws_secret_access_key", "wJalrXUtnFEMI", "AWS: the access key. Secret."),
    ("aws_session_token", "IQoJb3JpZ2lu", "AWS: the token of a session. Secret."),
    ("aws_region", "eu-west-1", "AWS: the region."),
    ("aws_role_arn", "arn:aws:iam::123456789012:role/gateway", "AWS: the role to assume."),
    ("aws_external_id", "portcullis-7", "AWS: what is shown when the role is assumed. Secret."),
    ("aws_s3_bucket", "my-batches", "Bedrock: the bucket of batches and files."),
    ("aws_s3_object_key", "input.jsonl", "Bedrock: the object in the bucket."),
    ("aws_bedrock_model", "anthropic.claude-sonnet-4-5", "Bedrock: the model of batches and files."),
    ("amz_server_side_encryption", "aws:kms", "Bedrock: how objects are encrypted."),
    ("amz_server_side_encryption_aws_kms_key_id", "1234abcd", "Bedrock: the key that objects are encrypted with."),
    ("amzn_sagemaker_custom_attributes", "trace=1", "SageMaker: sent as its header of this name."),
    ("amzn_sagemaker_target_model", "model.tar.gz", "SageMaker: the model of a multi-model endpoint."),
    ("amzn_sagemaker_target_variant", "blue", "SageMaker: the variant."),
    ("amzn_sagemaker_target_container_hostname", "first", "SageMaker: the container."),
    ("amzn_sagemaker_inference_id", "7", "SageMaker: the id of the call."),
    ("amzn_sagemaker_enable_explanations", "true", "SageMaker: whether to explain."),
    ("amzn_sagemaker_inference_component", "llm", "SageMaker: the inference component."),
    ("amzn_sagemaker_session_id", "s-7", "SageMaker: the session."),
    ("amzn_sagemaker_model_name", "llm", "SageMaker: the model."),
    ("anthropic_aws_workspace_id", "ws-1", "Claude Platform on AWS: the workspace."),
    ("vertex_project_id", "my-project", "Vertex AI: the project."),
    ("vertex_region", "europe-west1", "Vertex AI: the region."),
    ("vertex_auth_type", "service_account", "Vertex AI: how the gateway authenticates."),
    ("vertex_storage_bucket_name", "my-batches", "Vertex AI: the bucket of batches and files."),
    ("provider_file_name", "input.jsonl", "Vertex AI and Bedrock: the name of an uploaded file."),
    ("provider_model", "gemini-2.5-flash", "Vertex AI and Bedrock: the model of batches and files."),
    ("workers_ai_account_id", "0123abcd", "Workers AI: the account."),
    ("huggingface_base_url", "https://x.endpoints.huggingface.cloud", "Hugging Face: an endpoint of one's own."),
    ("stability_client_id", "my-app", "Stability AI: sent as its header of this name."),
    ("stability_client_user_id", "user-7", "Stability AI: sent as its header of this name."),
    ("stability_client_version", "1.0", "Stability AI: sent as its header of this name."),
    ("fireworks_account_id", "my-account", "Fireworks AI: the account."),
    ("snowflake_account", "xy12345", "Cortex: the account."),
    ("oracle_api_version", "20231130", "Oracle: the version of its interface."),
    ("oracle_region", "us-chicago-1", "Oracle: the region."),
    ("oracle_compartment_id", "ocid1.compartment.oc1..x", "Oracle: the compartment."),
    ("oracle_serving_mode", "ON_DEMAND", "Oracle: the serving mode."),
    ("oracle_tenancy", "ocid1.tenancy.oc1..x", "Oracle: the tenancy."),
    ("oracle_user", "ocid1.user.oc1..x", "Oracle: the user."),
    ("oracle_fingerprint", "12:34:56", "Oracle: the fingerprint of the key."),
    ("oracle_private_key", "-----BEGIN PRIVATE KEY-----", "Oracle: the private key. Secret."),
    ("oracle_key_passphrase", "s3cr3t", "Oracle: not taken, a key comes without a passphrase. Secret."),
    ("databricks_workspace", "my-workspace", "Databricks: the workspace, the first part of its host."),
    ("databricks_serving_endpoint_name", "llm", "Databricks: the serving endpoint."),
    ("azure_workload_tenant_id", "11111111-2222-3333-4444-555555555555", "Azure: the tenant of the workload identity."),
    ("snowflake_user", "GATEWAY", "Cortex: the user of the key pair."),
    ("snowflake_private_key", "-----BEGIN PRIVATE KEY-----", "Cortex: the private key of the key pair. Secret."),
    ("snowflake_private_key_passphrase", "s3cr3t", "Cortex: not taken, a key comes without a passphrase. Secret."),
    ("byteplus_region", "ap-southeast-1", "BytePlus: the region."),
];
