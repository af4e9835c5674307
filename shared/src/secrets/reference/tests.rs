//! Each mode needs its fields and takes no others; nothing prints a secret.

use super::*;
use serde_json::json;

fn read(kind: &str, config: &Value) -> Result<ManagerAccess, BadAccess> {
    ManagerAccess::parse(ManagerKind::parse(kind).unwrap(), config.as_object().unwrap())
}

#[test]
fn each_mode_needs_its_fields_and_takes_no_others() {
    for (kind, config, refused) in [
        (
            "aws_sm",
            json!({ "aws_auth_type": "accessKey", "aws_access_key_id": "AK", "aws_secret_access_key": "s", "aws_region": "eu-west-1" }),
            None,
        ),
        (
            "aws_sm",
            json!({ "aws_auth_type": "accessKey", "aws_access_key_id": "AK", "aws_region": "eu-west-1" }),
            Some("aws_secret_access_key"),
        ),
        (
            "aws_sm",
            json!({ "aws_auth_type": "assumedRole", "aws_role_arn": "arn:aws:iam::1:role/r", "aws_region": "eu-west-1" }),
            None,
        ),
        ("aws_sm", json!({ "aws_auth_type": "serviceRole" }), None),
        ("aws_sm", json!({ "aws_auth_type": "serviceRole", "aws_region": "x.evil.test/" }), Some("aws_region")),
        ("aws_sm", json!({ "aws_auth_type": "serviceRole", "aws_access_key_id": "AK" }), Some("aws_access_key_id")),
        ("aws_sm", json!({}), Some("aws_auth_type")),
        (
            "azure_kv",
            json!({ "azure_auth_mode": "entra", "azure_entra_tenant_id": "t", "azure_entra_client_id": "c", "azure_entra_client_secret": "s", "azure_vault_url": "https://v.vault.azure.net/" }),
            None,
        ),
        (
            "azure_kv",
            json!({ "azure_auth_mode": "entra", "azure_entra_tenant_id": "../x", "azure_entra_client_id": "c", "azure_entra_client_secret": "s", "azure_vault_url": "https://v.vault.azure.net" }),
            Some("azure_entra_tenant_id"),
        ),
        ("azure_kv", json!({ "azure_auth_mode": "managed", "azure_vault_url": "https://v.vault.azure.net" }), None),
        (
            "azure_kv",
            json!({ "azure_auth_mode": "default", "azure_vault_url": "https://evil.test" }),
            Some("azure_vault_url"),
        ),
        (
            "azure_kv",
            json!({ "azure_auth_mode": "default", "azure_vault_url": "http://v.vault.azure.net" }),
            Some("azure_vault_url"),
        ),
        (
            "hashicorp_vault",
            json!({ "vault_auth_type": "token", "vault_addr": "https://vault.test:8200", "vault_token": "hvs.x" }),
            None,
        ),
        (
            "hashicorp_vault",
            json!({ "vault_auth_type": "token", "vault_addr": "https://u:p@vault.test", "vault_token": "hvs.x" }),
            Some("vault_addr"),
        ),
        (
            "hashicorp_vault",
            json!({ "vault_auth_type": "token", "vault_addr": "file:///etc", "vault_token": "hvs.x" }),
            Some("vault_addr"),
        ),
        (
            "hashicorp_vault",
            json!({ "vault_auth_type": "token", "vault_addr": "https://vault.test", "vault_token": "a\nb" }),
            Some("vault_token"),
        ),
        (
            "hashicorp_vault",
            json!({ "vault_auth_type": "approle", "vault_addr": "https://vault.test", "vault_role_id": "r" }),
            Some("vault_secret_id"),
        ),
        (
            "hashicorp_vault",
            json!({ "vault_auth_type": "kubernetes", "vault_addr": "https://vault.test", "vault_role": "r", "vault_namespace": "n" }),
            None,
        ),
        ("hashicorp_vault", json!({ "vault_auth_type": "ldap" }), Some("vault_auth_type")),
    ] {
        let outcome = read(kind, &config).err();
        assert_eq!(outcome.as_ref().map(|error| error.field.as_str()), refused, "{kind} {config}");
    }
}

#[test]
fn what_is_read_does_not_print_its_secrets() {
    let config = json!({ "vault_auth_type": "token", "vault_addr": "https://vault.test", "vault_token": "hunter2" });
    assert!(!format!("{:?}", read("hashicorp_vault", &config).unwrap()).contains("hunter2"));
}
