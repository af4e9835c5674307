//! Files and batches of a provider, asked for without a client: by whoever runs a managed batch there. Which provider it is is
//! said by headers, as a client would say it; files pass in pieces, both ways.

use super::ProviderObjects;
use super::provider_objects::{FileFields, ObjectAnswer, ObjectCaller, files_place};
use crate::catalog::signing::SignedBody;
use crate::catalog::target::Target;
use crate::context::Visit;
use crate::context::metrics::Metrics;
use crate::context::metrics::Outcome;
use crate::engine::answer::error_in_openai_form;
use crate::engine::prepare::{ProviderHeaders, upstream_head};
use crate::engine::translate::refusal;
use crate::engine::{BodyLimits, Planner, ProviderCalls, Router, Services};
use crate::identity::identify::Principal;
use crate::net::dial::{Class, PieceSource, Upstream, UpstreamError, UpstreamRequest};
use crate::relay::relayed_place::relayed_place;
use crate::request::headers::Aliases;
use crate::request::headers::GatewayHeaders;
use crate::request::receive::MemoryShare;
use crate::request::refusal::Refusal;
use crate::routing::plan::{Leaf, Plan};
use crate::snapshot::SavedConfig;
use crate::wire::codecs::jobs;
use crate::wire::codecs::jobs::{AskedJob, JobAnswer, JobCodec, JobReply, JobVerb, UploadedFile};
use bytes::Bytes;
use chrono::Utc;
use http::{HeaderValue, Method, header};
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use shared::providers::{Family, Way};
use std::sync::Arc;
use std::time::Duration;

/// Between two pieces of a file, either way.
const STALL: Duration = Duration::from_secs(60);
/// From the last byte of an upload to the answer.
const ANSWER: Duration = Duration::from_secs(120);

/// A provider's account, and how it is asked.
pub(crate) struct JobTarget {
    pub target: Target,
    /// The model, as the provider calls it.
    pub model: String,
    pub caller: Principal,
    pub metadata: Map<String, Value>,
    pub config: Option<Arc<SavedConfig>>,
    plan: Arc<Plan>,
    /// Which of its leaves.
    place: usize,
    /// Stands for a client's.
    head: RequestHeader,
}

impl JobTarget {
    pub fn leaf(&self) -> Option<&Leaf> {
        self.plan.leaves().nth(self.place)
    }

    /// What its rows name: the account may have a deployment of the model.
    pub fn sent_model(&self) -> &str {
        self.target.placed("deployment").filter(|name| *name != "{model}").unwrap_or(&self.model)
    }

    /// None where batches are OpenAI's own.
    pub fn codec(&self) -> Option<&'static dyn JobCodec> {
        match self.target.provider.row.way(Family::Batches, "") {
            Some(Way::Mapped(wire)) => jobs::by_name(&wire.codec),
            _ => None,
        }
    }
}

/// How lines of a batch's answers are read.
pub(crate) struct OutputForm {
    codec: &'static dyn JobCodec,
    asked: AskedJob,
}

impl OutputForm {
    /// A line as OpenAI's files have it, of this number from 0.
    pub fn row(&self, number: usize, reply: &Value) -> Value {
        self.codec.output_row(&self.asked, number, reply)
    }
}

/// A question about what a provider keeps.
pub(crate) struct JobQuestion {
    pub family: Family,
    pub verb: JobVerb,
    /// As the provider's object has it.
    pub id: String,
    /// By what a page of a list is asked for that is not the first.
    pub after: Option<String>,
    pub body: Map<String, Value>,
    pub file: Option<UploadedFile>,
    /// The same for a question that is asked again: what it makes is made once, where the provider cares.
    pub request_id: String,
}

/// Asks for files and batches of a provider without a client.
pub struct ProviderJobs {
    metrics: Arc<Metrics>,
    aliases: Arc<Aliases>,
    body_limits: Arc<BodyLimits>,
    planner: Arc<Planner>,
    router: Arc<Router>,
    calls: Arc<ProviderCalls>,
    objects: Arc<ProviderObjects>,
}

impl ProviderJobs {
    pub fn new(services: &Services, objects: Arc<ProviderObjects>) -> Self {
        let Services { metrics, aliases, body_limits, planner, router, calls, .. } = services.clone();
        Self { metrics, aliases, body_limits, planner, router, calls, objects }
    }

