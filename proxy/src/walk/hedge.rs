//! Hedged requests, for configs that ask for them: when an attempt is slow, a second one of the same target starts
//! beside it, and the first good answer is passed on. The other is dropped, which cancels it. It comes out of the
//! target's retry budget, so that a provider that is slow for everybody is not asked twice by everybody.
//!
//! Two calls may be paid. The one that was overtaken has a record of its own, with what it is supposed to have read; where a
//! limit was asked for one call (a strict budget, whatever holds for the target) there is no second.

use super::call::{Call, HeldAnswer, NotCalled, ProviderCalls, refused};
use crate::answer::{Ended, beside};
use crate::metrics::Outcome;
use crate::net::downstream::Downstream;
use crate::visit::{PaidAnswer, Visit};
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
        first: impl Future<Output = CallResult>,
        delay: Duration,
    ) -> CallResult {
        let mut first = pin!(first);
        if let Ok(in_time) = beside(client, visit, pin!(tokio::time::timeout(delay, &mut first))).await? {
            return in_time;
        }
        if !visit.observer.may_call_twice() {
            return beside(client, visit, first).await?;
        }
        let permit = call.turn.map(|turn| self.take_turn_now(*turn));
        if matches!(permit, Some(None)) || !call.leaf.budget.take(Instant::now()) {
            return beside(client, visit, first).await?;
        }
        let (mut head, unsigned) = self.prepare(call, client.head()).map_err(refused)?;
        let provider = call.target.provider.number;
        visit.routing.attempts = visit.routing.attempts.saturating_add(1);
        let began = Instant::now();
        // On a connection of its own: a held one could be dead, or share what makes the first slow.
        let mut second = pin!(async {
            if let Some(credential) = unsigned {
                self.sign(call, &credential, &mut head).await?;
            }
            self.call(Call { asked: Instant::now(), ..call }, head, true).await
        });
        let race = async {
            let (early, was_first) = tokio::select! {
                biased;
                done = &mut first => (done, true),
                done = &mut second => (done, false),
            };
            if is_good(&early) {
                self.metrics.attempt(provider, 0, Outcome::Overtaken);
                return (early, was_first, Some(None));
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
        let (mut called, was_first, overtaken) = beside(client, visit, pin!(race)).await?;
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
