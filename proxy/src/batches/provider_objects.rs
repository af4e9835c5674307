//! Files, batches and jobs of providers that keep them in forms of their own: what a request for them means, and how its
//! answer comes about. Such a request is held whole, becomes a few questions (`wire::codecs::jobs`), and is answered in OpenAI's
//! objects. It has one target and is not tried again: what it makes would be made twice.

pub(crate) mod memory;

use super::BatchEndpoints;
use crate::catalog::models::upstream::{self, ProviderReply};
use crate::catalog::signing::SignedBody;
use crate::catalog::target::{Credential, Target};
use crate::context::Visit;
use crate::context::metrics::Metrics;
use crate::context::metrics::Outcome;
use crate::engine::answer::error_in_openai_form;
use crate::engine::prepare::{ProviderHeaders, upstream_head};
use crate::engine::translate::{fill, refusal};
use crate::engine::{BodyLimits, Delivered, ProviderCalls, Router, Services, refuse};
use crate::net::dial::UpstreamRequest;
use crate::net::downstream::Downstream;
use crate::relay::judge_relay::{AnswerVerdict, JudgedRequest, RelayAbout, RelayJudge, RelayedAnswer};
use crate::relay::passage::Passage;
use crate::relay::relayed_answer::{AnswerForm, is_json};
use crate::relay::{RelayAsk, RelayLane};
use crate::request::headers::Aliases;
use crate::request::headers::GatewayHeaders;
use crate::request::multipart::{Form, MAX_HELD};
use crate::request::off_thread::aside;
use crate::request::receive::{MemoryShare, NotReceived, receive};
use crate::request::refusal::Refusal;
use crate::routing::plan::FILES;
use crate::wire::codecs::jobs;
use crate::wire::codecs::jobs::{AskedJob, JobAnswer, JobCall, JobCodec, JobReply, JobVerb, MAX_OBJECT, UploadedFile};
use bytes::Bytes;
use chrono::Utc;
use http::{HeaderName, HeaderValue, Method, header};
use memory::{memory_of_answer, memory_of_fields, memory_of_rows};
use pingora_http::{RequestHeader, ResponseHeader};
use serde_json::{Map, Value};
use shared::config::Placement;
use shared::providers::{Family, Way};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How a file is encrypted in a bucket of S3, as clients and S3 call it.
const ENCRYPTION: [(&str, &str); 2] = [
    ("amz_server_side_encryption", "x-amz-server-side-encryption"),
    ("amz_server_side_encryption_aws_kms_key_id", "x-amz-server-side-encryption-aws-kms-key-id"),
];
/// Of what a batch wrote.
const MAX_FILE: usize = 64 << 20;
const MAX_QUESTIONS: usize = 4;
/// Different models in the rows of one batch.
const MAX_MODELS: usize = 64;

/// A request for what a provider keeps in a form of its own.
#[derive(Debug)]
pub struct ProviderObjectRequest {
    passage: Box<Passage>,
    family: Family,
    judge: Option<RelayJudge>,
}

/// Where a request goes that may be for such an object.
#[derive(Debug)]
pub enum ObjectStep {
    Object(Box<ProviderObjectRequest>),
    /// The target that was found keeps it in OpenAI's own form.
    Passage(Box<Passage>),
}

/// The families that providers keep.
pub fn provider_object_family(head: &RequestHeader, path: &str) -> Option<Family> {
    let (family, _) = Family::from_path(&head.method, path)?;
    matches!(family, Family::Files | Family::Batches | Family::FineTuning).then_some(family)
}

fn is_mapped(target: &Target, family: Family) -> bool {
    matches!(target.provider.row.way(family, ""), Some(Way::Mapped(_)))
}

