//! What the name of a model on AWS says of the model behind it. A name may have a region before it, or be the ARN of a model,
//! of a profile that AWS made, or of one that an account made. The last says nothing: AWS must be asked, where a row's
//! `inference_profiles` says.

use super::address::Address;
use super::path_template::PathTemplate;
use serde::Deserialize;

/// What stands before the name of a model that is served in several regions.
pub const AWS_REGION_GROUPS: [&str; 8] = ["us.", "eu.", "apac.", "global.", "us-gov.", "jp.", "au.", "ca."];

/// Where AWS is asked for a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileLookup {
    pub base: Address,
    pub path: PathTemplate,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileLookupRow {
    base: String,
    path: String,
}

impl ProfileLookupRow {
    pub fn lookup(&self) -> Result<ProfileLookup, String> {
        let named = |why: String| format!("inference_profiles: {why}");
        let base = Address::whole(&self.base).map_err(named)?;
        Ok(ProfileLookup { base, path: PathTemplate::parse(&self.path).map_err(named)? })
    }
}

/// The model that a name means, without regions and accounts. None where the name does not say it.
pub fn foundation_model(name: &str) -> Option<&str> {
    let bare = match resource(name) {
        None => name,
        Some(("foundation-model" | "inference-profile", id)) => id,
        Some(_) => return None,
    };
    let without_region = AWS_REGION_GROUPS.iter().find_map(|group| bare.strip_prefix(group));
    Some(without_region.unwrap_or(bare)).filter(|model| !model.is_empty())
}

/// Whether a name is that of a profile which an account made.
pub fn is_account_profile(name: &str) -> bool {
    matches!(resource(name), Some(("application-inference-profile", id)) if !id.is_empty())
}

/// The kind and the id of `arn:partition:bedrock:region:account:kind/id`; an id may have colons of its own.
fn resource(name: &str) -> Option<(&str, &str)> {
    let mut parts = name.strip_prefix("arn:")?.splitn(5, ':');
    let resource = parts.nth(4).unwrap_or_default();
    Some(resource.split_once('/').unwrap_or((resource, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_model_unless_an_account_made_it() {
        let arn = |resource: &str| format!("arn:aws:bedrock:us-east-1:123456789012:{resource}");
        for (name, model, is_profile) in [
            ("anthropic.claude-v2:1".to_owned(), Some("anthropic.claude-v2:1"), false),
            ("us.cohere.embed-v4:0".to_owned(), Some("cohere.embed-v4:0"), false),
            ("global.amazon.nova-lite-v1:0".to_owned(), Some("amazon.nova-lite-v1:0"), false),
            (arn("foundation-model/cohere.embed-english-v3"), Some("cohere.embed-english-v3"), false),
            (arn("inference-profile/eu.anthropic.claude-v2:1"), Some("anthropic.claude-v2:1"), false),
            (arn("application-inference-profile/a1b2c3"), None, true),
            (arn("application-inference-profile/"), None, false),
            (arn("provisioned-model/x"), None, false),
            ("arn:aws:bedrock".to_owned(), None, false),
            ("arn:".to_owned(), None, false),
            (String::new(), None, false),
            ("us.".to_owned(), None, false),
        ] {
            assert_eq!((foundation_model(&name), is_account_profile(&name)), (model, is_profile), "{name}");
        }
    }
}
