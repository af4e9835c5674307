//! Accounts that are complete, and what is said of those that are not.

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
        ("azure-openai", Some("k"), azure(json!({ "azure_auth_mode": "x" })), Some("configurations.azure_auth_mode")),
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
