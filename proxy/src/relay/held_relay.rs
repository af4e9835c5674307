//! A relayed call that Pingora cannot carry. Guardrails judge it, and its body is longer than what Pingora sends again, or
//! nothing of its answer may leave before it was judged; or it must give its place to whoever waits when its client does not
//! read, which Pingora does not do over HTTP/2. It goes over the engine's own connections, still inside the filter of its
//! request; everything else is as on the relay lane: one target, another one only while nothing was sent, and bytes as they
//! came.

use super::RelayLane;
use super::judge_relay::{AnswerPlan, AnswerVerdict, JudgedRequest, RelayJudge, RelayedAnswer};
use super::passage::Passage;
use super::relayed_answer::{AnswerForm, MAX_JUDGED_ANSWER, TOO_LONG};
use crate::context::metrics::Outcome;
use crate::context::{PaidAnswer, Visit};
use crate::engine::answer;
use crate::engine::answer::{AnswerFailure, AnswerSource, Ended, Gathered, with_heartbeats};
use crate::engine::call::{CallError, unreached};
use crate::engine::sent_mark::SentMark;
use crate::engine::{Delivered, conclude};
use crate::net::dial::{Class, Upstream, UpstreamRequest};
use crate::net::downstream::{Contention, Downstream};
use crate::request::receive::OwnedShare;
use crate::request::refusal::Refusal;
use bytes::{Bytes, BytesMut};
use http::{HeaderName, header};
use pingora_http::{RequestHeader, ResponseHeader};
use std::time::Instant;

/// A request whose body is in memory.
pub(super) struct HeldRequest {
    pub body: Bytes,
    pub judged: Option<(RelayJudge, JudgedRequest)>,
    /// What the body takes in memory.
    pub _share: Option<OwnedShare>,
}

/// Why a target did not answer.
enum NotAnswered {
    /// Nothing was sent, so that another target may be asked.
    Unasked(Refusal, Option<Class>),
    Ended(Ended),
}

impl From<Ended> for NotAnswered {
    fn from(ended: Ended) -> Self {
        Self::Ended(ended)
    }
}

impl RelayLane {
    pub(super) async fn relay_held(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        mut passage: Passage,
        request: HeldRequest,
    ) -> Delivered {
        let ended = match self.ask_passage(client, visit, &mut passage, &request.body).await {
            Ok(upstream) => self.judge_and_deliver(client, visit, &passage, upstream, &request).await,
            Err(ended) => Err(ended),
        };
        conclude(&self.metrics, client, visit, ended.unwrap_or_else(|ended| ended)).await
    }

    /// The head of the answer of the first target that can be asked.
    async fn ask_passage(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        passage: &mut Passage,
        body: &Bytes,
    ) -> Result<Upstream, Ended> {
        if let Some(log) = &mut visit.observer.log {
            log.receives(body);
        }
        loop {
            client.end_by(visit.routing.deadline);
            let left = passage.target.provider.number;
            let refusal = match self.admit_passage(passage, client.head(), visit).await {
                Err(refusal) => {
                    visit.set_aside(refusal.status, Some(refusal.code), None);
                    refusal
                }
                Ok(()) => match self.ask_target(client, visit, passage, body).await {
                    Ok(upstream) => return Ok(upstream),
                    Err(NotAnswered::Ended(ended)) => return Err(ended),
                    Err(NotAnswered::Unasked(refusal, class)) => {
                        class.into_iter().for_each(|class| self.metrics.attempt(left, 0, Outcome::Failed(class)));
                        if !self.turn_on(client, visit, passage, None)? {
                            return Err(failure(refusal, None));
                        }
                        self.metrics.left(left);
                        continue;
                    }
                },
            };
            if !self.turn_on(client, visit, passage, Some(&refusal))? {
                return Err(failure(refusal, None));
            }
        }
    }

    /// Turns to the next target. False where there is none.
    fn turn_on(
        &self,
        client: &impl Downstream,
        visit: &mut Visit,
        passage: &mut Passage,
        why: Option<&Refusal>,
    ) -> Result<bool, Ended> {
        self.router.reroute(passage, why, client.head(), visit).map_err(|refusal| failure(refusal, None))
    }

