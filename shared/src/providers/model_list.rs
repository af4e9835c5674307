//! Where a provider lists its models, and in which form. A row that says nothing lists them in OpenAI's form beside its
//! chat, or in Anthropic's beside its messages.

use super::address::Address;
use super::path_template::PathTemplate;
use super::{Family, FamilyOffer};
use serde::Deserialize;

/// The names that rows may use; the proxy reads each of them.
pub const MODEL_LIST_FORMS: [&str; 10] =
    ["openai", "anthropic", "gemini", "vertex", "bedrock", "cohere", "workers_ai", "databricks", "pinecone", "github"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelList {
    pub form: Box<str>,
    /// With the query that asks for as many as there may be in one answer.
    pub path: PathTemplate,
    /// Where that is another address than the provider's.
    pub base: Option<Address>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelListRow {
    form: Option<String>,
    path: Option<String>,
    base: Option<String>,
}

impl ModelListRow {
    pub fn list(&self, offers: &[FamilyOffer]) -> Result<ModelList, String> {
        let usual = usual(offers)?;
        let form = self.form.as_deref().unwrap_or(&usual.form);
        if !MODEL_LIST_FORMS.contains(&form) {
            return Err(format!("models: there is no form `{form}`"));
        }
        let path = self.path.as_deref().map(PathTemplate::parse).transpose();
        Ok(ModelList {
            form: form.into(),
            path: path.map_err(|why| format!("models: {why}"))?.unwrap_or(usual.path),
            base: self.base.as_deref().map(Address::whole).transpose()?,
        })
    }
}

/// Of a row that says nothing of it.
pub(super) fn usual(offers: &[FamilyOffer]) -> Result<ModelList, String> {
    const LIST_FORMS: [(Family, &str); 2] = [(Family::Chat, "openai"), (Family::Messages, "anthropic")];
    let found = LIST_FORMS.into_iter().find_map(|(family, form)| match &offers[family as usize] {
        FamilyOffer::Native(path) => Some((path.strip_suffix(family.path())?, form)),
        _ => None,
    });
    let (folder, form) = found.unwrap_or(("", "openai"));
    Ok(ModelList { form: form.into(), path: PathTemplate::parse(&[folder, "/models"].concat())?, base: None })
}
