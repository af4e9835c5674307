//! `GET /models` and `GET /models/{id}`, from the caller to the answer. A provider's own list is brought into OpenAI's
//! form, page after page within bounds.

use super::{RelayAsk, RelayStep};
use crate::catalog::models::dialects::ListDialect;
use crate::catalog::models::list_form::{self, ListForm};
use crate::catalog::models::{ModelListSource, Query, add_facts, available, list_source, named, page, upstream};
use crate::catalog::target::Target;
use crate::context::Visit;
use crate::context::metrics::Metrics;
use crate::context::metrics::Outcome;
use crate::engine::answer::error_in_openai_form;
use crate::engine::ignored_headers::tell_ignored;
use crate::engine::prepare::{ProviderHeaders, upstream_head};
use crate::engine::translate::memory_to_translate;
use crate::engine::{
    Admitter, BodyLimits, KnownRequest, Planner, ProviderCalls, Recorder, Router, Services, translate,
};
use crate::identity::identify::Principal;
use crate::request::headers::Aliases;
use crate::request::headers::GatewayHeaders;
use crate::request::off_thread::aside;
use crate::request::receive::MemoryShare;
use crate::request::refusal::Refusal;
use crate::runtime::timeout::with_timeout;
use crate::snapshot::Snapshot;
use bytes::Bytes;
use chrono::Utc;
use http::{Method, header};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use pingora_http::RequestHeader;
use serde_json::{Value, json};
use shared::providers::{ModelList, ProviderEntry};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// How the path of Google's clients begins.
const GOOGLES: &str = "/v1beta/";

/// Of one page, in bytes.
const MAX_PAGE_BYTES: usize = 4 << 20;
/// Of all pages together.
const MAX_LIST: usize = 8 << 20;
const MAX_PAGES: usize = 20;
/// For all pages together.
const MAX_WAIT: Duration = Duration::from_secs(15);
const MAX_MODELS: usize = 10_000;

/// Answers which models there are.
pub struct ModelLists {
    snapshot: Arc<Snapshot>,
    metrics: Arc<Metrics>,
    aliases: Arc<Aliases>,
    body_limits: Arc<BodyLimits>,
    recorder: Arc<Recorder>,
    planner: Arc<Planner>,
    admitter: Arc<Admitter>,
    router: Arc<Router>,
    calls: Arc<ProviderCalls>,
}

impl ModelLists {
    pub fn new(services: &Services) -> Self {
        let Services { snapshot, metrics, aliases, body_limits, recorder, planner, admitter, router, calls, .. } =
            services.clone();
        Self { snapshot, metrics, aliases, body_limits, recorder, planner, admitter, router, calls }
    }

    /// `path` is that of the provider, `name` what of it names a model.
    pub async fn list(
        &self,
        path: &str,
        name: Option<&str>,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        caller: Principal,
        visit: &mut Visit,
    ) -> Result<RelayStep, Refusal> {
        let tenant = caller.tenant();
        let metadata = self.planner.metadata(headers, &head.headers, &caller)?;
        let found = self.planner.find(headers, &caller)?;
        // Clients escape what stands in a path, or leave it as it is.
        let name = name.map(|name| percent_decode_str(name).decode_utf8_lossy());
        let dialect = ListDialect::of_request(path, &head.headers);
        let slugs = match list_source(headers, &found.plan)? {
            ModelListSource::Catalog(slugs) => {
                tell_ignored(headers, &found, visit);
                slugs
            }
            ModelListSource::Provider => {
                self.recorder.open_log(&caller, head, headers, visit)?;
                let plan = self.planner.follow(found, headers, &metadata, visit);
                let ask = RelayAsk::new(path.to_owned(), head, KnownRequest { caller, metadata, plan })?;
                let mut passage = self.router.passage(ask, head, headers, visit)?;
                passage.is_listing = true;
                let row = passage.target.provider.row.clone();
                // Google's own path is Google's own answer.
                let list = list_to_read(&row, name.is_some()).filter(|_| !path.starts_with(GOOGLES));
                let Some(list) = list else {
                    return Ok(RelayStep::Passage(Box::new(passage)));
                };
                let target = self.router.at_base(passage.target, list.base.as_ref())?;
                self.calls.secrets.gather(&target).await?;
                let mut share = MemoryShare::none(&self.body_limits.memory, tenant);
                let asking = self.ask_models(&target, list, head, headers, &mut share);
                let reply = with_timeout(MAX_WAIT, pin!(asking)).await;
                let reply = reply.unwrap_or_else(|_| Err(Refusal::timeout(MAX_WAIT.as_millis())))?;
                return match (reply, name) {
                    (Listed::Models(models, has_more), None) => {
                        let id = |model: Option<&Value>| model.map(|model| model["id"].clone());
                        let (first, last) = (id(models.first()), id(models.last()));
                        let list = json!({ "object": "list", "data": models, "has_more": has_more, "first_id": first,
                            "last_id": last, "provider": target.provider.name });
                        Ok(RelayStep::Page { status: 200, body: Bytes::from(list.to_string()) })
                    }
                    (Listed::Models(models, _), Some(name)) => {
                        let found = models.iter().find(|model| model["id"] == *name);
                        let found = found.ok_or_else(|| Refusal::model_not_found(&name))?;
                        Ok(RelayStep::Page { status: 200, body: Bytes::from(found.to_string()) })
                    }
                    (Listed::Other(status, body), _) => Ok(RelayStep::Page { status, body }),
                };
            }
        };
        let models = available(&self.snapshot, &caller.workspace, slugs.as_deref(), Utc::now());
        let sources = &self.admitter.tariff.sources;
        let body = match name {
            None if dialect != ListDialect::OpenAi => serde_json::to_string(&dialect.page(&models, head.uri.query())?),
            None => {
                let query = Query::parse(head.uri.query())?;
                query.slips.iter().for_each(|slip| visit.routing.warn(slip));
                let mut page = page(models, &query);
                add_facts(&mut page.data, sources);
                serde_json::to_string(&page)
            }
            Some(name) => {
                let mut found = named(models, &name).ok_or_else(|| Refusal::model_not_found(&name))?;
                add_facts(std::slice::from_mut(&mut found), sources);
                match dialect.model(&found) {
                    Some(model) => serde_json::to_string(&model),
                    None => serde_json::to_string(&found),
                }
            }
        };
        Ok(RelayStep::Page { status: 200, body: Bytes::from(body.map_err(|_| Refusal::internal())?) })
    }

