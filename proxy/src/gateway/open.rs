//! Everything that the head of a request decides alone: who serves it, whether its caller may ask, and what they are allowed
//! to use. No body was read yet.

use super::Gateway;
use super::next_step::NextStep;
use pingora_http::RequestHeader;
use proxy::batches::native_output::asked_output;
use proxy::batches::provider_objects::provider_object_family;
use proxy::batches::{endpoints, file_endpoints};
use proxy::context::Visit;
use proxy::context::metrics::Lane;
use proxy::engine::{KnownRequest, Opened, Relayed, wrong_path};
use proxy::identity::identify::LISTING;
use proxy::identity::metadata::trace_id;
use proxy::relay::RelayAsk;
use proxy::relay::upgrade::check_upgrade;
use proxy::request::classify::{Endpoint, Route, classify, dialect};
use proxy::request::headers::GatewayHeaders;
use proxy::request::refusal::Refusal;
use std::net::IpAddr;

/// Heads beyond this are refused with 431. Pingora itself gives up at 1 MiB or 256 headers.
const MAX_HEAD: usize = 64 << 10;

impl Gateway {
    /// `peer` is the other end of the connection.
    pub(super) async fn open(
        &self,
        head: &RequestHeader,
        peer: Option<IpAddr>,
        visit: &mut Visit,
    ) -> Result<NextStep, Refusal> {
        let path = head.uri.path();
        let route = classify(&head.method, path);
        visit.request.dialect = dialect(&route);
        visit.enter(lane(&route), &self.services.metrics);
        if head_size(head) > MAX_HEAD {
            return Err(Refusal::headers_too_large(MAX_HEAD));
        }
        let headers = GatewayHeaders::from_headers(&head.headers, &self.services.aliases)?;
        visit.request.alias = headers.alias.clone();
        visit.request.trace_id = trace_id(&headers)?;
        let to = &self.capabilities;
        match route {
            Route::Greeting => Ok(NextStep::Greeting),
            Route::Preflight => Ok(NextStep::Preflight),
            Route::ControlPlane => Ok(NextStep::ControlPlane),
            Route::Explain => Ok(NextStep::Explain(to.explainer.asker(head, peer, &headers, visit).await)),
            Route::Prompt(reference) => {
                let known = to.intake.learn(head, peer, &headers, visit).await?;
                to.engine.open_prompt(reference, &headers, known).map(NextStep::Engine)
            }
            Route::Mcp(slug) => Box::pin(to.mcp.open(slug, head, peer, &headers, visit)).await.map(NextStep::Mcp),
            Route::McpMetadata(resource) => {
                Ok(NextStep::Page { status: 200, body: to.mcp.metadata_page(resource, head) })
            }
            Route::McpKeys(organisation) => Ok(NextStep::Page { status: 200, body: to.mcp.public_keys(organisation)? }),
            Route::Ambiguous(endpoint) => Err(Refusal::ambiguous_path(endpoint.path())),
            Route::NotFound => Err(wrong_path::outside(&head.method, path)),
            Route::MethodNotAllowed => Err(Refusal::method_not_allowed(head.method.as_str())),
            Route::Engine(endpoint) => {
                let known = to.intake.learn(head, peer, &headers, visit).await?;
                self.open_engine(endpoint, head, &headers, known, visit).await
            }
            Route::Relay(path) => {
                let known = self.learn_relayed(&path, head, peer, &headers, visit).await?;
                if file_endpoints::is_managed(&path, head, &headers, &known.plan) {
                    return to.files.open(path.into_owned(), head, known, visit).await.map(NextStep::Files);
                }
                if endpoints::is_managed(&path, head, &headers, &known.plan) {
                    return to.batches.open(path.into_owned(), head, known, visit).await.map(NextStep::Batches);
                }
                let relayed = Relayed { path: path.into_owned(), target: None, known };
                self.open_relay(relayed, head, &headers, visit).await
            }
            Route::Models { path, name } => {
                let caller = self.services.authenticator.identify(head, peer, &headers, LISTING, visit).await?;
                let listed = Box::pin(to.models.list(path, name, head, &headers, caller, visit)).await;
                listed.map(NextStep::from)
            }
        }
    }

    async fn open_engine(
        &self,
        endpoint: Endpoint,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        known: KnownRequest,
        visit: &mut Visit,
    ) -> Result<NextStep, Refusal> {
        match self.capabilities.engine.open(endpoint, head, headers, known, visit)? {
            Opened::Call(request) => Ok(NextStep::Engine(request)),
            Opened::Relayed(relayed) => self.open_relay(*relayed, head, headers, visit).await,
        }
    }

    /// For a path that only a provider could know. Of a request that names none it is probably a slip.
    async fn learn_relayed(
        &self,
        path: &str,
        head: &RequestHeader,
        peer: Option<IpAddr>,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<KnownRequest, Refusal> {
        let known = self.capabilities.intake.learn(head, peer, headers, visit).await;
        if let Ok(known) = &known {
            check_upgrade(path, head, headers, known)?;
        }
        let is_lost = match &known {
            Ok(known) => known.plan.is_nothing(),
            // An administrator's key, which is no workspace's: it cannot mean a provider.
            Err(refusal) => refusal.status == 403,
        };
        if is_lost
            && !wrong_path::names_target(headers)
            && let Some(refusal) = wrong_path::without_provider(&head.method, path)
        {
            return Err(refusal);
        }
        if wrong_path::without_second_version(&head.method, path).is_some() {
            visit.routing.warn(wrong_path::DOUBLED);
        }
        known
    }

    async fn open_relay(
        &self,
        relayed: Relayed,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<NextStep, Refusal> {
        let Relayed { path, target, known } = relayed;
        let (router, objects) = (&self.services.router, &self.capabilities.provider_objects);
        let ask = RelayAsk::new(path, head, known)?;
        self.services.admitter.admit_head(head, visit, &ask).await?;
        let judge = router.relay_judge(&ask, head)?;
        if let Some(family) = provider_object_family(head, &ask.path)
            && objects.may_be_mapped(&ask, family, headers)
        {
            return objects.open(family, ask, judge, head, headers, visit).map(NextStep::from);
        }
        if asked_output(head, &ask.path).is_some() {
            let opened = Box::pin(objects.open_native_output(ask, head, headers, visit)).await;
            return opened.map(NextStep::from);
        }
        Ok(NextStep::Relay(Box::new(router.departure(ask, target, judge, head, headers))))
    }
}

fn lane(route: &Route<'_>) -> Lane {
    match route {
        Route::Engine(_) | Route::Prompt(_) => Lane::Engine,
        Route::Relay(_) | Route::Models { .. } | Route::Mcp(_) => Lane::Relay,
        Route::ControlPlane => Lane::ControlPlane,
        Route::Explain
        | Route::Greeting
        | Route::Preflight
        | Route::McpMetadata(_)
        | Route::McpKeys(_)
        | Route::Ambiguous(_)
        | Route::NotFound
        | Route::MethodNotAllowed => Lane::Own,
    }
}

fn head_size(head: &RequestHeader) -> usize {
    let headers = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    headers.sum::<usize>() + head.uri.path_and_query().map_or(0, |path| path.as_str().len())
}
