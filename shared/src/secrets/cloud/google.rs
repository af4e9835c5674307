//! Google: an access token for a service account, which signs its own assertion, or of the machine this process runs on.
//! Nothing here sends.

use super::http::{Request, form};
use super::{LoginError, rs256, text};
use crate::secrets::seal::Secret;
use serde_json::{Map, Value, json};

/// What a key file of a service account says.
#[derive(Debug, Clone)]
pub struct ServiceAccount {
    pub client_email: String,
    pub private_key: Secret,
    pub private_key_id: Option<String>,
    pub token_uri: String,
    pub project_id: Option<String>,
}

pub const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const LIFE_S: i64 = 3600;

impl ServiceAccount {
    /// Of a key file. The error is the end of a sentence that names the field.
    pub fn parse(file: &Map<String, Value>) -> Result<Self, &'static str> {
        let field = |name: &str| file.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        match field("type") {
            None | Some("service_account") => {}
            Some(_) => return Err("must be the key of a service account (`type` is another)"),
        }
        let token_uri = field("token_uri").unwrap_or(TOKEN_URI);
        Ok(Self {
            client_email: field("client_email").ok_or("has no `client_email`")?.to_owned(),
            private_key: field("private_key").ok_or("has no `private_key`")?.to_owned().into(),
            private_key_id: field("private_key_id").map(str::to_owned),
            token_uri: token_uri.to_owned(),
            project_id: field("project_id").map(str::to_owned),
        })
    }
}

/// The account's own word, signed, in exchange for a token.
pub fn token_by_assertion(account: &ServiceAccount, now_s: i64) -> Result<Request, LoginError> {
    let key = rs256::private_key(&account.private_key, None)?;
    let mut header = json!({ "alg": "RS256", "typ": "JWT" });
    if let Some(id) = &account.private_key_id {
        header["kid"] = id.as_str().into();
    }
    let claims = json!({
        "iss": account.client_email, "scope": SCOPE, "aud": account.token_uri, "iat": now_s, "exp": now_s + LIFE_S,
    });
    let assertion = rs256::token(&key, &header, &claims)?;
    let pairs = [("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", text(&assertion))];
    let body = form(&pairs).into_bytes();
    Ok(Request::post(account.token_uri.clone(), "application/x-www-form-urlencoded", body))
}

/// Of the machine's service account, or of the one that a cluster's workload identity stands for.
pub fn token_of_machine(metadata: &str) -> Request {
    Request::get(format!("{metadata}/computeMetadata/v1/instance/service-accounts/default/token"))
        .with("metadata-flavor", "Google")
        .to_own_identity()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_read_and_others_are_told_apart() {
        let whole = json!({ "type": "service_account", "client_email": "a@p.iam.gserviceaccount.com", "private_key": "s3cret",
                            "private_key_id": "k", "project_id": "p", "token_uri": "https://t.test/token" });
        let account = ServiceAccount::parse(whole.as_object().unwrap()).unwrap();
        assert_eq!((account.project_id.as_deref(), &*account.token_uri), (Some("p"), "https://t.test/token"));
        assert!(!format!("{account:?}").contains("s3cret"));
        let short = json!({ "client_email": "a@b", "private_key": "k" });
        assert_eq!(ServiceAccount::parse(short.as_object().unwrap()).unwrap().token_uri, TOKEN_URI);
        for (field, value) in
            [("type", json!("external_account")), ("client_email", json!(1)), ("private_key", json!(""))]
        {
            let mut file = whole.clone();
            file[field] = value;
            assert!(ServiceAccount::parse(file.as_object().unwrap()).unwrap_err().contains(field), "{field}");
        }
    }
}
