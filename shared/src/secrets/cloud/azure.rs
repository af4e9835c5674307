//! Azure: tokens of Entra by a client's secret or by a federated token, and of the identity that Azure gave this machine
//! or app. Nothing here sends.

use super::http::{Request, escape, form};
use super::text;
use crate::secrets::seal::Secret;

/// Whom a token stands for.
#[derive(Debug, Clone)]
pub enum AzureIdentity {
    Client {
        tenant: String,
        client: String,
        secret: Secret,
    },
    /// Of the machine or app this process runs on; `client` chooses among several.
    Managed {
        client: Option<String>,
    },
    /// A federated token of the cluster stands for a client's secret. What is not said, the environment says.
    Workload {
        tenant: Option<String>,
        client: Option<String>,
    },
    /// Whatever the environment offers.
    Own,
}

/// Entra's address in the public cloud.
pub const LOGIN: &str = "https://login.microsoftonline.com";

/// What every scope ends in that means all that was granted.
const ALL: &str = "/.default";

pub fn token_by_secret(login: &str, tenant: &str, client: &str, secret: &Secret, scope: &str) -> Request {
    let pairs = [
        ("grant_type", "client_credentials"),
        ("client_id", client),
        ("client_secret", text(secret)),
        ("scope", scope),
    ];
    token_request(login, tenant, &pairs)
}

/// Workload identity: a token of the cluster stands for the secret.
pub fn token_by_assertion(login: &str, tenant: &str, client: &str, assertion: &str, scope: &str) -> Request {
    let pairs = [
        ("grant_type", "client_credentials"),
        ("client_id", client),
        ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
        ("client_assertion", assertion),
        ("scope", scope),
    ];
    token_request(login, tenant, &pairs)
}

fn token_request(login: &str, tenant: &str, pairs: &[(&str, &str)]) -> Request {
    let url = format!("{login}/{}/oauth2/v2.0/token", escape(tenant, ""));
    Request::post(url, "application/x-www-form-urlencoded", form(pairs).into_bytes())
}

/// Of a virtual machine or a cluster's node.
pub fn token_of_machine(imds: &str, client: Option<&str>, scope: &str) -> Request {
    let mut pairs = vec![("api-version", "2018-02-01"), ("resource", resource(scope))];
    pairs.extend(client.map(|client| ("client_id", client)));
    Request::get(format!("{imds}/metadata/identity/oauth2/token?{}", form(&pairs)))
        .with("metadata", "true")
        .to_own_identity()
}

/// Of an app service, which says where to ask.
pub fn token_of_app(endpoint: &str, header: &str, client: Option<&str>, scope: &str) -> Request {
    let mut pairs = vec![("api-version", "2019-08-01"), ("resource", resource(scope))];
    pairs.extend(client.map(|client| ("client_id", client)));
    Request::get(format!("{endpoint}?{}", form(&pairs))).with("x-identity-header", header).to_own_identity()
}

/// Machines and apps are asked for a resource, of which they always grant everything.
fn resource(scope: &str) -> &str {
    scope.strip_suffix(ALL).unwrap_or(scope)
}