    async fn ask_target(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        passage: &mut Passage,
        body: &Bytes,
    ) -> Result<Upstream, NotAnswered> {
        let unasked = |refusal| NotAnswered::Unasked(refusal, None);
        let calls = &self.calls;
        calls.secrets.gather(&passage.target).await.map_err(unasked)?;
        passage.await_credential(&calls.signing, client.head()).await.map_err(unasked)?;
        let mut head = client.head().clone();
        let edited = passage.send_head(&mut head, &self.aliases, &calls.signing).await;
        edited.map_err(|refusal| failure(refusal, None))?;
        drop_hop_headers(&mut head);
        if let Some(log) = &mut visit.observer.log {
            log.sends_on(&head, &passage.target);
        }
        let mut sent = Some(body.clone());
        passage.pass(&mut sent).map_err(|refusal| failure(refusal, None))?;
        let sent = sent.unwrap_or_default();
        let asked = Instant::now();
        let limit = asked + passage.target.timeout;
        let limit = visit.routing.deadline.map_or(limit, |deadline| limit.min(deadline));
        for fresh in [false, true] {
            let request = UpstreamRequest::from(head.clone());
            let mark = SentMark::default();
            let sending = Box::pin(calls.send(&passage.target, request, sent.clone(), limit, fresh, &mark));
            let called = with_heartbeats(client, visit, sending).await;
            if mark.is_set() && !matches!(called, Ok(Ok(_))) {
                visit.pays(&PaidAnswer::unheard());
            }
            let called = called?;
            let is_over = visit.routing.deadline.is_some_and(|deadline| deadline <= Instant::now());
            let target = &passage.target;
            let (refusal, class) = match called {
                Ok(upstream) => {
                    visit.routing.upstream += asked.elapsed();
                    return Ok(upstream);
                }
                Err(CallError::Upstream(error)) if error.is_unread() && !fresh => {
                    self.metrics.pool_stale.inc();
                    continue;
                }
                Err(CallError::Dial(error)) => {
                    let class = error.class();
                    return Err(NotAnswered::Unasked(unreached(target, class, &error), Some(class)));
                }
                Err(CallError::TooLate) => {
                    let class = Class::FirstByteTimeout;
                    (unreached(target, class, &"no connection in time"), class)
                }
                Err(CallError::Upstream(error)) => (unreached(target, error.class(), &error), error.class()),
            };
            visit.routing.upstream += asked.elapsed();
            passage.answered(503);
            let refusal = match class {
                Class::FirstByteTimeout if is_over => Refusal::out_of_time(),
                _ => refusal,
            };
            return Err(failure(refusal, Some(Outcome::Failed(class))).into());
        }
        Err(failure(Refusal::internal(), None).into())
    }

    /// The head of a provider's answer has come on the relay lane, held or not. Tells under which contention a client that
    /// does not read gives its place away.
    pub fn begin_relayed_answer(
        &self,
        passage: &Passage,
        head: &ResponseHeader,
        visit: &mut Visit,
    ) -> Option<Contention> {
        self.metrics.provider_answers(passage.target.provider.number, visit.routing.upstream);
        passage.note_answer(head.status, &self.calls.signing);
        if let Some(log) = &mut visit.observer.log {
            log.relays(head, &self.body_limits.memory);
        }
        passage.contention()
    }

