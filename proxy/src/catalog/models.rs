//! The models that a workspace can ask for, as `GET /models` lists them: every model of every provider that it may use,
//! under the name `@slug/model` that requests take. Listed from the snapshot and the bundled prices, unless the request
//! or its config names a provider, whose own list is then fetched.

pub(crate) mod dialects;
pub(crate) mod list_form;
mod query;
pub(crate) mod upstream;

use crate::catalog::workspace_provider::{self, WorkspaceProvider};
use crate::request::headers::GatewayHeaders;
use crate::request::refusal::Refusal;
use crate::routing::plan::{Plan, ProviderSource};
use crate::snapshot::Snapshot;
use chrono::{DateTime, Utc};
pub(crate) use query::Query;
use serde::Serialize;
use shared::cost::prices;
use shared::cost::prices::{ModelFacts, Sources};
use shared::model::{IntegrationModel, Workspace};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

/// Who tells which models there are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ModelListSource {
    /// The workspace's catalog, or what it has of these providers.
    Catalog(Option<Vec<String>>),
    Provider,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Model {
    id: String,
    slug: String,
    /// What a model of one's own is made from.
    canonical_slug: String,
    object: &'static str,
    created: i64,
    owned_by: String,
    #[serde(skip)]
    provider: String,
    /// Of the model that it is made from.
    #[serde(flatten)]
    facts: ModelFacts,
}

/// The names that are bundled for each provider, by its id.
static BUNDLED: LazyLock<HashMap<&'static str, Vec<String>>> = LazyLock::new(|| {
    let listed = prices::bundled_providers();
    listed.map(|provider| (provider, prices::bundled_models(provider))).collect()
});

/// Those of one provider, in the order of letters. Nothing for one that is not known.
pub(super) fn bundled_names(provider: &str) -> &'static [String] {
    BUNDLED.get(provider).map_or(&[][..], Vec::as_slice)
}

/// Reads them, so that no request has to.
pub fn read_bundled_names() {
    LazyLock::force(&BUNDLED);
}

pub(crate) fn list_source(headers: &GatewayHeaders<'_>, plan: &Plan) -> Result<ModelListSource, Refusal> {
    let text = |name| headers_text(name).map_err(|()| Refusal::invalid_provider("?"));
    let in_header = match (text(headers.virtual_key)?, text(headers.provider)?) {
        (Some(slug), _) => Some(ProviderSource::Stored(slug.trim_start_matches('@').to_owned())),
        (None, Some(name)) => Some(match name.strip_prefix('@') {
            Some(slug) => ProviderSource::Stored(slug.to_owned()),
            None => ProviderSource::Named(name.to_owned()),
        }),
        (None, None) => headers.named_by_mode().map(|name| ProviderSource::Named(name.to_owned())),
    };
    let in_plan: Vec<&ProviderSource> = plan.leaves().map(|leaf| &leaf.source).collect();
    let bears = in_header.is_some() || in_plan.iter().any(|source| **source != ProviderSource::Request);
    if !bears {
        return Ok(ModelListSource::Catalog(None));
    }
    let asked = headers.fetch_integrated_models.and_then(|value| value.to_str().ok());
    let is_integrated = asked.is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
    if !is_integrated && !plan.leaves().any(|leaf| leaf.fetch_integrated_models) {
        return Ok(ModelListSource::Provider);
    }
    // A target that takes any provider opens them all; so does a name that is no handle of the workspace.
    let is_open = in_header.is_none() && in_plan.contains(&&ProviderSource::Request);
    let named = in_plan.into_iter().chain(in_header.as_ref());
    let slugs: Vec<String> = named
        .filter_map(|source| match source {
            ProviderSource::Stored(slug) => Some(slug.clone()),
            ProviderSource::Named(_) | ProviderSource::Request => None,
        })
        .collect();
    Ok(ModelListSource::Catalog((!is_open && !slugs.is_empty()).then_some(slugs)))
}

