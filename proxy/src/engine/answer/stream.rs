//! A stream on its way to the client: whole events, as the steps leave them, and one error event in the client's dialect
//! should it break off or end without having said that it is over.

use super::heartbeat::with_heartbeats;
use super::{
    AnswerFailure, AnswerSource, Broken, Ended, HeldStream, Steps, break_off, client_head, join, learn_prices, next,
};
use crate::context::Visit;
use crate::context::metrics::Outcome;
use crate::net::dial::UpstreamError;
use crate::net::downstream::Downstream;
use crate::request::refusal::Refusal;
use crate::wire::sse::Unheld;
use bytes::BytesMut;
use http::header;
use pingora_http::ResponseHeader;

pub async fn deliver(
    client: &mut impl Downstream,
    source: &mut AnswerSource,
    held: HeldStream,
    steps: &mut Steps,
    visit: &mut Visit,
) -> Result<Ended, Ended> {
    let HeldStream { first, mut splitter, mut ending } = held;
    if visit.request.includes_cost {
        learn_prices(visit.prices_to_learn()).await;
    }
    let mut head = None;
    if !visit.answer.pulse.has_begun {
        let mut new = client_head(source.take_head(), None, steps, visit);
        // Should the stream break off, one event more will be written than was announced.
        new.remove_header(&header::CONTENT_LENGTH);
        head = Some(new);
        // A head that waits has not begun anything: should a heartbeat be due, it brings one of its own.
        visit.answer.pulse.has_begun = !steps.hold();
    } else {
        visit.answers(&source.head().headers);
    }
    let mut whole = first;
    loop {
        if steps.hold() && visit.answer.pulse.has_begun {
            head = None;
        }
        let is_last = source.is_done();
        ending.see(&whole);
        let mut is_cut = false;
        if is_last {
            let rest = splitter.rest();
            ending.see(&rest);
            is_cut = ending.is_missing();
            if !is_cut && !rest.is_empty() {
                whole = join(BytesMut::from(whole.as_ref()), rest);
            }
        }
        let is_end = is_last && !is_cut;
        if head.is_some() || !whole.is_empty() || is_end {
            let mut passed = match steps.is_heavy_end(&whole, is_end) {
                false => steps.events(&whole, is_end),
                true => Box::pin(steps.heavy_events(whole.clone(), is_end)).await,
            };
            if steps.is_asking() {
                // Heartbeats need a head before them: one that was sent, or their own in place of one that is held.
                let may_beat = head.is_none() || steps.hold();
                let settling = Box::pin(steps.settled(passed));
                passed = match may_beat {
                    true => Box::pin(with_heartbeats(client, visit, settling)).await?,
                    false => settling.await,
                };
                if steps.hold() && visit.answer.pulse.has_begun {
                    head = None;
                }
            }
            let passed = match passed {
                Ok(passed) => passed,
                Err(unusable) => {
                    visit.withholds(&whole);
                    visit.checked(steps.hook_log(visit.is_logged()));
                    let is_begun = has_begun(head.as_ref(), steps, visit);
                    if let Some(refusal) = steps.denial() {
                        return Box::pin(end_denied(client, visit, steps, *refusal, is_begun)).await;
                    }
                    let broken = Broken::from_upstream(&UpstreamError::protocol(unusable.0), visit);
                    return Box::pin(fail(client, visit, steps, broken, is_begun)).await;
                }
            };
            visit.checked(steps.hook_log(visit.is_logged()));
            if is_end && visit.observer.keeper.is_some() {
                visit.keeps(steps.cached_body());
            }
            visit.events(&whole, &passed, is_end);
            let mut passed = steps.framed(passed, is_end);
            if visit.answer.cost.is_some() && !steps.is_framed() {
                passed = visit.with_cost(passed);
            }
            match head.take() {
                // Nothing of it may be seen yet.
                Some(waiting) if passed.is_empty() && !is_end && steps.hold() => head = Some(waiting),
                Some(head) => {
                    visit.answer.pulse.has_begun = true;
                    client.write_beginning(head, passed, is_end).await?;
                }
                None if passed.is_empty() && !is_end => {}
                None => client.write_body(passed, is_end).await?,
            }
        }
        if is_cut {
            let error = UpstreamError::protocol("the stream ended before it was complete");
            let broken = Broken::from_upstream(&error, visit);
            let is_begun = has_begun(head.as_ref(), steps, visit);
            return Box::pin(fail(client, visit, steps, broken, is_begun)).await;
        }
        if is_last {
            return Ok(Ended::Complete);
        }
        let piece = match next(client, source, visit).await? {
            Ok(piece) => piece,
            Err(broken) => {
                let is_begun = has_begun(head.as_ref(), steps, visit);
                return Box::pin(fail(client, visit, steps, broken, is_begun)).await;
            }
        };
        whole = match splitter.push(piece.unwrap_or_default()) {
            Ok(whole) => whole,
            Err(why) => {
                let broken = match why {
                    Unheld::TooLarge => Broken::from_upstream(&UpstreamError::protocol(why.to_string()), visit),
                    Unheld::NoRoom(why) => why.into(),
                };
                let is_begun = has_begun(head.as_ref(), steps, visit);
                return Box::pin(fail(client, visit, steps, broken, is_begun)).await;
            }
        };
    }
}

/// Whether the client has a head: this one, or that of a heartbeat while this one waited.
fn has_begun(waiting: Option<&ResponseHeader>, steps: &Steps, visit: &Visit) -> bool {
    waiting.is_none() || steps.hold() && visit.answer.pulse.has_begun
}

/// A stream that does not go on: with an event if it has begun, and else as if it had never been there.
async fn fail(
    client: &mut impl Downstream,
    visit: &mut Visit,
    steps: &mut Steps,
    broken: Broken,
    is_begun: bool,
) -> Result<Ended, Ended> {
    if is_begun {
        return break_off(client, visit, steps, broken).await;
    }
    visit.answer.pulse.has_begun = false;
    Err(broken.into())
}

/// A guardrail denies what comes next. The provider has done its part.
async fn end_denied(
    client: &mut impl Downstream,
    visit: &mut Visit,
    steps: &mut Steps,
    refusal: Refusal,
    is_begun: bool,
) -> Result<Ended, Ended> {
    if !is_begun {
        visit.answer.pulse.has_begun = false;
        return Err(Ended::Failed(AnswerFailure::new(refusal, Some(Outcome::Answered))));
    }
    visit.answer.error_code = Some(refusal.code);
    let event = refusal.event(visit.request.dialect, visit.id(), visit.tried_provider());
    visit.ends_with(&event);
    client.write_body(steps.framed(event, true), true).await?;
    Ok(Ended::Complete)
}