/// Serves what providers keep in forms of their own.
pub struct ProviderObjects {
    pub(super) metrics: Arc<Metrics>,
    pub(super) aliases: Arc<Aliases>,
    pub(super) body_limits: Arc<BodyLimits>,
    pub(super) router: Arc<Router>,
    pub(super) calls: Arc<ProviderCalls>,
    pub(super) relay: Arc<RelayLane>,
    pub(super) batches: Arc<BatchEndpoints>,
}

impl ProviderObjects {
    pub fn new(services: &Services, relay: Arc<RelayLane>, batches: Arc<BatchEndpoints>) -> Self {
        let Services { metrics, aliases, body_limits, router, calls, .. } = services.clone();
        Self { metrics, aliases, body_limits, router, calls, relay, batches }
    }

    /// Whether a target of the request keeps this family in a form of its own.
    pub fn may_be_mapped(&self, ask: &RelayAsk, family: Family, headers: &GatewayHeaders<'_>) -> bool {
        let resolver = self.router.resolver(Utc::now());
        ask.plan.leaves().any(|leaf| {
            let resolved = resolver.resolve(leaf, headers, &ask.caller, None);
            resolved.is_ok_and(|resolved| is_mapped(&resolved.target, family))
        })
    }

    pub fn open(
        &self,
        family: Family,
        ask: RelayAsk,
        judge: Option<RelayJudge>,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<ObjectStep, Refusal> {
        let passage = Box::new(self.router.passage(ask, head, headers, visit)?);
        if is_mapped(&passage.target, family) {
            return Ok(ObjectStep::Object(Box::new(ProviderObjectRequest { passage, family, judge })));
        }
        if let Some(judge) = &judge {
            judge.check_unread("its target was chosen among several before the body was read")?;
        }
        let (_, caller, _) = passage.asked();
        match head.method == Method::POST && self.router.is_model_deciding(&passage.target, caller) {
            true => Err(Refusal::unknown_model("its target was chosen among several before the body was read")),
            false => Ok(ObjectStep::Passage(passage)),
        }
    }

    /// One exchange, from the body to the answer.
    pub async fn run(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        object: &mut ProviderObjectRequest,
    ) -> Delivered {
        match self.answer_provider_object(client, visit, object).await {
            Ok((answer, _share)) => match deliver(client, visit, answer).await {
                Ok(()) => Delivered::Answered,
                Err(_) => Delivered::ClientGone,
            },
            Err(NotReceived::Gone) => Delivered::ClientGone,
            Err(NotReceived::Refused(refusal)) => refuse(&self.metrics, client, visit, &refusal).await,
        }
    }

    async fn answer_provider_object(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        object: &mut ProviderObjectRequest,
    ) -> Result<(ObjectAnswer, MemoryShare<'_>), NotReceived> {
        let ProviderObjectRequest { passage, family, judge } = object;
        let judge = judge.as_ref();
        let (path, caller, _) = passage.asked();
        let tenant = caller.tenant();
        let rest = Family::from_path(&client.head().method, path).map_or("", |(_, rest)| rest).to_owned();
        let (verb, id) = jobs::verb(*family, &client.head().method, &rest).ok_or_else(|| {
            Refusal::endpoint_not_supported(&passage.target.provider.name, format!("it has no {}{rest}", family.path()))
        })?;
        let received = match client.head().method == Method::POST {
            true => Some(receive(client, &self.body_limits.bounds(MAX_HELD, tenant)).await?),
            false => None,
        };
        let bytes = received.as_ref().map(|received| received.bytes.clone()).unwrap_or_default();
        let head = client.head();
        let judged = match judge {
            Some(judge) => Box::pin(self.relay.judge_relayed(judge, passage.asked(), head, &bytes, visit)).await?,
            None => JudgedRequest::default(),
        };
        let mut share = MemoryShare::none(&self.body_limits.memory, tenant);
        let (fields, file) = split_body(head, &bytes)?;
        let is_upload = verb == JobVerb::Create && *family == Family::Files;
        let rows = file.as_ref().filter(|_| is_upload).map(|file| file.bytes.clone());
        let needed = aside(bytes.len(), {
            let fields = fields.clone();
            move || memory_of_fields(&fields) + rows.map_or(0, |rows| memory_of_rows(&rows))
        });
        share.grow(needed.await?)?;
        let body = aside(fields.len(), {
            let fields = fields.clone();
            move || read_fields(&fields)
        })
        .await??;
        if verb == JobVerb::Create
            && *family == Family::Batches
            && let Some(made) = self.batches.divert_creation(caller, head, &fields, &body).await?
        {
            let body = Bytes::from(made.to_string());
            return Ok((ObjectAnswer { status: 200, kind: "application/json", body }, share));
        }
        let headers = GatewayHeaders::from_headers(&head.headers, &self.aliases)?;
        let fields = FileFields { config: Some(&passage.leaf().placement), headers: &headers };
        let (file_name, model) = (fields.file_name(), fields.model());
        let makes_job = verb == JobVerb::Create && *family != Family::Files;
        passage.model = {
            let models = named_models(&body, model.as_deref())?;
            self.check_models(passage, &headers, &models, makes_job)?
        };
        self.relay.admit_passage(passage, head, visit).await?;
        let target = &passage.target;
        self.calls.secrets.gather(target).await?;
        let asked = AskedJob {
            verb,
            id,
            limit: query(head, "limit").and_then(|limit| limit.parse().ok()),
            after: query(head, "after"),
            place: passage.path_and_query.split('?').next().unwrap_or_default().to_owned(),
            files: files_place(target),
            provider: target.provider.name.clone(),
            body,
            file,
            model,
            file_name,
            request_id: visit.id().to_owned(),
            now: u64::try_from(Utc::now().timestamp()).unwrap_or(0),
            placed: target.placed.clone(),
        };
        let way = target.provider.row.way(*family, "");
        let codec = match way {
            Some(Way::Mapped(wire)) => jobs::by_name(&wire.codec),
            _ => None,
        };
        let codec = codec.ok_or_else(Refusal::internal)?;
        let config = &passage.leaf().placement;
        let caller = ObjectCaller { target, family: *family, head, headers: &headers, config: Some(config) };
        let answer = self.ask_provider_object(codec, Arc::new(asked), bytes.len(), &caller, &mut share).await?;
        if let Some(judge) = judge {
            Box::pin(self.check_object_answer(judge, passage.asked(), head, &judged, &answer, visit)).await?;
        }
        Ok((answer, share))
    }

    /// Refuses an answer that guardrails deny, or must judge and cannot.
    async fn check_object_answer(
        &self,
        judge: &RelayJudge,
        about: RelayAbout<'_>,
        head: &RequestHeader,
        request: &JudgedRequest,
        answer: &ObjectAnswer,
        visit: &mut Visit,
    ) -> Result<(), Refusal> {
        if !judge.reads_answer || !(200..300).contains(&answer.status) {
            return Ok(());
        }
        if !is_json(answer.kind.as_bytes()) {
            return judge.check_answer("it is no JSON");
        }
        let (body, form) = (answer.body.clone(), AnswerForm::Json);
        let answer = RelayedAnswer { body, form, encoding: None, status: answer.status };
        match self.relay.judge_relayed_answer(judge, about, head, request, answer, visit).await? {
            AnswerVerdict::Passes(_) => Ok(()),
            AnswerVerdict::Refused(refusal, _) => Err(refusal),
        }
    }

    /// Question after question, until there is an answer. `length` is that of the request.
    pub(super) async fn ask_provider_object(
        &self,
        codec: &'static dyn JobCodec,
        asked: Arc<AskedJob>,
        length: usize,
        caller: &ObjectCaller<'_>,
        share: &mut MemoryShare<'_>,
    ) -> Result<ObjectAnswer, Refusal> {
        let target = caller.target;
        let provider = &target.provider.name;
        let longest = match asked.verb {
            JobVerb::Content | JobVerb::Output => MAX_FILE,
            _ => MAX_OBJECT,
        };
        let asking = asked.clone();
        let mut call = aside(length, move || codec.ask(&asking)).await?.map_err(refusal)?;
        for step in 0..MAX_QUESTIONS {
            let reply = self.ask_once(call, caller, longest, share).await?;
            self.metrics.attempt(target.provider.number, reply.status, Outcome::Answered);
            let length = reply.body.len();
            if !(200..300).contains(&reply.status) {
                if length > MAX_OBJECT {
                    return Err(Refusal::invalid_upstream_response(provider, "its error is too long"));
                }
                share.grow(memory_of_answer(&reply.body))?;
                let (status, provider) = (reply.status, provider.clone());
                let error = move || error_in_openai_form(status, reply.body, &provider);
                return Ok(ObjectAnswer { status, kind: "application/json", body: aside(length, error).await? });
            }
            if asked.verb != JobVerb::Content {
                let body = reply.body.clone();
                share.grow(aside(length, move || memory_of_answer(&body)).await?)?;
            }
            let reply = JobReply { length: reply.length, body: reply.body };
            let reading = asked.clone();
            let answer = aside(length, move || codec.read(&reading, step, &reply).map(written)).await?;
            match answer.map_err(|error| Refusal::invalid_upstream_response(provider, error))? {
                // `written` leaves none of these.
                JobAnswer::Json(_) => return Err(Refusal::internal()),
                JobAnswer::Bytes(kind, body) => return Ok(ObjectAnswer { status: 200, kind, body }),
                JobAnswer::Ask(next) => call = next,
                JobAnswer::Refused(why) => return Err(Refusal::invalid_parameter(why, "id")),
            }
        }
        Err(Refusal::internal())
    }

    pub(super) async fn ask_once(
        &self,
        call: JobCall,
        caller: &ObjectCaller<'_>,
        longest: usize,
        share: &mut MemoryShare<'_>,
    ) -> Result<ProviderReply, Refusal> {
        let (target, request) = self.provider_object_request(&call, caller, SignedBody::Whole(&call.body)).await?;
        upstream::ask(&self.calls.dialer, &target, request, call.body, longest, share).await
    }

    /// What a codec asks, as it is sent, and where.
    pub(super) async fn provider_object_request(
        &self,
        call: &JobCall,
        caller: &ObjectCaller<'_>,
        body: SignedBody<'_>,
    ) -> Result<(Target, UpstreamRequest), Refusal> {
        let ObjectCaller { target, family, head, headers, config } = *caller;
        let of = if call.of_files { Family::Files } else { family };
        let target = self.router.at_base(target.clone(), target.provider.row.base(of))?;
        let meant = ProviderHeaders::from_headers(headers);
        let (mut request, unsigned) = upstream_head(&target, &call.place, head, &meant, None, &self.aliases)?;
        request.method = call.method.clone();
        request.remove(&header::CONTENT_TYPE);
        if let Some(kind) = call.content_type.as_deref() {
            request.put(header::CONTENT_TYPE, HeaderValue::try_from(kind).map_err(|_| Refusal::internal())?);
        }
        if of == Family::Files && request.method == Method::PUT {
            let fields = FileFields { config, headers };
            for (field, name) in ENCRYPTION {
                let value = fields.text(field).and_then(|value| HeaderValue::try_from(value).ok());
                value.into_iter().for_each(|value| request.put(HeaderName::from_static(name), value));
            }
        }
        if call.is_glance {
            request.put(header::RANGE, HeaderValue::from_static("bytes=0-0"));
        }
        if let Some(credential) = unsigned {
            // Bedrock's files are in S3.
            let credential = match of {
                Family::Files => (*credential).clone().at_aws_service("s3"),
                _ => (*credential).clone(),
            };
            Box::pin(self.calls.authorise_body(&target, &credential, &mut request, body)).await?;
        }
        Ok((target, request))
    }

    /// Refuses models that the target's account may not be asked for, and jobs of which nobody says what they ask where
    /// that matters. The first model is what limits of models are asked about.
    fn check_models(
        &self,
        passage: &Passage,
        headers: &GatewayHeaders<'_>,
        models: &BTreeSet<&str>,
        makes_job: bool,
    ) -> Result<Option<String>, Refusal> {
        let (_, caller, _) = passage.asked();
        if models.is_empty() && makes_job && self.router.is_model_deciding(&passage.target, caller) {
            return Err(Refusal::unknown_model("neither the body nor a header names one"));
        }
        let resolver = self.router.resolver(Utc::now());
        for model in models {
            let resolved = resolver.resolve(passage.leaf(), headers, caller, Some(model))?;
            if !is_same_account(&resolved.target, &passage.target) {
                let message = format!("`{model}` belongs to another account than the one that is asked");
                return Err(Refusal::invalid_parameter(message, "model"));
            }
        }
        Ok(models.first().map(|model| (*model).to_owned()))
    }
}

fn is_same_account(one: &Target, other: &Target) -> bool {
    match (&one.credential, &other.credential) {
        (Credential::Stored(one), Credential::Stored(other)) => one.integration.id == other.integration.id,
        (Credential::Given(_), Credential::Given(_)) => one.provider.name == other.provider.name,
        _ => false,
    }
}

/// Every model that a request names, wherever a codec looks for one.
fn named_models<'b>(body: &'b Map<String, Value>, in_header: Option<&'b str>) -> Result<BTreeSet<&'b str>, Refusal> {
    let rows = body.get("requests").and_then(Value::as_array).into_iter().flatten();
    let of_rows = rows.flat_map(|row| [row.pointer("/params/model"), row.pointer("/body/model")]).flatten();
    let below = body.get("provider_options").and_then(|options| options.get("model"));
    let named = body.get("model").into_iter().chain(below).chain(of_rows).filter_map(Value::as_str).chain(in_header);
    let mut models = BTreeSet::new();
    for model in named.filter(|model| !model.is_empty()) {
        models.insert(model);
        if models.len() > MAX_MODELS {
            return Err(Refusal::invalid_parameter(format!("a batch may have {MAX_MODELS} models"), "requests"));
        }
    }
    Ok(models)
}

/// An object as its text.
fn written(answer: JobAnswer) -> JobAnswer {
    match answer {
        JobAnswer::Json(object) => JobAnswer::Bytes("application/json", Bytes::from(object.to_string())),
        other => other,
    }
}

/// Who asks, and whom.
#[derive(Clone, Copy)]
pub(super) struct ObjectCaller<'k> {
    pub target: &'k Target,
    pub family: Family,
    pub head: &'k RequestHeader,
    pub headers: &'k GatewayHeaders<'k>,
    /// What the target of the config says of the provider.
    pub config: Option<&'k Placement>,
}