    /// The first target of the plan that the headers of `head` name which can be asked for this model.
    pub(crate) fn job_target(
        &self,
        caller: &Principal,
        head: RequestHeader,
        model: &str,
    ) -> Result<JobTarget, Refusal> {
        let headers = GatewayHeaders::from_headers(&head.headers, &self.aliases)?;
        let metadata = self.planner.metadata(&headers, &head.headers, caller)?;
        let found = self.planner.find(&headers, caller)?;
        let resolver = self.router.resolver(Utc::now());
        let mut refused = None;
        for (place, leaf) in found.plan.leaves().enumerate() {
            let kind = (Some((Family::Batches, "")), &Method::POST);
            self.router.guards.judge_kind(leaf, caller, kind, &metadata, &mut Visit::begin())?;
            let insisted = leaf.edits.model().and_then(|json| serde_json::from_str::<String>(json).ok());
            let asked_model = insisted.unwrap_or_else(|| model.to_owned());
            match resolver.resolve(leaf, &headers, caller, Some(&asked_model)) {
                Err(refusal) => refused = refused.or(Some(refusal)),
                Ok(resolved) => {
                    let model = resolved.model.unwrap_or(asked_model);
                    let target = resolved.target;
                    let plan = found.plan.clone();
                    let (caller, config) = (caller.clone(), found.saved.clone());
                    return Ok(JobTarget { target, model, caller, metadata, config, plan, place, head });
                }
            }
        }
        Err(refused.unwrap_or_else(Refusal::missing_provider))
    }

    pub(crate) async fn ask_job(&self, job: &JobTarget, question: JobQuestion) -> Result<ObjectAnswer, Refusal> {
        let family = question.family;
        let (codec, asked) = self.asked_job(job, question).await?;
        let length = asked.file.as_ref().map_or(0, |file| file.bytes.len());
        let headers = GatewayHeaders::from_headers(&job.head.headers, &self.aliases)?;
        let config = job.leaf().map(|leaf| &leaf.placement);
        let caller = ObjectCaller { target: &job.target, family, head: &job.head, headers: &headers, config };
        let mut share = MemoryShare::none(&self.body_limits.memory, job.caller.tenant());
        // What is read of a file is rewritten, and both are held.
        share.grow(length.saturating_mul(2))?;
        Box::pin(self.objects.ask_provider_object(codec, Arc::new(asked), length, &caller, &mut share)).await
    }

    /// As `ask_job`, where the first question is all, and its body comes in pieces in place of what the codec wrote.
    pub(crate) async fn send_job(
        &self,
        job: &JobTarget,
        question: JobQuestion,
        length: usize,
        source: &mut impl PieceSource,
    ) -> Result<ObjectAnswer, Refusal> {
        let family = question.family;
        let (codec, asked) = self.asked_job(job, question).await?;
        let headers = GatewayHeaders::from_headers(&job.head.headers, &self.aliases)?;
        let config = job.leaf().map(|leaf| &leaf.placement);
        let caller = ObjectCaller { target: &job.target, family, head: &job.head, headers: &headers, config };
        let call = codec.ask(&asked).map_err(refusal)?;
        let (target, request) = self.objects.provider_object_request(&call, &caller, SignedBody::Unsigned).await?;
        let mut upstream = self.connect_job(&target).await?;
        upstream.send_pieces(&request, length, source).await.map_err(|error| broken(&target, &error))?;
        let (status, body) = short_answer(&target, upstream).await?;
        let provider = &target.provider.name;
        self.metrics.attempt(target.provider.number, status, Outcome::Answered);
        if !(200..300).contains(&status) {
            let body = error_in_openai_form(status, body, provider);
            return Ok(ObjectAnswer { status, kind: "application/json", body });
        }
        let read = codec.read(&asked, 0, &JobReply { length: None, body });
        match read.map_err(|error| Refusal::invalid_upstream_response(provider, error))? {
            JobAnswer::Json(object) => {
                Ok(ObjectAnswer { status: 200, kind: "application/json", body: Bytes::from(object.to_string()) })
            }
            JobAnswer::Bytes(..) | JobAnswer::Ask(_) | JobAnswer::Refused(_) => Err(Refusal::internal()),
        }
    }

