//! Each way to authenticate, from the fields of an account.

use super::*;
use serde_json::{Value, json};

fn made(provider: &str, fields: Value, key: Option<&str>) -> Result<String, String> {
    match AccountCredential::parse(provider, &fields, key, None) {
        Ok(Some(AccountCredential::Header(name, value))) => Ok(format!("{name}: {}", value.to_str().unwrap())),
        Ok(Some(other)) => Ok(format!("{other:?}")),
        Ok(None) => Ok("row".into()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn each_mode_of_aws_makes_its_credential() {
    let keys = json!({ "aws_access_key_id": "AKIA1", "aws_secret_access_key": "s", "aws_region": "eu-west-1" });
    let with = |more: Value| {
        let mut all = keys.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let role = "arn:aws:iam::1:role/r";
    for (provider, fields, key, expected) in [
        ("bedrock", keys.clone(), None, Ok("AwsKeys(bedrock, eu-west-1)")),
        ("bedrock", with(json!({ "aws_auth_type": "accessKey" })), None, Ok("AwsKeys(bedrock, eu-west-1)")),
        ("sagemaker", keys.clone(), None, Ok("AwsKeys(sagemaker, eu-west-1)")),
        ("claude-platform-aws", keys.clone(), None, Ok("AwsKeys(aws-external-anthropic, eu-west-1)")),
        ("bedrock", json!({}), Some("ABSK"), Ok("authorization: Bearer ABSK")),
        ("bedrock", json!({ "aws_auth_type": "apiKey" }), Some("Bearer ABSK"), Ok("authorization: Bearer ABSK")),
        ("claude-platform-aws", json!({ "aws_auth_type": "apiKey" }), Some("k"), Ok("x-api-key: k")),
        ("bedrock", json!({ "aws_auth_type": "apiKey" }), None, Err("key is required")),
        ("bedrock", json!({}), None, Err("aws_access_key_id is required")),
        ("bedrock", json!({ "aws_access_key_id": "A" }), None, Err("aws_secret_access_key is required")),
        ("bedrock", json!({ "aws_auth_type": "serviceRole" }), None, Ok("AwsLent(AwsOwn, bedrock, us-east-1)")),
        (
            "bedrock",
            json!({ "aws_auth_type": "assumedRole", "aws_role_arn": role }),
            None,
            Ok("AwsLent(AwsRole, bedrock, us-east-1)"),
        ),
        ("bedrock", json!({ "aws_auth_type": "assumedRole" }), None, Err("aws_role_arn is required")),
        (
            "bedrock",
            json!({ "aws_auth_type": "assumedRole", "aws_role_arn": "r" }),
            None,
            Err("aws_role_arn must begin with arn:"),
        ),
        (
            "bedrock",
            json!({ "aws_auth_type": "magic" }),
            None,
            Err("aws_auth_type must be one of accessKey, assumedRole, serviceRole, apiKey"),
        ),
        (
            "bedrock",
            with(json!({ "aws_region": "evil.test/" })),
            None,
            Err("aws_region may only have letters, digits and hyphens"),
        ),
        ("bedrock", with(json!({ "aws_session_token": "a\r\nb" })), None, Err("aws_session_token is no header value")),
    ] {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(made(provider, fields.clone(), key), expected, "{provider} {fields}");
    }
}

#[test]
fn each_mode_of_azure_makes_its_credential() {
    let entra = json!({ "azure_auth_mode": "entra", "azure_entra_tenant_id": "t-1", "azure_entra_client_id": "c",
                        "azure_entra_client_secret": "s" });
    let mut escaping = entra.clone();
    escaping["azure_entra_tenant_id"] = "t/../x".into();
    for (provider, fields, key, expected) in [
        ("azure-openai", json!({}), Some("k"), Ok("api-key: k")),
        ("azure-openai", json!({ "azure_auth_mode": "default" }), Some("Bearer k"), Ok("api-key: k")),
        ("azure-openai", json!({ "azure_ad_token": "t" }), None, Ok("authorization: Bearer t")),
        ("azure-openai", json!({}), None, Err("key is required")),
        ("azure-ai", json!({}), Some("k"), Ok("authorization: Bearer k")),
        ("azure-openai", entra.clone(), None, Ok("Bearer(Azure)")),
        ("azure-openai", json!({ "azure_auth_mode": "entra" }), None, Err("azure_entra_tenant_id is required")),
        ("azure-openai", escaping, None, Err("azure_entra_tenant_id may only have letters, digits, hyphens and dots")),
        ("azure-openai", json!({ "azure_auth_mode": "managed" }), None, Ok("Bearer(Azure)")),
        ("azure-ai", json!({ "azure_auth_mode": "workload" }), None, Ok("Bearer(Azure)")),
        ("azure-ai", json!({ "azure_auth_mode": "entraFederated" }), None, Ok("Bearer(Azure)")),
    ] {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(made(provider, fields.clone(), key), expected, "{provider} {fields}");
    }
    let scope = |fields: Value| match AccountCredential::parse("azure-openai", &fields, None, None) {
        Ok(Some(AccountCredential::Bearer(TokenRequest::Azure { scope, .. }))) => scope,
        other => panic!("{other:?}"),
    };
    assert_eq!(scope(entra.clone()), "https://cognitiveservices.azure.com/.default");
    let mut own = entra;
    own["azure_entra_scope"] = "api://mine/.default".into();
    assert_eq!(scope(own), "api://mine/.default");
    // Claude's wire has its own header.
    match AccountCredential::parse("azure-ai", &json!({}), Some("k"), Some(&X_API_KEY)) {
        Ok(Some(AccountCredential::Header(name, value))) => {
            assert_eq!((name, value), (X_API_KEY.clone(), HeaderValue::from_static("k")))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_others_make_theirs() {
    let file = json!({ "type": "service_account", "client_email": "a@b", "private_key": "k", "project_id": "p" });
    let oracle = json!({ "oracle_tenancy": "ocid1.tenancy", "oracle_user": "ocid1.user", "oracle_fingerprint": "20:3b",
                         "oracle_private_key": "k" });
    let mut quoted = oracle.clone();
    quoted["oracle_user"] = "a\"b".into();
    for (provider, fields, key, expected) in [
        ("vertex-ai", json!({ "vertex_service_account_json": file }), None, Ok("Bearer(Google)")),
        ("vertex-ai", json!({ "vertex_service_account_json": file.to_string() }), None, Ok("Bearer(Google)")),
        ("vertex-ai", json!({ "vertex_auth_type": "workloadIdentity" }), None, Ok("Bearer(GoogleMachine)")),
        ("vertex-ai", json!({ "vertex_auth_type": "basic" }), Some("ya29"), Ok("authorization: Bearer ya29")),
        ("vertex-ai", json!({}), Some("ya29"), Ok("authorization: Bearer ya29")),
        (
            "vertex-ai",
            json!({ "vertex_auth_type": "serviceAccount" }),
            None,
            Err("vertex_service_account_json is required"),
        ),
        (
            "vertex-ai",
            json!({ "vertex_service_account_json": "[1]" }),
            None,
            Err("vertex_service_account_json must be a JSON object"),
        ),
        (
            "vertex-ai",
            json!({ "vertex_service_account_json": {} }),
            None,
            Err("vertex_service_account_json has no `client_email`"),
        ),
        ("oracle", oracle, None, Ok("Oracle")),
        ("oracle", quoted, None, Err("oracle_user may only have letters, digits, dots, colons and hyphens")),
        ("oracle", json!({}), None, Err("oracle_tenancy is required")),
        (
            "cortex",
            json!({ "snowflake_account": "a", "snowflake_user": "u", "snowflake_private_key": "k" }),
            None,
            Ok("Bearer(Snowflake)"),
        ),
        ("cortex", json!({ "snowflake_account": "a" }), Some("jwt"), Ok("row")),
        ("openai", json!({ "aws_auth_type": "serviceRole" }), Some("k"), Ok("row")),
    ] {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(made(provider, fields.clone(), key), expected, "{provider} {fields}");
    }
}