/// How files and batches are kept, by the names in `plan::FILES`: what the target says comes before what headers say.
pub(super) struct FileFields<'k> {
    pub config: Option<&'k Placement>,
    pub headers: &'k GatewayHeaders<'k>,
}

impl<'k> FileFields<'k> {
    /// The name under which an upload is kept.
    pub fn file_name(&self) -> Option<String> {
        self.either("provider_file_name", "aws_s3_object_key")
    }

    /// The model that rows are written for.
    fn model(&self) -> Option<String> {
        self.either("provider_model", "aws_bedrock_model")
    }

    /// Two names of one thing: a target's is before a header's, whichever each of them uses.
    fn either(&self, one: &str, other: &str) -> Option<String> {
        let in_config = |field: &str| self.config.and_then(|config| config.text(field));
        let in_config = in_config(one).or_else(|| in_config(other));
        in_config.or_else(|| self.text(one)).or_else(|| self.text(other)).map(str::to_owned)
    }

    fn text(&self, field: &str) -> Option<&'k str> {
        debug_assert!(FILES.contains(&field), "{field} is in the list");
        let in_config = self.config.and_then(|config| config.text(field));
        in_config.or_else(|| self.headers.placement(field))
    }
}

#[derive(Debug)]
pub(crate) struct ObjectAnswer {
    pub status: u16,
    pub kind: &'static str,
    pub body: Bytes,
}

