//! Where tokens of our own identity may go. Whoever makes an account chooses its host, and a bearer token is good for
//! whoever reads it: a token that stands for this process goes to its cloud's own hosts, and to those that the operator
//! trusts. Signatures need no such rule: they are good for the one request to the one host.

use super::account::AccountCredential;
use super::error::SigningError;
use super::token_request::TokenRequest;
use crate::net::dial::Origin;

/// Hosts, or how they end, where no customer's program runs, so that none of them can read what is sent.
static AZURE: &[&str] = &[
    ".openai.azure.com",
    ".openai.azure.us",
    ".cognitiveservices.azure.com",
    ".cognitiveservices.azure.us",
    ".services.ai.azure.com",
];
/// Vertex alone: the machine's token would open its buckets and secrets too.
static GOOGLE: &[&str] = &[
    "aiplatform.googleapis.com",
    "-aiplatform.googleapis.com",
    "aiplatform.us.rep.googleapis.com",
    "aiplatform.eu.rep.googleapis.com",
];

pub fn check(credential: &AccountCredential, origin: &Origin) -> Result<(), SigningError> {
    let AccountCredential::Bearer(request) = credential else { return Ok(()) };
    let hosts = match request {
        TokenRequest::GoogleMachine => GOOGLE,
        TokenRequest::Azure { .. } if request.is_own_identity() => AZURE,
        _ => return Ok(()),
    };
    let host = origin.host_name();
    let is_one = |rule: &&str| if rule.starts_with(['.', '-']) { host.ends_with(rule) } else { host == *rule };
    let is_clouds = origin.is_tls() && hosts.iter().any(is_one);
    if is_clouds || origin.is_trusted() { Ok(()) } else { Err(SigningError::OtherHost) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::secrets::cloud::AzureIdentity;

    #[test]
    fn a_token_of_ours_is_shown_to_its_cloud_alone() {
        let azure = |identity| AccountCredential::Bearer(TokenRequest::Azure { identity, scope: "s".into() });
        let managed = azure(AzureIdentity::Managed { client: None });
        let google = AccountCredential::Bearer(TokenRequest::GoogleMachine);
        let client =
            azure(AzureIdentity::Client { tenant: "t".into(), client: "c".into(), secret: "s".to_owned().into() });
        for (url, of_azure, of_google) in [
            ("https://r.openai.azure.com/openai", true, false),
            ("https://f.services.ai.azure.com", true, false),
            ("http://r.openai.azure.com", false, false),
            ("https://vm.cloudapp.azure.com", false, false),
            ("https://r.openai.azure.com.evil.test", false, false),
            ("https://us-central1-aiplatform.googleapis.com", false, true),
            ("https://aiplatform.googleapis.com", false, true),
            ("https://aiplatform.eu.rep.googleapis.com", false, true),
            ("https://storage.googleapis.com", false, false),
            ("https://secretmanager.europe-west1.rep.googleapis.com", false, false),
            ("https://evil.test", false, false),
        ] {
            let mut origin = Origin::parse(url).unwrap();
            assert_eq!(check(&managed, &origin).is_ok(), of_azure, "{url}");
            assert_eq!(check(&google, &origin).is_ok(), of_google, "{url}");
            assert!(check(&client, &origin).is_ok(), "what a customer brings is the customer's: {url}");
            origin.set_trusted(true);
            assert!(check(&managed, &origin).is_ok() && check(&google, &origin).is_ok());
        }
    }
}