    async fn ask_models(
        &self,
        target: &Target,
        list: &ModelList,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        share: &mut MemoryShare<'_>,
    ) -> Result<Listed, Refusal> {
        let form = list_form::by_name(&list.form).ok_or_else(Refusal::internal)?;
        let place = translate::fill(&list.path, target, [""; 2], None)?;
        // Whoever asks for a page in the provider's own words gets that page.
        let own_query = head.uri.query().filter(|query| form.takes_query && !query.is_empty());
        let mut models: Vec<Value> = Vec::new();
        let mut next = own_query.map(str::to_owned);
        let mut read = 0;
        for number in 0..MAX_PAGES {
            let place = next.as_deref().map_or_else(|| place.clone(), |query| with_pair(&place, query));
            let (status, body) = self.ask_page(target, &place, head, headers, share).await?;
            let provider = &target.provider.name;
            read += body.len();
            // Its values stay, and are written anew.
            share.grow(memory_to_translate(&body).saturating_mul(2))?;
            let (page, name) = (body.clone(), provider.clone());
            let reading = move || (status == 200).then(|| form.read(&page, &name)).flatten();
            let reply = aside(body.len(), reading).await?;
            let Some(reply) = reply else {
                return match status {
                    200..300 => Err(Refusal::invalid_upstream_response(provider, "it is no list of models")),
                    status => Ok(Listed::Other(status, error_in_openai_form(status, body, provider))),
                };
            };
            models.extend(reply.models);
            next = reply.next.and_then(|token| next_query(form, &token));
            let is_full = number + 1 == MAX_PAGES || models.len() >= MAX_MODELS || read + MAX_PAGE_BYTES > MAX_LIST;
            if next.is_none() || own_query.is_some() || is_full {
                break;
            }
        }
        models.truncate(MAX_MODELS);
        Ok(Listed::Models(models, next.is_some()))
    }

    async fn ask_page(
        &self,
        target: &Target,
        place: &str,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        share: &mut MemoryShare<'_>,
    ) -> Result<(u16, Bytes), Refusal> {
        let (mut asked, unsigned) =
            upstream_head(target, place, head, &ProviderHeaders::from_headers(headers), None, &self.aliases)?;
        asked.method = Method::GET;
        asked.remove(&header::CONTENT_TYPE);
        if let Some(credential) = unsigned {
            Box::pin(self.calls.authorise(target, &credential, &mut asked, b"")).await?;
        }
        let reply = upstream::ask(&self.calls.dialer, target, asked, Bytes::new(), MAX_PAGE_BYTES, share).await?;
        self.metrics.attempt(target.provider.number, reply.status, Outcome::Answered);
        Ok((reply.status, reply.body))
    }
}

/// What a provider said of its models.
enum Listed {
    /// And whether there are more than were asked for.
    Models(Vec<Value>, bool),
    /// An error: its status, and its own words in a form that clients know.
    Other(u16, Bytes),
}

/// None where the provider's answer passes as it is: nothing is known of its form, or a single model is there where the
/// caller looks for it.
fn list_to_read(row: &ProviderEntry, is_named: bool) -> Option<&ModelList> {
    let list = row.model_list.as_ref()?;
    let is_usual = list.base.is_none()
        && matches!(&*list.form, "openai" | "anthropic")
        && list.path.fill(|_| None).is_ok_and(|path| path == "/models");
    (!is_named || !is_usual).then_some(list)
}

fn next_query(form: &ListForm, token: &str) -> Option<String> {
    let parameter = form.pages.as_ref()?.parameter;
    Some(format!("{parameter}={}", utf8_percent_encode(token, NON_ALPHANUMERIC)))
}

fn with_pair(place: &str, query: &str) -> String {
    let mark = if place.contains('?') { '&' } else { '?' };
    format!("{place}{mark}{query}")
}