async fn deliver(
    client: &mut impl Downstream,
    visit: &mut Visit,
    answer: ObjectAnswer,
) -> Result<(), crate::net::downstream::ClientGone> {
    let status = http::StatusCode::from_u16(answer.status).unwrap_or(http::StatusCode::BAD_GATEWAY);
    let mut head = ResponseHeader::build_no_case(status, Some(8)).expect("a status code is a status");
    let _ = head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static(answer.kind));
    let _ = head.insert_header(header::CONTENT_LENGTH, HeaderValue::from(answer.body.len()));
    visit.answer.status = status.as_u16();
    visit.stamp(&mut head);
    visit.answers(&head.headers);
    visit.ends_with(&answer.body);
    client.write_head(head).await?;
    client.write_body(answer.body, true).await
}

/// The fields of a body as JSON, and the file if it is a form.
fn split_body(head: &RequestHeader, bytes: &Bytes) -> Result<(Bytes, Option<UploadedFile>), Refusal> {
    Ok(match Form::from_request(&head.headers, bytes)? {
        Some(form) => (form.json().clone(), form.file().map(|(name, bytes)| UploadedFile { name, bytes })),
        None => (bytes.clone(), None),
    })
}

fn read_fields(fields: &[u8]) -> Result<Map<String, Value>, Refusal> {
    match fields.trim_ascii().is_empty() {
        true => Ok(Map::new()),
        false => serde_json::from_slice(fields).map_err(Refusal::invalid_json),
    }
}

