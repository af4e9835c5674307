//! `GET /models` and `GET /models/{id}`, from the caller to the answer.

use crate::catalog::models::{ModelListSource, Query, available, list_source, named, page, upstream};
use crate::catalog::target::Target;
use crate::identity::identify::Principal;
use crate::metrics::Outcome;
use crate::refusal::Refusal;
use crate::request::headers::GatewayHeaders;
use crate::visit::Visit;
use crate::walk::ignored_headers::tell_ignored;
use crate::walk::prepare::{ProviderHeaders, upstream_head};
use crate::walk::{Engine, KnownRequest, NextStep, RelayAsk, path_and_query};
use bytes::Bytes;
use chrono::Utc;
use http::{Method, header};
use percent_encoding::percent_decode_str;
use pingora_http::RequestHeader;

impl Engine {
    /// `path` is that of the provider, `name` what of it names a model.
    pub(crate) async fn models(
        &self,
        path: &str,
        name: Option<&str>,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        caller: Principal,
        visit: &mut Visit,
    ) -> Result<NextStep, Refusal> {
        let metadata = self.planner.metadata(headers, &head.headers, &caller)?;
        let found = self.planner.find(headers, &caller)?;
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
                let target = &passage.target;
                if name.is_some() || !upstream::has_known_form(&target.provider.name) {
                    return Ok(NextStep::Pass(Box::new(passage)));
                }
                self.calls.secrets.gather(target).await?;
                return self.ask(target, head, headers).await;
            }
        };
        let models = available(&self.snapshot, &caller.workspace, slugs.as_deref(), Utc::now());
        let body = match name {
            None => {
                let query = Query::parse(head.uri.query())?;
                query.slips.iter().for_each(|slip| visit.routing.warn(slip));
                page(models, &query)
            }
            Some(name) => {
                // Clients escape what stands in a path, or leave it as it is.
                let name = &*percent_decode_str(name).decode_utf8_lossy();
                let found = named(&models, name).ok_or_else(|| Refusal::model_not_found(name))?;
                serde_json::to_value(found).map_err(|_| Refusal::internal())?
            }
        };
        Ok(NextStep::Page { status: 200, body: Bytes::from(body.to_string()) })
    }

    async fn ask(
        &self,
        target: &Target,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
    ) -> Result<NextStep, Refusal> {
        let row = &target.provider.row;
        let place = row.upstream_path(&Method::GET, "/models");
        let place = place.map_err(|why| Refusal::endpoint_not_supported(&target.provider.name, why))?;
        let place = path_and_query(&place, head);
        let (mut asked, unsigned) =
            upstream_head(target, &place, head, &ProviderHeaders::from_headers(headers), None, &self.aliases)?;
        asked.method = Method::GET;
        asked.remove(&header::CONTENT_TYPE);
        if let Some(credential) = unsigned {
            Box::pin(self.calls.authorise(target, &credential, &mut asked, b"")).await?;
        }
        let (status, body) = upstream::ask(&self.calls.dialer, target, asked).await?;
        self.metrics.attempt(target.provider.number, status, Outcome::Answered);
        let written = (status == 200).then(|| upstream::in_openai_form(&body, &target.provider.name)).flatten();
        Ok(NextStep::Page { status, body: written.map_or(body, |list| Bytes::from(list.to_string())) })
    }
}
