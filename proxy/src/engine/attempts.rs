//! The engine lane from the body to the answer: targets are tried as the plan says until one has something worth
//! passing on, or nothing is left to try. Until then the client has seen nothing.

use super::admit::ReadBody;
use super::answer;
use super::answer::{Ended, GuardedCall, HeldStart, Steps, StreamFrames, WireDialect, with_heartbeats};
use super::attempt_outcome::{code, held, outcome, paid};
use super::betas;
use super::call::{Call, HeldAnswer, NotCalled, refused};
use super::counted_tokens::estimated_count;
use super::fair_turn::Turn;
use super::guard::GuardedTarget;
use super::look_up::{LookUp, LookedUp};
use super::prompt_call;
use super::repair::repaired;
use super::translate::{ReusableTranslation, TranslationInputs, is_counted_here};
use super::{Engine, EngineRequest, moment};
use crate::catalog::target::Target;
use crate::context::Visit;
use crate::context::metrics::Lane;
use crate::limits::fairness::Permit;
use crate::limits::usage::stream_options;
use crate::net::downstream::Downstream;
use crate::request::body::Fields;
use crate::request::body::edit::with_model;
use crate::request::headers::GatewayHeaders;
use crate::request::multipart::{Form, MAX_HELD};
use crate::request::receive::{MemoryShare, NotReceived, receive};
use crate::request::refusal::Refusal;
use crate::routing::plan::Leaf;
use crate::routing::{AfterAttempt, Course, RequestFacts};
use bytes::Bytes;
use chrono::Utc;
use pingora_http::RequestHeader;
use shared::providers::Family;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Engine {
    pub(super) async fn exchange(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        request: &mut EngineRequest,
    ) -> Ended {
        let takes_forms = request.endpoint.takes_forms();
        let most = match () {
            () if takes_forms => MAX_HELD,
            () if request.prompt.is_some() => prompt_call::MAX_SIZE,
            () => usize::MAX,
        };
        let max_bytes = self.body_limits.max_bytes.min(most);
        let bounds = self.body_limits.bounds(max_bytes, request.caller.tenant());
        let body = match receive(client, &bounds).await {
            Ok(body) => body,
            Err(NotReceived::Gone) => return Ended::ClientGone,
            Err(NotReceived::Refused(refusal)) => return refused(refusal),
        };
        request.form = match takes_forms.then(|| Form::from_request(&client.head().headers, &body.bytes)) {
            None => None,
            Some(Ok(form)) => form,
            Some(Err(refusal)) => return refused(refusal),
        };
        let text = request.form.as_ref().map_or(&body.bytes, Form::json).clone();
        if let Some(log) = &mut visit.observer.log {
            log.received(&text);
            if request.form.is_some() {
                log.uploads(&body.bytes);
            }
        }
        let mut share = MemoryShare::none(&self.body_limits.memory, request.caller.tenant());
        let completed = match request.prompt.is_some() {
            true => Some(Box::pin(self.run_prompt(visit, request, text.clone(), &mut share)).await),
            false => request
                .native
                .as_ref()
                .map(|native| share.grow(text.len()).map_err(Refusal::from).and_then(|()| native.complete(&text))),
        };
        let text = match completed {
            None => text,
            Some(Ok(completed)) => completed,
            Some(Err(refusal)) => return refused(refusal),
        };
        // What its hooks keep of the request is in memory until the answer is delivered.
        let mut guarded = None;
        let outcome = match Fields::parse_object(&text) {
            Ok(fields) => {
                visit.request.parsed_after = Some(visit.request.started.elapsed());
                self.planner.add_from_body(&mut request.metadata, request.endpoint.family(), &fields);
                if let Some(log) = &mut visit.observer.log {
                    log.describe(&request.metadata);
                    log.asked(&text);
                }
                let read = ReadBody { text: &text, fields: &fields };
                match self.admit(client.head(), visit, request, read).await {
                    Ok(()) => self.attempts(client, visit, request, &text, &fields, &mut guarded).await,
                    Err(refusal) => Err(refused(refusal)),
                }
            }
            Err(refusal) => Err(refused(refusal)),
        };
        match outcome {
            Ok(HeldAnswer { mut source, held, mut steps, permit, keeper, is_hit, .. }) => {
                visit.observer.keeper = keeper;
                if let (Some(log), true) = (&mut visit.observer.log, source.head().status.is_success() && !is_hit) {
                    log.is_answered();
                }
                let after = visit.request.started.elapsed();
                visit.answer.head_after = Some(after);
                self.metrics.first_byte(Lane::Engine, after);
                self.metrics.overhead(after.saturating_sub(visit.routing.upstream));
                if let Some(permit) = &permit {
                    client.yield_under(permit.contention());
                }
                let ended = answer::deliver(client, &mut source, held, &mut steps, visit).await;
                source.release();
                drop(permit);
                ended
            }
            Err(ended) => ended,
        }
    }

    async fn attempts(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        request: &EngineRequest,
        body: &Bytes,
        fields: &Fields<'_>,
        guarded: &mut Option<Box<GuardedTarget>>,
    ) -> Result<HeldAnswer, Ended> {
        let facts = known(request, fields, client.head());
        let retry = request.retry.as_ref();
        let mut chance = rand::random::<f64>;
        let begun = Course::begin_retrying(&request.plan, retry, &mut moment(facts, &request.caller, &mut chance));
        let mut course = begun.map_err(refused)?;
        let mut reusable = None;
        let defaults = if request.is_own { None } else { self.router.guards.defaults(&request.caller) };
        // A heartbeat is a comment, which only server-sent events have.
        let takes_comments =
            fields.is_true("stream") && request.frames().is_none_or(|frames| frames == StreamFrames::Events);
        loop {
            let leaf = course.leaf();
            visit.routing.option = course.node().option.clone();
            visit.routing.deadline = leaf.total_timeout.map(|total| visit.request.started + total);
            client.end_by(visit.routing.deadline);
            visit.answer.pulse.every = leaf.heartbeat.filter(|_| takes_comments);
            visit.routing.prompt = request.prompt.as_ref().and_then(|call| call.run.clone());
            let tried = match &leaf.prompt_id {
                Some(reference) => {
                    let to = &mut reusable;
                    Box::pin(self.try_prompted(
                        client,
                        visit,
                        request,
                        leaf,
                        reference,
                        body,
                        guarded,
                        defaults.as_ref(),
                        to,
                    ))
                    .await
                }
                None => {
                    let passed = match self.guards_at(request, leaf, defaults.as_ref()) {
                        None => Ok((None, None)),
                        Some(set) => {
                            let (read, headers) = (ReadBody { text: body, fields }, &client.head().headers);
                            self.pass_guards(headers, visit, request, leaf, read, body, set, guarded).await
                        }
                    };
                    match passed {
                        Ok((along, None)) => {
                            self.try_target(client, visit, request, leaf, body, fields, along, &mut reusable).await
                        }
                        Ok((along, Some(changed))) => {
                            let to = &mut reusable;
                            Box::pin(self.try_changed(client, visit, request, leaf, changed, along, to)).await
                        }
                        Err(denied) => *denied,
                    }
                }
            };
            // A kept answer says nothing of its target, and there is none to go on from.
            if matches!(tried, Err(Ended::ClientGone) | Ok(HeldAnswer { is_hit: true, .. })) {
                return tried;
            }
            let outcome = outcome(&tried, visit.routing.deadline);
            let facts = known(request, fields, client.head());
            let next = course.after(&outcome, &mut moment(facts, &request.caller, &mut rand::random::<f64>));
            let retries_so_far = std::mem::replace(&mut visit.routing.retries, course.retry_count());
            let provider = visit.routing.provider_number;
            // An answer that is delivered is counted on its way.
            if matches!((&next, &tried), (Ok(AfterAttempt::Deliver), Ok(_))) {
                return tried;
            }
            let paid = paid(&tried);
            paid.iter().for_each(|paid| visit.pays(paid));
            let wait = match next.map_err(refused)? {
                AfterAttempt::Deliver => return tried,
                AfterAttempt::Again(wait) => {
                    self.metrics.retried(provider);
                    if paid.is_some_and(|paid| !paid.is_error) {
                        // What was paid has a record of its own, also where the same target is tried again.
                        let of_next = std::mem::replace(&mut visit.routing.retries, retries_so_far);
                        visit.set_aside(outcome.status, code(&tried), held(&tried));
                        visit.routing.retries = of_next;
                    }
                    wait
                }
                AfterAttempt::Elsewhere => {
                    self.metrics.left(provider);
                    if let Err(Ended::Failed(failure)) = &tried {
                        visit.routing.passes_over(&failure.refusal);
                    }
                    let of_next = std::mem::replace(&mut visit.routing.retries, course.retries_before());
                    visit.set_aside(outcome.status, code(&tried), held(&tried));
                    visit.routing.retries = of_next;
                    Duration::ZERO
                }
            };
            self.calls.set_aside(provider, tried.map_err(NotCalled::Ended));
            self.admit_again(visit, request).await.map_err(refused)?;
            if !wait.is_zero() {
                with_heartbeats(client, visit, Box::pin(tokio::time::sleep(wait))).await?;
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a target, a request, what hooks said of it and what was written for it"
    )]
    pub(super) async fn try_target<'e>(
        &'e self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        request: &EngineRequest,
        leaf: &Leaf,
        body: &Bytes,
        fields: &Fields<'_>,
        guarded: Option<&Arc<GuardedCall>>,
        reusable: &mut Option<Box<ReusableTranslation<'e>>>,
    ) -> Result<HeldAnswer, Ended> {
        let mut asked_for = requested_model(leaf, fields);
        let names_none = asked_for.is_none();
        let endpoint = request.endpoint;
        let family = endpoint.family();
        let resolved;
        let (target, model) = match &request.first {
            Some(target) => {
                asked_for = asked_for.or_else(|| default_model(target, family, leaf, fields));
                (target, None)
            }
            None => {
                let headers = GatewayHeaders::from_headers(&client.head().headers, &self.aliases).map_err(refused)?;
                let headers = headers.or_provider(visit.routing.prompt_provider());
                let resolver = self.router.resolver(Utc::now());
                let resolve = |model: Option<&str>| resolver.resolve(leaf, &headers, &request.caller, model);
                let mut found = resolve(asked_for.as_deref()).map_err(refused)?;
                if names_none && let Some(model) = default_model(&found.target, family, leaf, fields) {
                    // Whether it may be used is asked as for any other.
                    found = resolve(Some(&model)).map_err(refused)?;
                    asked_for = Some(model);
                }
                resolved = found;
                (&resolved.target, resolved.model.as_deref())
            }
        };
        visit.routing.provider = Some(target.provider.label.clone());
        let named = model.or(asked_for.as_deref());
        let tenant = request.caller.tenant();
        let learnt = match target.provider.row.inference_profiles {
            None => None,
            Some(_) => {
                let deadline = visit.routing.deadline;
                with_heartbeats(client, visit, Box::pin(self.foundation.learn(target, named, tenant, deadline))).await?
            }
        };
        let target = learnt.as_deref().unwrap_or(target);
        visit.turn_to(target, named);
        let read = ReadBody { text: body, fields };
        let turn = Turn::for_target(target, &request.caller.workspace, request.batch.is_some());
        // What a person pays for is nobody else's answer.
        let caching = self.caching(visit, request, leaf, fields, guarded).filter(|_| target.own_bearer.is_none());
        let mut permit = None;
        let (mut has_entered, mut is_early) = (caching.is_none(), false);
        if has_entered {
            permit = self.enter_target(client, visit, request, leaf, (target, named), read, turn).await?;
        }
        let mut edited = leaf.edits.apply(body, fields, target.deployment().or(model));
        if names_none && let Some(named) = named {
            edited = with_model(&edited, named);
        }
        let row = &target.provider.row;
        if is_counted_here(row, endpoint, named.unwrap_or_default()) {
            let model = named.unwrap_or_default().to_owned();
            let counted = Box::pin(estimated_count(endpoint, tenant, model, edited, fields)).await;
            let (source, body) = counted.map_err(refused)?;
            let mut steps = Steps::default();
            steps.begin(source.head(), false);
            let held = HeldStart::Plain(body);
            return Ok(HeldAnswer {
                source,
                held,
                steps,
                waited: Duration::ZERO,
                permit: None,
                keeper: None,
                is_hit: true,
            });
        }
        let is_native = endpoint.native_route().is_some();
        let betas = request.meant.betas_outside_header(target);
        let is_reusable =
            reusable.as_ref().is_some_and(|reusable| reusable.is_for(&visit.routing.option, target, named, body));
        if !is_reusable {
            // What was written for another is given back first.
            *reusable = None;
        }
        if !is_reusable && (is_native || row.native_path(family).is_none()) {
            let request_id = visit.id().to_owned();
            let asked = TranslationInputs {
                endpoint,
                target,
                body: &edited,
                model: named,
                user: fields.text("user"),
                is_strict: request.is_strict && leaf.is_strict,
                capabilities: self.admitter.capabilities(target, named),
                anthropic_version: request.meant.anthropic_version(target),
                betas: &betas,
                request_id: &request_id,
                deadline: visit.routing.deadline,
            };
            let mut read_request = Box::new(self.read_to_translate(&asked, tenant).map_err(refused)?);
            // Nothing is fetched for a request that its limits refuse.
            if caching.is_some() && read_request.fetches_media() {
                is_early = !visit.observer.is_attempt_admitted();
                let entering = self.enter_target(client, visit, request, leaf, (target, named), read, turn);
                permit = Box::pin(entering).await?;
                has_entered = true;
            }
            let translating = Box::pin(self.translate(&asked, *read_request));
            let written = with_heartbeats(client, visit, translating).await?.map_err(refused)?;
            let option = &visit.routing.option;
            *reusable = written.map(|written| Box::new(ReusableTranslation::new(written, option, target, named, body)));
        }
        let translated = reusable.as_deref().map(ReusableTranslation::call);
        match translated {
            Some(translated) => visit.drops(&translated.dropped),
            None if family == Family::Chat && !row.repairs.is_empty() => {
                let (mended, mut dropped) = repaired(&edited, &row.repairs);
                dropped.extend(betas::left_out(&betas));
                visit.drops(&dropped);
                edited = mended;
            }
            None if betas.is_empty() => {}
            None => visit.drops(betas::left_out(&betas).as_slice()),
        }
        let chosen = target;
        let moved = match translated.and_then(|translated| translated.base_url.as_deref()) {
            Some(url) => self.router.at_address(target, url).map_err(refused)?,
            None => None,
        };
        let target = moved.as_ref().unwrap_or(target);
        let sent = translated.map_or(&edited, |translated| &translated.body);
        let mut keeper = None;
        if let Some(caching) = caching {
            let asked = LookUp {
                request,
                leaf,
                target,
                model: named,
                translated,
                edited: &edited,
                sent,
                fields,
                guarded,
                caching,
            };
            match Box::pin(self.look_up(client, visit, asked)).await? {
                LookedUp::Hit(answer) => {
                    if is_early {
                        visit.observer.give_attempt_back();
                    }
                    return Ok(*answer);
                }
                LookedUp::Miss(own) => keeper = own,
            }
            if !has_entered {
                let entering = self.enter_target(client, visit, request, leaf, (chosen, named), read, turn);
                permit = Box::pin(entering).await?;
            }
        }
        let is_countable = matches!(family, Family::Chat | Family::Complete)
            && fields.is_true("stream")
            && row.has_stream_usage
            && !is_native
            && translated.is_none_or(|translated| translated.back.is_none())
            && visit.observer.log.is_some();
        let asking = is_countable.then(|| stream_options::asking(sent)).flatten();
        let json = asking.as_ref().unwrap_or(sent);
        let form = request.form.as_ref().map(|form| form.edited(json));
        let is_form = translated.is_some_and(|translated| translated.content_type.is_some());
        let asked = Instant::now();
        let call = Call {
            endpoint,
            meant: &request.meant,
            leaf,
            target,
            wire: translated.map_or(WireDialect::of_family(family), |translated| translated.wire),
            frames: request.frames(),
            translated,
            body: form.as_ref().unwrap_or(json),
            edited: (form.is_none() && !is_form).then_some(sent),
            asks_usage: asking.is_some(),
            deadline: visit.routing.deadline,
            request_id: visit.request.uuid(),
            asked,
            turn: turn.as_ref(),
            guarded,
            needs_whole: visit.request.includes_cost,
            room: self.body_limits.owner(&request.caller.workspace),
        };
        visit.leaves().map_err(refused)?;
        let mut called = self.calls.call_or_redial(client, visit, call, permit).await;
        if let Ok(answer) = &mut called {
            answer.keeper = keeper;
        }
        visit.routing.upstream += match &called {
            Ok(answer) => {
                self.metrics.provider_answers(target.provider.number, answer.waited);
                answer.waited
            }
            Err(_) => asked.elapsed(),
        };
        if let (Some(hedge), Ok(_)) = (&leaf.hedge, &called) {
            hedge.learn(asked.elapsed());
        }
        called
    }

    /// Asks the limits of a target, gathers its credential and waits for its turn. What is kept needs none of this.
    #[expect(clippy::too_many_arguments, reason = "a target, a request, and how it is read")]
    async fn enter_target(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        request: &EngineRequest,
        leaf: &Leaf,
        (target, model): (&Target, Option<&str>),
        read: ReadBody<'_>,
        turn: Option<Turn<'_>>,
    ) -> Result<Option<Permit>, Ended> {
        if request.is_cancelled() {
            return Err(refused(Refusal::batch_cancelled()));
        }
        let is_admitted = visit.observer.is_attempt_admitted();
        self.admit_target(client.head(), visit, request, (target, model), read, Some(&leaf.edits))
            .await
            .map_err(refused)?;
        if target.awaits_secrets() {
            with_heartbeats(client, visit, Box::pin(self.calls.secrets.gather(target))).await?.map_err(refused)?;
        }
        let Some(turn) = turn else { return Ok(None) };
        let taken = Box::pin(self.calls.take_turn(turn, visit.routing.deadline));
        let mut taken = with_heartbeats(client, visit, taken).await?;
        if request.is_cancelled() {
            taken = Err(Refusal::batch_cancelled());
        }
        match taken {
            Ok(permit) => Ok(Some(permit)),
            Err(refusal) => {
                if !is_admitted {
                    visit.observer.give_attempt_back();
                }
                Err(refused(refusal))
            }
        }
    }
}

/// What conditions may ask about.
fn known<'f>(request: &'f EngineRequest, fields: &'f Fields<'f>, head: &'f RequestHeader) -> RequestFacts<'f> {
    RequestFacts { metadata: &request.metadata, params: fields, pathname: head.uri.path() }
}

/// The model that the provider gets where neither the caller nor the config says anything of one.
fn default_model(target: &Target, family: Family, leaf: &Leaf, fields: &Fields<'_>) -> Option<Cow<'static, str>> {
    let default = target.provider.row.default_model(family)?;
    let is_open = fields.get("model").is_none() && !leaf.edits.decide("model");
    is_open.then(|| Cow::Owned(default.to_owned()))
}

/// The model as the target will be asked for it: its own, else the caller's.
fn requested_model<'f>(leaf: &'f Leaf, fields: &Fields<'f>) -> Option<Cow<'f, str>> {
    match leaf.edits.model() {
        Some(json) => serde_json::from_str::<String>(json).ok().map(Cow::Owned),
        None => fields.text("model"),
    }
}
