//! The body of an answer on its way out: follows the plan of `shape` and knows how it ended.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::bill::{BillKey, Billed};
use super::counts::Outcome;
use super::openai::STAMP;
use super::reply::words_of;
use super::shape::Step;
use super::state::{Serving, now_ns};
use super::{pattern, wire::Link};

/// Pieces in which the pattern is generated.
const PATTERN_PIECE: u64 = 1 << 16;

/// Tells hyper to break the connection off.
#[derive(Debug)]
pub struct Abort;

impl std::fmt::Display for Abort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broken off as asked")
    }
}

impl std::error::Error for Abort {}

pub struct Outgoing {
    steps: VecDeque<Step>,
    length: Option<u64>,
    waiting: Option<Pin<Box<Sleep>>>,
    flushing: bool,
    ending: Ending,
}

/// What happens when the answer is over, however it came to that.
pub struct Ending {
    pub link: Arc<Link>,
    /// None for the mock's own control answers.
    pub serving: Option<Serving>,
    pub outcome: Outcome,
    pub resets: bool,
    pub closes: bool,
    pub stamps: bool,
    /// Under which name the words that leave are noted, and how many did.
    pub tag: Option<(String, u64)>,
    /// The same of words that are billed as they leave.
    pub billed: Option<(BillKey, u64)>,
}

impl Ending {
    pub fn plain(link: Arc<Link>, serving: Option<Serving>, outcome: Outcome) -> Self {
        Self { link, serving, outcome, resets: false, closes: false, stamps: false, tag: None, billed: None }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some((tag, words)) = &self.tag {
            self.link.state.note_spoken(tag, *words);
        }
        if let (Some((key, words)), Some(bill)) = (&self.billed, &self.link.state.bill) {
            bill.add(key, Billed { completion: *words, ..Billed::default() });
        }
        if self.closes {
            self.link.close();
        }
    }
}

impl Outgoing {
    pub fn new(steps: VecDeque<Step>, length: Option<u64>, ending: Ending) -> Self {
        let mut body = Self { steps, length, waiting: None, flushing: false, ending };
        body.notice_end();
        body
    }

    /// One write, its length announced.
    pub fn whole(bytes: Bytes, ending: Ending) -> Self {
        let length = bytes.len() as u64;
        let steps = if bytes.is_empty() { VecDeque::new() } else { VecDeque::from([Step::Send(bytes)]) };
        Self::new(steps, Some(length), ending)
    }

    /// For HEAD, whose body is announced but never asked for.
    pub fn unsent(mut self) -> Self {
        self.end(self.ending.outcome);
        self
    }

    fn notice_end(&mut self) {
        if self.steps.is_empty() {
            self.end(self.ending.outcome);
        }
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(mut serving) = self.ending.serving.take() {
            serving.ends(outcome);
        }
    }

    /// True while the step at the front has to wait.
    fn is_waiting(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(sleep) = &mut self.waiting {
            if sleep.as_mut().poll(cx).is_pending() {
                return true;
            }
            self.waiting = None;
        }
        false
    }

    fn send(&mut self, bytes: Bytes) -> Bytes {
        if let Some((_, words)) = &mut self.ending.tag {
            *words += words_of(&bytes);
        }
        if let Some((_, words)) = &mut self.ending.billed {
            *words += words_of(&bytes);
        }
        if self.ending.stamps { stamped(bytes) } else { bytes }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Abort;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        loop {
            if self.is_waiting(cx) {
                return Poll::Pending;
            }
            match self.steps.pop_front() {
                None => {
                    self.notice_end();
                    return Poll::Ready(None);
                }
                Some(Step::Send(bytes)) => {
                    let bytes = self.send(bytes);
                    self.notice_end();
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Some(Step::Pattern(from, to)) => {
                    let until = to.min(from + PATTERN_PIECE);
                    if until < to {
                        self.steps.push_front(Step::Pattern(until, to));
                    }
                    let mut piece = BytesMut::zeroed((until - from) as usize);
                    pattern::fill(from, &mut piece);
                    self.notice_end();
                    return Poll::Ready(Some(Ok(Frame::data(piece.freeze()))));
                }
                Some(Step::Flush) if !self.flushing => {
                    // hyper flushes what it holds whenever a body has nothing to say.
                    self.flushing = true;
                    self.steps.push_front(Step::Flush);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Step::Flush) => self.flushing = false,
                Some(Step::Wait(duration)) => self.waiting = Some(Box::pin(sleep(duration))),
                Some(Step::Cut) if self.ending.link.is_blocked() => {
                    self.steps.push_front(Step::Cut);
                    self.waiting = Some(Box::pin(sleep(Duration::from_millis(1))));
                }
                Some(Step::Cut) => {
                    if self.ending.resets {
                        self.ending.link.reset();
                    }
                    self.end(Outcome::Cut);
                    return Poll::Ready(Some(Err(Abort)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty() && self.waiting.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// The event with the time in place of its placeholder, if it holds one.
fn stamped(bytes: Bytes) -> Bytes {
    let Some(at) = bytes.windows(STAMP.len()).position(|window| window == STAMP.as_bytes()) else { return bytes };
    let mut event = bytes.to_vec();
    event[at..at + STAMP.len()].copy_from_slice(format!("{:019}", now_ns()).as_bytes());
    Bytes::from(event)
}