    async fn judge_and_deliver(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        passage: &Passage,
        mut upstream: Upstream,
        request: &HeldRequest,
    ) -> Result<Ended, Ended> {
        let head = upstream.take_head();
        let mut source = AnswerSource::Upstream(upstream);
        self.metrics.first_byte(visit.observer.lane(), visit.request.started.elapsed());
        if let Some(contention) = self.begin_relayed_answer(passage, &head, visit) {
            client.yield_under(contention);
        }
        let plan = request.judged.as_ref().map(|judged| (judged, judged.0.plan_answer(&head)));
        let held = match plan {
            None | Some((_, AnswerPlan::Pass)) => None,
            Some((_, AnswerPlan::Withhold(refusal))) => return Err(withheld(visit, refusal, Bytes::new(), false)),
            Some((judged, AnswerPlan::Judge(form, encoding))) => {
                let answer = RelayedAnswer { body: Bytes::new(), form, encoding, status: head.status.as_u16() };
                Some(self.judge_whole(client, visit, passage, &mut source, judged, answer).await?)
            }
        };
        let is_failed = held.as_ref().is_some_and(|(_, is_failed)| *is_failed);
        visit.routing.is_body_marked |= is_failed;
        let head = answer::relayed_head(head, visit);
        let first = held.as_ref().map(|(gathered, _)| gathered.body.clone()).unwrap_or_default();
        let ended = answer::pass_on(client, &mut source, head, first, visit).await;
        source.release();
        ended
    }

    /// Reads an answer whole and judges it: what was read of one that may pass, and whether a guardrail failed that does not
    /// deny.
    async fn judge_whole(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        passage: &Passage,
        source: &mut AnswerSource,
        (judge, request): &(RelayJudge, JudgedRequest),
        answer: RelayedAnswer,
    ) -> Result<(Gathered, bool), Ended> {
        let about = passage.asked();
        let room = self.body_limits.owner(&about.1.workspace);
        let is_stream = answer.form == AnswerForm::Events;
        let mut read = BytesMut::new();
        let gathered = match answer::gather(client, source, MAX_JUDGED_ANSWER, room, visit, &mut read).await {
            Ok(gathered) => gathered,
            Err(ended) => {
                visit.pays(&PaidAnswer::heard(read.freeze(), is_stream));
                return Err(ended);
            }
        };
        if !gathered.is_whole || gathered.body.len() > MAX_JUDGED_ANSWER {
            return match judge.check_answer(TOO_LONG) {
                Ok(()) => Ok((gathered, false)),
                Err(refusal) => Err(withheld(visit, refusal, gathered.body, is_stream)),
            };
        }
        let answer = RelayedAnswer { body: gathered.body.clone(), ..answer };
        let judging = self.judge_relayed_answer(judge, about, client.head(), request, answer, visit);
        match Box::pin(judging).await.map_err(|refusal| failure(refusal, None))? {
            AnswerVerdict::Passes(is_failed) => Ok((gathered, is_failed)),
            AnswerVerdict::Refused(refusal, plain) => Err(withheld(visit, refusal, plain, is_stream)),
        }
    }
}

/// The client does not get an answer that the provider is paid for.
fn withheld(visit: &mut Visit, refusal: Refusal, read: Bytes, is_stream: bool) -> Ended {
    visit.pays(&PaidAnswer::heard(read, is_stream));
    failure(refusal, Some(Outcome::Answered))
}

fn failure(refusal: Refusal, outcome: Option<Outcome>) -> Ended {
    Ended::Failed(AnswerFailure::new(refusal, outcome))
}

/// What is meant for this connection alone. The engine's connections say their own.
fn drop_hop_headers(head: &mut RequestHeader) {
    let named = head.headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(',')).map(str::trim);
    let mut hops: Vec<HeaderName> = named.filter_map(|name| HeaderName::try_from(name).ok()).collect();
    hops.extend([header::CONNECTION, header::EXPECT, header::TE, header::TRAILER, header::PROXY_AUTHORIZATION]);
    for name in hops {
        head.remove_header(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_says_of_its_connection_is_not_said_to_the_provider() {
        let mut head = RequestHeader::build("POST", b"/v1/x", None).unwrap();
        for (name, value) in [
            ("connection", "keep-alive, X-Mine"),
            ("x-mine", "1"),
            ("te", "trailers"),
            ("x-other", "2"),
            ("expect", "x"),
        ] {
            head.append_header(name, value).unwrap();
        }
        drop_hop_headers(&mut head);
        assert_eq!(head.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-other"]);
    }
}