    /// The file of a batch's answers where it is in a form of its own, to be read; or what the provider said instead.
    pub(crate) async fn open_job_output(
        &self,
        job: &JobTarget,
        question: JobQuestion,
    ) -> Result<Result<(Upstream, OutputForm), ObjectAnswer>, Refusal> {
        let family = question.family;
        let (codec, asked) = self.asked_job(job, question).await?;
        let headers = GatewayHeaders::from_headers(&job.head.headers, &self.aliases)?;
        let config = job.leaf().map(|leaf| &leaf.placement);
        let caller = ObjectCaller { target: &job.target, family, head: &job.head, headers: &headers, config };
        let mut share = MemoryShare::none(&self.body_limits.memory, job.caller.tenant());
        let provider = &job.target.provider.name;
        let mut call = codec.ask(&asked).map_err(refusal)?;
        for step in 0..codec.questions_before_output() {
            let reply = self.objects.ask_once(call, &caller, jobs::MAX_OBJECT, &mut share).await?;
            self.metrics.attempt(job.target.provider.number, reply.status, Outcome::Answered);
            if !(200..300).contains(&reply.status) {
                let body = error_in_openai_form(reply.status, reply.body, provider);
                return Ok(Err(ObjectAnswer { status: reply.status, kind: "application/json", body }));
            }
            let read = codec.read(&asked, step, &JobReply { length: reply.length, body: reply.body });
            call = match read.map_err(|error| Refusal::invalid_upstream_response(provider, error))? {
                JobAnswer::Ask(next) => next,
                JobAnswer::Refused(why) => return Err(Refusal::invalid_parameter(why, "id")),
                JobAnswer::Json(_) | JobAnswer::Bytes(..) => return Err(Refusal::internal()),
            };
        }
        let (target, request) =
            self.objects.provider_object_request(&call, &caller, SignedBody::Whole(&call.body)).await?;
        let mut upstream = self.connect_job(&target).await?;
        upstream.send(request, call.body).await.map_err(|error| broken(&target, &error))?;
        upstream.read_head().await.map_err(|error| broken(&target, &error))?;
        Ok(Ok((upstream, OutputForm { codec, asked })))
    }

    async fn asked_job(
        &self,
        job: &JobTarget,
        question: JobQuestion,
    ) -> Result<(&'static dyn JobCodec, AskedJob), Refusal> {
        let JobQuestion { family, verb, id, after, body, file, request_id } = question;
        self.calls.secrets.gather(&job.target).await?;
        let (_, place) = self.job_place(job, family, family.path())?;
        // Ids of what is kept in a form of its own are escaped where clients see them.
        let (codec, id) = match job.target.provider.row.way(family, "") {
            Some(Way::Mapped(wire)) => {
                (jobs::by_name(&wire.codec).ok_or_else(Refusal::internal)?, jobs::unescaped(&id))
            }
            _ => (jobs::NATIVE_BATCHES, id),
        };
        let headers = GatewayHeaders::from_headers(&job.head.headers, &self.aliases)?;
        let fields = FileFields { config: job.leaf().map(|leaf| &leaf.placement), headers: &headers };
        let asked = AskedJob {
            verb,
            id,
            limit: Some(100),
            after,
            place,
            files: files_place(&job.target),
            provider: job.target.provider.name.clone(),
            body,
            file,
            model: Some(job.model.clone()),
            file_name: fields.file_name(),
            request_id,
            now: u64::try_from(Utc::now().timestamp()).unwrap_or(0),
            placed: job.target.placed.clone(),
        };
        Ok((codec, asked))
    }

    /// A file of OpenAI's own interface, piece by piece. The provider's answer, whatever it is.
    pub(crate) async fn upload_job_file(
        &self,
        job: &JobTarget,
        content_type: &str,
        length: usize,
        source: &mut impl PieceSource,
    ) -> Result<(u16, Bytes), Refusal> {
        let (target, place) = self.job_place(job, Family::Files, Family::Files.path())?;
        let mut request = self.job_head(job, &target, &place).await?;
        let kind = HeaderValue::try_from(content_type).map_err(|_| Refusal::internal())?;
        request.put(header::CONTENT_TYPE, kind);
        let mut upstream = self.connect_job(&target).await?;
        upstream.send_pieces(&request, length, source).await.map_err(|error| broken(&target, &error))?;
        short_answer(&target, upstream).await
    }

