//! Hedged requests, for configs that ask for them: when an attempt is slow, a second one of the same target starts
//! beside it, and the first good answer is passed on. The other is dropped, which cancels it. It comes out of the
//! target's retry budget, so that a provider that is slow for everybody is not asked twice by everybody.
//!
//! Two calls may be paid. The one that was overtaken has a record of its own, with what it is supposed to have read; where a
//! limit was asked for one call (a strict budget, whatever holds for the target) there is no second.

use super::answer::{Ended, with_heartbeats};
use super::call::{Call, HeldAnswer, NotCalled, ProviderCalls, given_up, refused};
use super::sent_mark::SentMark;
use crate::context::metrics::Outcome;
use crate::context::{PaidAnswer, Visit};
use crate::net::downstream::Downstream;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

type CallResult = Result<HeldAnswer, NotCalled>;

impl ProviderCalls {
    /// Waits for `first`, and for a second attempt beside it once that has taken `delay`.
    pub(super) async fn hedged(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        call: Call<'_>,
        (first, first_sent): (impl Future<Output = CallResult>, &SentMark),
        delay: Duration,
    ) -> CallResult {
        let mut first = pin!(first);
        let in_time = with_heartbeats(client, visit, pin!(tokio::time::timeout(delay, &mut first))).await;
        if let Ok(in_time) = in_time.inspect_err(|_| given_up(visit, first_sent))? {
            return in_time;
        }
        let permit = call.turn.filter(|_| visit.observer.may_call_twice()).map(|turn| self.take_turn_now(*turn));
        let is_single = !visit.observer.may_call_twice() || matches!(permit, Some(None));
        if is_single || !call.leaf.budget.take(Instant::now()) {
            return with_heartbeats(client, visit, first).await.inspect_err(|_| given_up(visit, first_sent))?;
        }
        let (mut head, unsigned) = self.prepare(call, client.head()).map_err(refused)?;
        let provider = call.target.provider.number;
        visit.routing.attempts = visit.routing.attempts.saturating_add(1);
        let began = Instant::now();
        let second_sent = SentMark::default();
        // On a connection of its own: a held one could be dead, or share what makes the first slow.
        let mut second = pin!(async {
            if let Some(credential) = unsigned {
                self.sign(call, &credential, &mut head).await?;
            }
            self.call(Call { asked: Instant::now(), ..call }, head, true, &second_sent).await
        });
        let race = async {
            let (early, was_first) = tokio::select! {
                biased;
                done = &mut first => (done, true),
                done = &mut second => (done, false),
            };
            if is_good(&early) {
                self.metrics.attempt(provider, 0, Outcome::Overtaken);
                let lost = if was_first { &second_sent } else { first_sent };
                return (early, was_first, lost.is_set().then_some(None));
            }
            let late = if was_first { second.await } else { first.await };
            match late {
                Err(NotCalled::Unread) => (early, was_first, None),
                late => {
                    let lost = paid(&early);
                    self.set_aside(provider, early);
                    (late, !was_first, lost.map(Some))
                }
            }
        };
        let (mut called, was_first, overtaken) = match with_heartbeats(client, visit, pin!(race)).await {
            Ok(over) => over,
            Err(ended) => {
                // One of the two is the attempt's own.
                if first_sent.is_set() && second_sent.is_set() {
                    visit.overtakes(None, began);
                }
                given_up(visit, if first_sent.is_set() { first_sent } else { &second_sent });
                return Err(ended.into());
            }
        };
        if let Some(paid) = overtaken {
            let began = if was_first { began } else { call.asked };
            visit.overtakes(paid.as_deref(), began);
        }
        self.metrics.hedged(provider, !was_first);
        if let (Ok(answer), false) = (&mut called, was_first) {
            answer.permit = permit.flatten();
        }
        called
    }
}

/// What an attempt that is set aside brought that is paid for.
fn paid(called: &CallResult) -> Option<Box<PaidAnswer>> {
    match called {
        Err(NotCalled::Ended(Ended::Failed(failure))) => failure.paid.clone(),
        _ => None,
    }
}

/// Whether waiting for the other attempt is pointless.
fn is_good(called: &CallResult) -> bool {
    let status = called.as_ref().map(|answer| answer.source.head().status.as_u16());
    status.is_ok_and(|status| status < 500 && status != 408 && status != 429)
}
