//! Who this process is to the cloud it runs in, as far as its environment says: the variables and files by which AWS,
//! Azure, Google and Kubernetes hand identities to what they run. Read once at the start; files when they are needed, because
//! they are renewed.

use super::sigv4::AwsKeys;
use super::{LoginError, text};
use crate::secrets::seal::Secret;
use std::collections::BTreeMap;
use std::fmt;

static NAMES: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "AZURE_CLIENT_ID",
    "AZURE_TENANT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
    "GCE_METADATA_HOST",
    "IDENTITY_ENDPOINT",
    "IDENTITY_HEADER",
    "KUBERNETES_TOKEN_FILE",
];

const KUBERNETES_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
const MAX_FILE: u64 = 64 << 10;

/// An identity may also be withheld (`none`): then the modes that need it are refused.
#[derive(Clone, Default)]
pub struct OwnIdentity {
    variables: BTreeMap<String, Secret>,
    is_withheld: bool,
}

impl fmt::Debug for OwnIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.variables.keys()).finish()
    }
}

impl OwnIdentity {
    pub fn from_environment() -> Self {
        Self::from_variables(NAMES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))))
    }

    pub fn from_variables(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let given = variables.into_iter().filter(|(_, value)| !value.is_empty());
        Self { variables: given.map(|(name, value)| (name, value.into())).collect(), is_withheld: false }
    }

    /// Tenants are strangers to each other: none of them may speak for this process.
    pub fn none() -> Self {
        Self { variables: BTreeMap::new(), is_withheld: true }
    }

    /// Refuses where the identity is withheld.
    pub fn shown(&self) -> Result<&Self, LoginError> {
        if self.is_withheld { Err(LoginError::NoIdentity("its operator does not lend it")) } else { Ok(self) }
    }

    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(text)
    }

    pub fn region(&self) -> Option<&str> {
        self.variable("AWS_REGION").or_else(|| self.variable("AWS_DEFAULT_REGION"))
    }

    pub fn aws_keys(&self) -> Option<AwsKeys> {
        let secret = |name: &str| self.variables.get(name).cloned();
        Some(AwsKeys {
            id: secret("AWS_ACCESS_KEY_ID")?,
            secret: secret("AWS_SECRET_ACCESS_KEY")?,
            session: secret("AWS_SESSION_TOKEN"),
        })
    }

    /// The content of the file that a variable names.
    pub async fn file(&self, name: &str) -> Option<String> {
        read_file(self.variable(name)?).await
    }

    pub async fn kubernetes_token(&self) -> Result<String, LoginError> {
        let path = self.variable("KUBERNETES_TOKEN_FILE").unwrap_or(KUBERNETES_TOKEN);
        read_file(path).await.ok_or(LoginError::NoIdentity("there is no Kubernetes service account token"))
    }
}

async fn read_file(path: &str) -> Option<String> {
    let size = tokio::fs::metadata(path).await.ok()?.len();
    let text = if size <= MAX_FILE { tokio::fs::read_to_string(path).await.ok()? } else { return None };
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_prints_names_only_and_can_be_withheld() {
        let own = OwnIdentity::from_variables([("AWS_SECRET_ACCESS_KEY".to_owned(), "s3cret".to_owned())]);
        assert_eq!(format!("{own:?}"), r#"["AWS_SECRET_ACCESS_KEY"]"#);
        assert!(own.shown().is_ok() && OwnIdentity::none().shown().is_err());
        assert!(own.aws_keys().is_none(), "half of a pair is no key");
    }
}
