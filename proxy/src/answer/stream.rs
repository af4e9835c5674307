//! A stream on its way to the client: whole events, as the steps leave them, and one error event in the client's dialect
//! should it break off or end without having said that it is over.

use super::{AnswerSource, Broken, Ended, HeldStream, Steps, break_off, client_head, join, next};
use crate::net::dial::UpstreamError;
use crate::net::downstream::Downstream;
use crate::visit::Visit;
use bytes::BytesMut;
use http::header;

pub async fn deliver(
    client: &mut impl Downstream,
    source: &mut AnswerSource,
    held: HeldStream,
    steps: &mut Steps,
    visit: &mut Visit,
) -> Result<Ended, Ended> {
    let HeldStream { first, mut splitter, mut ending } = held;
    let mut head = None;
    if !visit.answer.pulse.has_begun {
        let mut new = client_head(source.take_head(), steps, visit);
        // Should the stream break off, one event more will be written than was announced.
        new.remove_header(&header::CONTENT_LENGTH);
        head = Some(new);
        visit.answer.pulse.has_begun = true;
    } else {
        visit.answers(&source.head().headers);
    }
    let mut whole = first;
    loop {
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
            let passed = match steps.events(&whole, is_end) {
                Ok(passed) => passed,
                Err(unusable) => {
                    visit.withholds(&whole);
                    let broken = Broken::from_upstream(&UpstreamError::protocol(unusable.0), visit);
                    if head.is_some() {
                        visit.answer.pulse.has_begun = false;
                        return Err(broken.into());
                    }
                    return Box::pin(break_off(client, visit, steps, broken)).await;
                }
            };
            visit.events(&whole, &passed, is_end);
            let passed = steps.framed(passed, is_end);
            match head.take() {
                Some(head) => client.write_beginning(head, passed, is_end).await?,
                None if passed.is_empty() && !is_end => {}
                None => client.write_body(passed, is_end).await?,
            }
        }
        if is_cut {
            let error = UpstreamError::protocol("the stream ended before it was complete");
            let broken = Broken::from_upstream(&error, visit);
            return Box::pin(break_off(client, visit, steps, broken)).await;
        }
        if is_last {
            return Ok(Ended::Complete);
        }
        let piece = match next(client, source, visit).await? {
            Ok(piece) => piece,
            Err(broken) => return Box::pin(break_off(client, visit, steps, broken)).await,
        };
        whole = match splitter.push(piece.unwrap_or_default()) {
            Ok(whole) => whole,
            Err(_) => {
                let error = UpstreamError::protocol("an event is too large");
                let broken = Broken::from_upstream(&error, visit);
                return Box::pin(break_off(client, visit, steps, broken)).await;
            }
        };
    }
}
