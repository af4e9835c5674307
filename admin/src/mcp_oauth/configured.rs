//! What an operator tells of an authorisation server in `configurations.oauth_metadata`: a client that was made there by
//! hand, and endpoints where nothing can be discovered.

use serde_json::{Map, Value};
use shared::outbound::Guard;
use shared::secrets::seal::Secret;

const METHODS: [&str; 3] = ["client_secret_basic", "client_secret_post", "none"];

#[derive(Debug, Clone, Default)]
pub struct ConfiguredClient {
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    pub issuer: Option<String>,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    pub revocation_endpoint: Option<String>,
    pub registration_endpoint: Option<String>,
    pub scope: Option<String>,
    pub auth_method: Option<String>,
}

/// What is wrong with one field of it.
#[derive(Debug, PartialEq, Eq)]
pub struct BadMetadata {
    pub field: &'static str,
    pub message: String,
}

impl ConfiguredClient {
    /// Reads the object; fields that are not ours are kept for others and ignored.
    pub fn parse(guard: &Guard, metadata: &Map<String, Value>) -> Result<Self, BadMetadata> {
        let text = |field: &'static str| match metadata.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if (1..=2048).contains(&text.chars().count()) && !text.contains('\0') => {
                Ok(Some(text.clone()))
            }
            Some(_) => Err(BadMetadata { field, message: "must be a text of 1 to 2048 characters".into() }),
        };
        let endpoint = |field: &'static str| match text(field)? {
            None => Ok(None),
            Some(url) => match guard.custom_url(&url) {
                Ok(_) => Ok(Some(url)),
                Err(rule) => Err(BadMetadata { field, message: format!("cannot be used: {rule}") }),
            },
        };
        let auth_method = text("token_endpoint_auth_method")?;
        if auth_method.as_deref().is_some_and(|method| !METHODS.contains(&method)) {
            let message = format!("must be one of {}", METHODS.join(", "));
            return Err(BadMetadata { field: "token_endpoint_auth_method", message });
        }
        Ok(Self {
            client_id: text("client_id")?,
            client_secret: text("client_secret")?.map(Secret::from),
            issuer: endpoint("issuer")?,
            authorization_endpoint: endpoint("authorization_endpoint")?,
            token_endpoint: endpoint("token_endpoint")?,
            revocation_endpoint: endpoint("revocation_endpoint")?,
            registration_endpoint: endpoint("registration_endpoint")?,
            scope: text("scope")?,
            auth_method,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_an_operator_tells_is_judged_field_by_field() {
        let guard = Guard::new(&[], &[]).unwrap();
        let parse = |value: Value| ConfiguredClient::parse(&guard, value.as_object().unwrap());
        let read = parse(json!({ "client_id": "c", "client_secret": "s3cret", "scope": "a b", "other": 7 })).unwrap();
        assert_eq!((read.client_id.as_deref(), read.scope.as_deref()), (Some("c"), Some("a b")));
        assert!(!format!("{read:?}").contains("s3cret"));
        for (value, field) in [
            (json!({ "client_id": 7 }), "client_id"),
            (json!({ "client_id": "" }), "client_id"),
            (json!({ "token_endpoint": "http://169.254.169.254/" }), "token_endpoint"),
            (json!({ "authorization_endpoint": "javascript:x" }), "authorization_endpoint"),
            (json!({ "issuer": "https://10.0.0.1" }), "issuer"),
            (json!({ "token_endpoint_auth_method": "private_key_jwt" }), "token_endpoint_auth_method"),
        ] {
            assert_eq!(parse(value.clone()).unwrap_err().field, field, "{value}");
        }
    }
}
