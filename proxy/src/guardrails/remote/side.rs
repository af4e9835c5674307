//! The hooks of one side with checks that others answer.

use super::super::extracted_headers::with_changes;
use super::super::hook::{CompiledCheck, CompiledHook, HookKind};
use super::super::meters::GuardMeters;
use super::super::run::{GuardInputs, SideResult, is_skipped, run_side, run_side_with, subject};
use super::answers::{Place, RemoteAnswers, RemoteVerdict, Wanted};
use super::room::room;
use super::{ModelAsker, RemoteAsker};
use crate::runtime::heavy::{SMALL, heavy};
use crate::runtime::tenant_share::Tenant;
use chrono::Utc;
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt as _, TryFutureExt as _};
use http::HeaderMap;
use serde_json::{Map, Value};
use shared::guardrails::remote::{Answers, MAX_CHECKS, MAX_WAIT, Question, RemoteContext, RemoteFailure, scrubbed};
use shared::guardrails::{HeaderChange, Hook, Shape, Subject, Verdict};
use shared::model::id::{OrganisationId, WorkspaceId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who asks for a request, and what services may know of it besides its bodies.
#[derive(Clone)]
pub struct RemoteSide {
    pub asker: Arc<dyn RemoteAsker>,
    pub organisation: OrganisationId,
    pub workspace: WorkspaceId,
    /// Who asks models; none where that cannot be.
    pub models: Option<Arc<dyn ModelAsker>>,
    /// As the config names it.
    pub provider: String,
    pub trace_id: String,
    /// Of the client, as far as anybody may get them.
    pub headers: HeaderMap,
}

impl RemoteSide {
    /// The same with headers that checks made of what a token claims.
    #[must_use]
    pub fn with_extracted(&self, extracted: &[HeaderChange]) -> Self {
        Self { headers: with_changes(&self.headers, extracted).into_owned(), ..self.clone() }
    }

    pub fn tenant(&self) -> Tenant {
        Tenant { organisation: self.organisation.uuid(), workspace: self.workspace.uuid() }
    }

    fn ask(&self, question: Question, deadline: Instant) -> BoxFuture<'static, Result<Answers, RemoteFailure>> {
        match (question, &self.models) {
            (Question::Model(question), Some(models)) => {
                models.ask(question, deadline).map_ok(|answer| Answers::Calls(vec![answer])).boxed()
            }
            (question, _) => self.asker.ask(self.organisation, self.workspace, question, deadline),
        }
    }
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

/// What one check is asked about.
#[derive(Clone)]
struct AskedAbout {
    body: Arc<Value>,
    /// Headers that checks before it made of what a token claims.
    extracted: Arc<[HeaderChange]>,
    /// A check before it changed the body.
    is_transformed: bool,
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

    /// Where nobody else is asked.
    pub fn run_alone(&self) -> SideResult {
        run_side(&self.hooks, self.inputs(), &self.body, &self.meters)
    }

    /// Everybody is asked, and the hooks are run with what was said. None if a check broke off: then nothing was judged.
    pub async fn run(self, remote: Arc<RemoteSide>) -> Option<SideResult> {
        let job = Arc::new(self);
        let mut answers = RemoteAnswers::to_be_asked();
        for (place, answer) in job.ask_together(&remote).await? {
            answers.put(place, answer);
        }
        // Each turn answers one check more, and each is asked twice at most.
        loop {
            let (side, used) = job.clone().turn(answers, remote.tenant()).await?;
            answers = used;
            let Some(Wanted { place, json }) = answers.take_wanted() else { return Some(side) };
            let is_ordered = job.hooks.get(place.hook).is_some_and(|hook| is_ordered(hook));
            let about = AskedAbout {
                body: Arc::new(json),
                extracted: if is_ordered { side.extracted.into() } else { Arc::default() },
                is_transformed: side.transformed.is_some(),
            };
            let answer = job.ask_one(place, &about, &remote).await?;
            answers.put(place, answer);
        }
    }

    /// One run with what is known.
    async fn turn(self: Arc<Self>, mut answers: RemoteAnswers, tenant: Tenant) -> Option<(SideResult, RemoteAnswers)> {
        let size = self.size + answers.size();
        aside(tenant, size, move || {
            let side = run_side_with(&self.hooks, self.inputs(), &self.body, &self.meters, &mut answers);
            (side, answers)
        })
        .await
    }

    /// All that need not wait for another check.
    async fn ask_together(self: &Arc<Self>, remote: &Arc<RemoteSide>) -> Option<Vec<(Place, RemoteVerdict)>> {
        let about = AskedAbout { body: self.body.clone(), extracted: Arc::default(), is_transformed: false };
        let about = &about;
        let mut asked = Vec::new();
        for (hook, compiled) in self.hooks.iter().enumerate() {
            if is_ordered(compiled) || is_skipped(compiled, self.inputs()) || self.shape == Shape::Unread {
                continue;
            }
            let remote_checks = compiled.checks.iter().enumerate().filter(|(_, check)| check.check.remote().is_some());
            for (check, _) in remote_checks {
                let place = Place { hook, check, is_again: false };
                asked.push(async move { Some((place, self.ask_one(place, about, remote).await?)) });
            }
        }
        join_all(asked).await.into_iter().collect()
    }

    /// Whether so many others are asked before it that it is not.
    fn is_beyond(&self, place: Place) -> bool {
        let checks = self.hooks.iter().enumerate().flat_map(|(hook, compiled)| {
            let remote = compiled.checks.iter().enumerate().filter(|(_, check)| check.check.remote().is_some());
            remote.map(move |(check, _)| (hook, check))
        });
        checks.skip(MAX_CHECKS).take(1).any(|first| (place.hook, place.check) >= first)
    }

    fn check(&self, place: Place) -> Option<&CompiledCheck> {
        self.hooks.get(place.hook)?.checks.get(place.check)
    }

    /// One check about one body.
    async fn ask_one(
        self: &Arc<Self>,
        place: Place,
        about: &AskedAbout,
        remote: &Arc<RemoteSide>,
    ) -> Option<RemoteVerdict> {
        let began = Instant::now();
        let check = self.check(place)?;
        let mut answer = self.ask_service(place, about, remote).await?;
        // A missing plugin lets pass, unless the check says that no error may.
        if answer.verdict.error.is_some() && check.fails_on_error {
            answer.verdict.verdict = false;
        }
        Some(RemoteVerdict { took: began.elapsed(), ..answer })
    }

    /// What the service says, or what is said without it. One that hangs is left at the check's deadline.
    async fn ask_service(
        self: &Arc<Self>,
        place: Place,
        about: &AskedAbout,
        remote: &Arc<RemoteSide>,
    ) -> Option<RemoteVerdict> {
        let unread = |verdict: Verdict| Some(RemoteVerdict { verdict, took: Duration::ZERO, size: 0, _held: None });
        let service = self.check(place)?.check.remote()?;
        if self.is_beyond(place) {
            let why = format!("more than {MAX_CHECKS} checks of this side would have to ask others");
            return unread(Verdict::bound("TooMany", why));
        }
        let deadline = Instant::now() + service.timeout().min(MAX_WAIT);
        // Held until the answer was read. What is judged may be written twice, as JSON and as text.
        let finding = room(remote.tenant(), 2 * self.size);
        let Ok(_room) = tokio::time::timeout_at(deadline.into(), finding).await else {
            return unread(RemoteFailure::Busy.verdict());
        };
        let (job, what, by) = (self.clone(), about.clone(), remote.clone());
        let question = match aside(remote.tenant(), self.size, move || job.question(place, &what, &by)).await?? {
            Ok(question) => question,
            Err(answer) => return unread(*answer),
        };
        let secrets = question.secrets();
        let asking = remote.ask(question, deadline);
        // Whatever it is that does not keep to the deadline.
        let answers = match tokio::time::timeout_at(deadline.into(), asking).await {
            Ok(Ok(answers)) => answers,
            Ok(Err(failure)) => return unread(failure.verdict()),
            Err(_) => return unread(RemoteFailure::TimedOut.verdict()),
        };
        let (size, held) = match &answers {
            Answers::Images(images) => (images.size(), images.held.clone()),
            _ => (answers.size(), None),
        };
        let (job, what) = (self.clone(), about.clone());
        let verdict = aside(remote.tenant(), self.size + size, move || job.read(place, &what, &answers)).await??;
        Some(RemoteVerdict { verdict: scrubbed(verdict, &secrets), took: Duration::ZERO, size, _held: held })
    }

    /// What must be asked. The credentials are open for the length of this function; the calls have them in their heads.
    fn question(
        &self,
        place: Place,
        about: &AskedAbout,
        remote: &RemoteSide,
    ) -> Option<Result<Question, Box<Verdict>>> {
        let service = self.check(place)?.check.remote()?;
        let credentials = match service.plugin().map(|plugin| remote.asker.credentials(remote.organisation, plugin)) {
            None => None,
            Some(Ok(found)) => found,
            Some(Err(failure)) => return Some(Err(failure.verdict().into())),
        };
        let forwardable = with_changes(&remote.headers, &about.extracted);
        let context = RemoteContext {
            credentials: credentials.as_ref(),
            provider: &remote.provider,
            headers: Some(&forwardable),
            trace_id: &remote.trace_id,
            status: self.status,
            is_transformed: about.is_transformed,
        };
        let headers = with_changes(&self.headers, &about.extracted);
        let subject = self.subject(place, about, &headers)?;
        Some(service.ask(&subject, &context).and_then(Question::bounded))
    }

    fn read(&self, place: Place, about: &AskedAbout, answers: &Answers) -> Option<Verdict> {
        let service = self.check(place)?.check.remote()?;
        let headers = with_changes(&self.headers, &about.extracted);
        Some(service.read(&self.subject(place, about, &headers)?, answers))
    }

    fn subject<'s>(&'s self, place: Place, about: &'s AskedAbout, headers: &'s HeaderMap) -> Option<Subject<'s>> {
        let scope = self.hooks.get(place.hook)?.scope(self.check(place)?);
        Some(subject(GuardInputs { headers, ..self.inputs() }, &about.body, Utc::now().timestamp(), scope))
    }
}

/// Whether each of its checks sees what those before it made.
fn is_ordered(hook: &CompiledHook) -> bool {
    hook.actions.is_sequential || hook.kind == HookKind::Mutator
}

/// Work about this many bytes: here, or beside the threads that carry requests. None if it panicked.
async fn aside<T: Send + 'static>(tenant: Tenant, size: usize, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match size <= SMALL {
        true => Some(work()),
        false => heavy(tenant, work).await,
    }
}