    /// The bytes of a file of OpenAI's own interface, to be read; the answer may also be a refusal.
    pub(crate) async fn open_job_file(&self, job: &JobTarget, id: &str) -> Result<Upstream, Refusal> {
        let (target, place) = self.job_place(job, Family::Files, &format!("/files/{}/content", jobs::escaped(id)))?;
        let mut request = self.job_head(job, &target, &place).await?;
        request.method = Method::GET;
        request.remove(&header::CONTENT_TYPE);
        let mut upstream = self.connect_job(&target).await?;
        upstream.send(request, Bytes::new()).await.map_err(|error| broken(&target, &error))?;
        upstream.read_head().await.map_err(|error| broken(&target, &error))?;
        Ok(upstream)
    }

    /// Deletes a file, and tells the status of the answer.
    pub(crate) async fn delete_job_file(&self, job: &JobTarget, question: JobQuestion) -> Result<u16, Refusal> {
        if matches!(job.target.provider.row.way(Family::Files, ""), Some(Way::Mapped(_))) {
            return self.ask_job(job, question).await.map(|answer| answer.status);
        }
        let (target, place) = self.job_place(job, Family::Files, &format!("/files/{}", jobs::escaped(&question.id)))?;
        let mut request = self.job_head(job, &target, &place).await?;
        request.method = Method::DELETE;
        request.remove(&header::CONTENT_TYPE);
        let mut upstream = self.connect_job(&target).await?;
        upstream.send(request, Bytes::new()).await.map_err(|error| broken(&target, &error))?;
        short_answer(&target, upstream).await.map(|(status, _)| status)
    }

    /// Where it is asked for what this path means.
    fn job_place(&self, job: &JobTarget, family: Family, path: &str) -> Result<(Target, String), Refusal> {
        let row = job.target.provider.row.clone();
        let base = row.base(family).filter(|_| !matches!(row.way(family, ""), Some(Way::Mapped(_))));
        let target = self.router.at_base(job.target.clone(), base)?;
        let place = relayed_place(&target, path, &job.head, Some(&job.model))?;
        Ok((target, place.path_and_query))
    }

    async fn job_head(&self, job: &JobTarget, target: &Target, place: &str) -> Result<UpstreamRequest, Refusal> {
        let headers = GatewayHeaders::from_headers(&job.head.headers, &self.aliases)?;
        self.calls.secrets.gather(target).await?;
        let meant = ProviderHeaders::from_headers(&headers);
        let (mut request, unsigned) = upstream_head(target, place, &job.head, &meant, None, &self.aliases)?;
        if let Some(credential) = unsigned {
            Box::pin(self.calls.authorise(target, &credential, &mut request, &[])).await?;
        }
        Ok(request)
    }

    async fn connect_job(&self, target: &Target) -> Result<Upstream, Refusal> {
        let connected = self.calls.dialer.connect(&target.origin, true).await;
        let mut upstream = connected.map_err(|error| match error.class() {
            Class::Blocked => Refusal::invalid_custom_host(&error),
            _ => Refusal::upstream_unreachable(&target.provider.name, &error),
        })?;
        upstream.set_timeouts(ANSWER, STALL);
        Ok(upstream)
    }
}

/// Status and body of an answer that is no file.
async fn short_answer(target: &Target, mut upstream: Upstream) -> Result<(u16, Bytes), Refusal> {
    let broken = |error: UpstreamError| broken(target, &error);
    upstream.read_head().await.map_err(broken)?;
    let status = upstream.head().status.as_u16();
    let mut body = Vec::new();
    while let Some(piece) = upstream.read_body().await.map_err(broken)? {
        if body.len() + piece.len() > jobs::MAX_OBJECT {
            return Err(Refusal::invalid_upstream_response(&target.provider.name, "its answer is too long"));
        }
        body.extend_from_slice(&piece);
    }
    upstream.release();
    Ok((status, Bytes::from(body)))
}

fn broken(target: &Target, error: &UpstreamError) -> Refusal {
    Refusal::upstream_unreachable(&target.provider.name, error.class().label())
}
