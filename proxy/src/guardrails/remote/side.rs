//! The hooks of one side with checks that others answer.

use super::super::hook::{CompiledCheck, CompiledHook, HookKind};
use super::super::meters::GuardMeters;
use super::super::run::{GuardInputs, SideResult, is_skipped, run_side_with, subject};
use super::RemoteAsker;
use super::answers::{Place, RemoteAnswers, RemoteVerdict, Wanted};
use crate::runtime::heavy::{SMALL, heavy};
use futures::future::join_all;
use http::HeaderMap;
use serde_json::{Map, Value};
use shared::guardrails::remote::{LONGEST_WAIT, Question, RemoteCheck, RemoteContext, RemoteFailure, scrubbed};
use shared::guardrails::{Hook, Shape, Subject, Verdict};
use shared::id::{OrganisationId, WorkspaceId};
use std::sync::Arc;
use std::time::Instant;

/// Who asks for a request, and what services may know of it besides its bodies.
pub struct RemoteSide {
    pub asker: Arc<dyn RemoteAsker>,
    pub organisation: OrganisationId,
    pub workspace: WorkspaceId,
    /// As the config names it.
    pub provider: String,
    pub trace_id: String,
    /// Of the client, as far as anybody may get them.
    pub headers: HeaderMap,
}

/// The run of one side, with all that it needs: it may be moved to another thread, and outlive whoever began it.
#[derive(Clone)]
pub struct SideJob {
    pub hooks: Vec<Arc<CompiledHook>>,
    pub hook: Hook,
    pub shape: Shape,
    pub request_type: &'static str,
    pub request: Arc<Value>,
    /// What is judged: the request or its answer.
    pub body: Arc<Value>,
    pub metadata: Arc<Map<String, Value>>,
    pub headers: Arc<HeaderMap>,
    /// In place of the body's own: of a stream, what it said.
    pub text: Option<Arc<str>>,
    /// Of the answer.
    pub status: Option<u16>,
    /// How many bytes are judged, about.
    pub size: usize,
    pub meters: Arc<GuardMeters>,
}

impl SideJob {
    fn inputs(&self) -> GuardInputs<'_> {
        GuardInputs {
            hook: self.hook,
            shape: self.shape,
            request_type: self.request_type,
            request: &self.request,
            metadata: &self.metadata,
            headers: &self.headers,
            text: self.text.as_deref(),
        }
    }

    /// Everybody is asked, and the hooks are run with what was said.
    /// None if a check broke off: then nothing was judged.
    pub async fn run(self, remote: Arc<RemoteSide>) -> Option<SideResult> {
        let job = Arc::new(self);
        let mut answers = RemoteAnswers::to_be_asked();
        for (place, said) in job.ask_together(&remote).await {
            answers.put(place, said);
        }
        // Each turn answers one check more, and each is asked twice at most.
        loop {
            let (side, used) = job.clone().turn(answers).await?;
            answers = used;
            let Some(Wanted { place, json }) = answers.take_wanted() else { return Some(side) };
            let check = job.check(place)?;
            let said = job.ask_one(check, &json, &remote, side.transformed.is_some()).await;
            answers.put(place, said);
        }
    }

    /// One run with what is known.
    async fn turn(self: Arc<Self>, mut answers: RemoteAnswers) -> Option<(SideResult, RemoteAnswers)> {
        let is_small = self.size <= SMALL;
        let work = move || {
            let side = run_side_with(&self.hooks, self.inputs(), &self.body, &self.meters, &mut answers);
            (side, answers)
        };
        match is_small {
            true => Some(work()),
            false => heavy(work).await,
        }
    }

    /// All that need not wait for another check.
    async fn ask_together(&self, remote: &RemoteSide) -> Vec<(Place, RemoteVerdict)> {
        let inputs = self.inputs();
        let mut asked = Vec::new();
        for (hook, compiled) in self.hooks.iter().enumerate() {
            let is_ordered = compiled.actions.is_sequential || compiled.kind == HookKind::Mutator;
            if is_ordered || is_skipped(compiled, inputs) || self.shape == Shape::Other {
                continue;
            }
            for (index, check) in compiled.checks.iter().enumerate().filter(|(_, check)| check.check.remote().is_some())
            {
                let place = Place { hook, check: index, is_again: false };
                asked.push(async move { (place, self.ask_one(check, &self.body, remote, false).await) });
            }
        }
        join_all(asked).await
    }

    fn check(&self, place: Place) -> Option<&CompiledCheck> {
        self.hooks.get(place.hook)?.checks.get(place.check)
    }

    /// One check about one body. A service that hangs is left at the check's deadline.
    async fn ask_one(
        &self,
        check: &CompiledCheck,
        body: &Value,
        remote: &RemoteSide,
        is_transformed: bool,
    ) -> RemoteVerdict {
        let began = Instant::now();
        let subject = subject(self.inputs(), body);
        let mut verdict = match check.check.remote() {
            Some(service) => self.ask_service(service, &subject, remote, is_transformed).await,
            None => check.check.run(&subject),
        };
        // A missing plugin lets pass, unless the check says that no error may.
        if verdict.error.is_some() && check.fails_on_error {
            verdict.verdict = false;
        }
        RemoteVerdict { verdict, took: began.elapsed() }
    }

    async fn ask_service(
        &self,
        service: &dyn RemoteCheck,
        subject: &Subject<'_>,
        remote: &RemoteSide,
        is_transformed: bool,
    ) -> Verdict {
        let deadline = Instant::now() + service.timeout().min(LONGEST_WAIT);
        let credentials = match service.plugin().map(|plugin| remote.asker.credentials(remote.organisation, plugin)) {
            None => None,
            Some(Ok(found)) => found,
            Some(Err(failure)) => return failure.verdict(),
        };
        let context = RemoteContext {
            credentials: credentials.as_ref(),
            provider: &remote.provider,
            headers: Some(&remote.headers),
            trace_id: &remote.trace_id,
            status: self.status,
            is_transformed,
        };
        let question = match service.ask(subject, &context) {
            Ok(question) => question,
            Err(verdict) => return *verdict,
        };
        let secrets: Vec<String> = match &question {
            Question::Calls(calls) => calls.iter().flat_map(|call| call.secrets()).collect(),
            Question::KeySet { .. } => Vec::new(),
        };
        drop(credentials);
        let asking = remote.asker.ask(remote.organisation, remote.workspace, question, deadline);
        // Whatever it is that does not keep to the deadline.
        let verdict = match tokio::time::timeout_at(deadline.into(), asking).await {
            Ok(Ok(answers)) => service.read(subject, &answers),
            Ok(Err(failure)) => failure.verdict(),
            Err(_) => RemoteFailure::TimedOut.verdict(),
        };
        scrubbed(verdict, &secrets)
    }
}