fn headers_text(value: Option<&http::HeaderValue>) -> Result<Option<&str>, ()> {
    value.map(|value| value.to_str().map(str::trim).map_err(drop)).transpose()
}

/// All models that the workspace may ask for, by name.
pub(crate) fn available(
    snapshot: &Snapshot,
    workspace: &Workspace,
    slugs: Option<&[String]>,
    now: DateTime<Utc>,
) -> Vec<Model> {
    let is_asked_for = |slug: &String| slugs.is_none_or(|slugs| slugs.contains(slug));
    let Some(of_workspace) = snapshot.providers_in_order(workspace.id) else { return Vec::new() };
    let of_workspace = of_workspace.iter().filter(|provider| is_asked_for(&provider.slug));
    let mut models: Vec<Model> = of_workspace
        .filter_map(|provider| workspace_provider::find(snapshot, workspace, &provider.slug, now).ok())
        .flat_map(|entry| {
            let listed = snapshot.models_of(&entry.integration.id);
            models_of_provider(&entry, listed.as_deref().unwrap_or_default())
        })
        .collect();
    models.sort_by(|one, other| one.id.cmp(&other.id));
    models
}

/// What an integration says about a model wins; of the rest all or none are allowed.
fn models_of_provider(entry: &WorkspaceProvider, listed: &[Arc<IntegrationModel>]) -> Vec<Model> {
    let integration = &entry.integration;
    let is_spoken_of: HashSet<&str> = listed.iter().map(|model| model.slug.as_str()).collect();
    let bundled = bundled_names(&integration.ai_provider_id).iter();
    let rest = bundled.filter(|name| integration.allow_all_models && !is_spoken_of.contains(name.as_str()));
    let rest = rest.map(|name| (name.as_str(), name.as_str()));
    let own = listed.iter().filter(|model| model.enabled);
    let own = own.map(|model| (model.slug.as_str(), model.base_model_slug.as_deref().unwrap_or(&model.slug)));
    let slug = &entry.provider.slug;
    let listed = rest.chain(own).map(|(name, base)| Model {
        id: format!("@{slug}/{name}"),
        slug: name.to_owned(),
        canonical_slug: base.to_owned(),
        object: "model",
        created: entry.provider.created_at.timestamp(),
        owned_by: integration.ai_provider_id.clone(),
        provider: slug.clone(),
        facts: ModelFacts::default(),
    });
    listed.collect()
}

/// What a client is answered who asks for the list.
#[derive(Debug, Serialize)]
pub(crate) struct ModelPage {
    object: &'static str,
    total: usize,
    pub data: Vec<Model>,
}

pub(crate) fn page(mut models: Vec<Model>, query: &Query) -> ModelPage {
    models.retain(|model| query.wants(&model.owned_by, &model.provider));
    query.sort(&mut models);
    let total = models.len();
    let data = models.into_iter().skip(query.offset).take(query.limit.unwrap_or(usize::MAX)).collect();
    ModelPage { object: "list", total, data }
}

/// What is known of each model beside its price, as far as it is in memory or bundled.
pub(crate) fn add_facts(models: &mut [Model], sources: &Arc<Sources>) {
    let services: HashSet<String> = models.iter().map(|model| model.owned_by.clone()).collect();
    for service in services {
        let mut of_service: Vec<&mut Model> = models.iter_mut().filter(|model| model.owned_by == service).collect();
        let found = sources.facts(&service, of_service.iter().map(|model| model.canonical_slug.as_str()));
        for (model, facts) in of_service.iter_mut().zip(found) {
            model.facts = facts.unwrap_or_default();
        }
    }
}

/// By its whole name, or by the model's own as the workspace's oldest provider has it.
pub(crate) fn named(models: Vec<Model>, name: &str) -> Option<Model> {
    let (mut whole, rest): (Vec<Model>, Vec<Model>) = models.into_iter().partition(|model| model.id == name);
    let own = || rest.into_iter().filter(|model| model.slug == name).min_by_key(|model| model.created);
    whole.pop().or_else(own)
}

#[cfg(test)]
mod tests;