fn query(head: &RequestHeader, name: &str) -> Option<String> {
    let pairs = url::form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes());
    let mut found = pairs.filter(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    found.next().filter(|value| !value.is_empty() && value.len() <= 2048)
}

/// Where the files of the account are; empty where nobody says.
pub(super) fn files_place(target: &Target) -> String {
    match target.provider.row.way(Family::Files, "") {
        Some(Way::Mapped(wire)) => fill(&wire.path, target, [""; 2], None).unwrap_or_default(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_of_files_says_a_name_a_model_or_an_encryption() {
        let headers = GatewayHeaders::default();
        for field in FILES {
            let config = json!({ "provider": "bedrock", "api_key": "k", *field: "said" });
            let limits = shared::config::ConfigLimits::default();
            let config = shared::config::parse_config(&config, shared::config::Strictness::Saved, &limits).unwrap();
            let fields = FileFields { config: Some(&config.placement), headers: &headers };
            let encryption = ENCRYPTION.iter().find_map(|(name, _)| fields.text(name)).map(str::to_owned);
            let values = [fields.file_name(), fields.model(), encryption];
            assert_eq!(values.iter().flatten().collect::<Vec<_>>(), ["said"], "{field}");
        }
    }

    #[test]
    fn models_are_found_wherever_a_codec_looks_for_them() {
        let body = json!({ "model": "a", "provider_options": { "model": "b" }, "requests": [
            { "params": { "model": "c" }, "body": { "model": "d" } }, { "body": { "model": "a" } }, { "params": {} }, 7,
        ] });
        let body = body.as_object().unwrap();
        let found: Vec<&str> = named_models(body, Some("e")).unwrap().into_iter().collect();
        assert_eq!(found, ["a", "b", "c", "d", "e"]);
        assert!(named_models(&Map::new(), Some("")).unwrap().is_empty());
        let rows: Vec<Value> = (0..=MAX_MODELS).map(|row| json!({ "params": { "model": row.to_string() } })).collect();
        let many = json!({ "requests": rows });
        assert!(named_models(many.as_object().unwrap(), None).is_err());
    }
}
