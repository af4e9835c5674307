//! A websocket session, watched from aside while its bytes pass as they are: its responses, one after the other, whether
//! somebody closed it, and who broke it off if nobody did. The gateway may end it too, between two frames.

use super::events::{ClientEventKind, Done, RealtimeEvent};
use super::frames::{FramePart, Frames};
use super::unfinished::Unfinished;
use crate::request::refusal::{Refusal, RefusalCode};
use crate::runtime::memory::MemoryOwner;
use bytes::Bytes;
use http::{HeaderMap, header};
use serde::Deserialize;
use std::time::{Duration, Instant};

/// What the client is told when its provider is gone: an internal error (1011), and why.
const LOST: &str = "the provider's connection was lost";
const INTERNAL_ERROR: u16 = 1011;
/// The gateway's rules do not let the session go on.
const POLICY: u16 = 1008;
/// Longest reason of a close frame.
const MAX_REASON: usize = 123;

#[derive(Debug)]
pub struct Websocket {
    from_provider: Frames,
    from_client: Frames,
    ending: SessionEnding,
    /// The last frame that the client gets, until it has got it.
    closing_frame: Option<Bytes>,
    is_closing_sent: bool,
    /// Responses that the client asked for and that are not over.
    asked: u32,
    /// Responses that have begun and are not over.
    running: u32,
    finished: u32,
    began: Option<Instant>,
    unfinished: Unfinished,
    /// Something was said that could not be read, so what was used may be more.
    has_gaps: bool,
}

/// How a session ended; the first to end it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnding {
    None,
    /// By a close frame of either side.
    Closed,
    /// The provider closed it, and its code says that something is wrong.
    Failed,
    ProviderLost,
    ClientLost,
    /// By the gateway: status and code of the refusal.
    Refused(u16, RefusalCode),
}

/// What a session needs before what a client sent may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionNeeds {
    /// So many responses must have been admitted.
    pub responses: u32,
    /// Whether a message came at all.
    pub is_message: bool,
}

#[derive(Deserialize)]
struct Read {
    input_tokens: Option<u64>,
}

impl Websocket {
    /// Of an upgrade to a websocket; other protocols are not watched. What is gathered of messages counts for the owner.
    pub fn from_answer_head(head: &HeaderMap, owner: MemoryOwner<'_>) -> Option<Box<Self>> {
        let upgrade = head.get(header::UPGRADE)?;
        upgrade.as_bytes().eq_ignore_ascii_case(b"websocket").then(|| {
            Box::new(Self {
                from_provider: Frames::new(owner),
                from_client: Frames::new(owner),
                ending: SessionEnding::None,
                closing_frame: None,
                is_closing_sent: false,
                asked: 0,
                running: 0,
                finished: 0,
                began: None,
                unfinished: Unfinished::default(),
                has_gaps: false,
            })
        })
    }

    /// What a piece from the provider says of responses. Its texts are shown to `heard`, but for sound.
    pub fn provider_sends(&mut self, piece: &[u8], mut heard: impl FnMut(&[u8])) -> Vec<RealtimeEvent> {
        let Self { from_provider, ending, asked, unfinished, has_gaps, .. } = self;
        let mut events = Vec::new();
        from_provider.push(piece, |part| match part {
            FramePart::Text(text) => {
                let event = RealtimeEvent::parse(text);
                if !matches!(event, Ok(Some(RealtimeEvent::Audio(_)))) {
                    heard(text);
                }
                match event {
                    Err(_) => *has_gaps = true,
                    Ok(Some(RealtimeEvent::Text(letters))) => unfinished.says_text(letters),
                    Ok(Some(RealtimeEvent::Audio(letters))) => unfinished.says_audio(letters),
                    Ok(Some(RealtimeEvent::Error)) => *asked = asked.saturating_sub(1),
                    Ok(Some(event @ (RealtimeEvent::Began | RealtimeEvent::Done(_)))) => events.push(event),
                    Ok(None) => {}
                }
            }
            FramePart::Unread => *has_gaps = true,
            FramePart::Binary => {}
            FramePart::Close(code) if *ending == SessionEnding::None => {
                *ending = if code.is_some_and(is_fault) { SessionEnding::Failed } else { SessionEnding::Closed };
            }
            FramePart::Close(_) => {}
        });
        events
    }

    /// What a piece from the client needs before it may pass. Its texts are shown to `heard`, but for sound.
    pub fn client_sends(&mut self, piece: &[u8], mut heard: impl FnMut(&[u8])) -> SessionNeeds {
        let Self { from_client, ending, asked, unfinished, .. } = self;
        let mut wanted = SessionNeeds::default();
        from_client.push(piece, |part| {
            let kind = match part {
                FramePart::Text(text) => {
                    let kind = ClientEventKind::parse(text);
                    unfinished.hears(text.len() as u64, kind == ClientEventKind::Audio);
                    if kind != ClientEventKind::Audio {
                        heard(text);
                    }
                    kind
                }
                // Nobody knows what it says.
                FramePart::Unread | FramePart::Binary => ClientEventKind::Unknown,
                FramePart::Close(_) => {
                    if *ending == SessionEnding::None {
                        *ending = SessionEnding::Closed;
                    }
                    return;
                }
            };
            wanted.is_message = true;
            match kind {
                ClientEventKind::BeginsResponse => {
                    *asked = asked.saturating_add(1);
                    wanted.responses = wanted.responses.max(*asked);
                }
                ClientEventKind::Unknown => wanted.responses = wanted.responses.max(1),
                ClientEventKind::Audio | ClientEventKind::Harmless => {}
            }
        });
        wanted
    }

    /// A response begins: how many are under way with it.
    pub fn begin(&mut self) -> u32 {
        self.began.get_or_insert_with(Instant::now);
        self.running = self.running.saturating_add(1);
        self.running
    }

    /// A response is over: which one it was, counted from zero, and how long it took.
    pub fn finish(&mut self, done: &Done) -> (u32, Duration) {
        let number = self.finished;
        let took = self.began.map_or(Duration::ZERO, |began| began.elapsed());
        let input = done.usage.as_deref().and_then(|usage| serde_json::from_str::<Read>(usage).ok());
        self.unfinished.ends(input.and_then(|read| read.input_tokens));
        self.finished = self.finished.saturating_add(1);
        self.running = self.running.saturating_sub(1);
        self.asked = self.asked.saturating_sub(1);
        self.began = (self.running > 0).then(Instant::now);
        (number, took)
    }

    /// The gateway ends the session.
    pub fn refuse(&mut self, refusal: &Refusal) {
        if self.ending == SessionEnding::None {
            self.ending = SessionEnding::Refused(refusal.status, refusal.code);
            self.closing_frame = Some(close(POLICY, &refusal.message));
        }
    }

    /// Whether nothing may pass any more.
    pub fn is_refused(&self) -> bool {
        matches!(self.ending, SessionEnding::Refused(..))
    }

    /// What the client gets in place of the piece that `provider_sends` has just seen. True when that is the farewell.
    pub fn pass(&mut self, body: &mut Option<Bytes>, is_last: bool) -> bool {
        if self.is_closing_sent {
            *body = None;
            return false;
        }
        if is_last {
            self.provider_ends();
        }
        let Some(end) = self.from_provider.boundary() else { return false };
        let Some(closing_frame) = self.closing_frame.take() else { return false };
        self.is_closing_sent = true;
        *body = Some(match body.take() {
            Some(piece) => Bytes::from([&piece[..end.min(piece.len())], &closing_frame[..]].concat()),
            None => closing_frame,
        });
        true
    }

    /// The provider's side is over. If nobody closed the session, the client is to be told.
    pub fn provider_ends(&mut self) {
        if self.ending == SessionEnding::None {
            self.ending = SessionEnding::ProviderLost;
            self.closing_frame = Some(close(INTERNAL_ERROR, LOST));
        }
    }

    /// What the client is still to be sent after everything else; inside a frame there is nothing that it would take for
    /// more than a part of that frame.
    pub fn closing_frame(&mut self) -> Option<Bytes> {
        self.closing_frame.take().filter(|_| self.from_provider.is_between_frames())
    }

    pub fn client_ends(&mut self) {
        if self.ending == SessionEnding::None {
            self.ending = SessionEnding::ClientLost;
        }
    }

    /// Whether the session itself is to be noted: what its responses used is noted with each of them.
    pub fn has_rest(&self) -> bool {
        let is_well = matches!(self.ending, SessionEnding::None | SessionEnding::Closed);
        self.finished == 0 || self.running > 0 || self.has_gaps || !is_well
    }

    /// Whether that is charged: a response that is not over, or a session that had none.
    pub fn is_rest_charged(&self) -> bool {
        self.finished == 0 || self.running > 0
    }

    /// Whether a response was noted, under the id of the session.
    pub fn has_finished_any(&self) -> bool {
        self.finished > 0
    }

    /// What responses are guessed to have used that were never said to be over. Of what could not be read nothing is
    /// guessed, but that is known.
    pub fn guess(&self) -> Option<(u64, u64)> {
        (self.running > 0).then(|| self.unfinished.tokens()).or(self.has_gaps.then_some((0, 0)))
    }

    /// The status and the code of the whole session, for the log: what the client got was a 101 in any case.
    pub fn outcome(&self) -> (u16, Option<RefusalCode>) {
        match self.ending {
            SessionEnding::None | SessionEnding::Closed => (200, None),
            SessionEnding::Failed => (502, Some(RefusalCode::UpstreamError)),
            SessionEnding::ProviderLost => (502, Some(RefusalCode::InvalidUpstreamResponse)),
            SessionEnding::ClientLost => (499, None),
            SessionEnding::Refused(status, code) => (status, Some(code)),
        }
    }
}

/// Codes with which a side says that it cannot go on. Those from 3000 on are the application's own.
fn is_fault(code: u16) -> bool {
    (1002..3000).contains(&code) && code != 1005
}

/// A close frame of a server, which are not masked.
fn close(code: u16, reason: &str) -> Bytes {
    let mut end = reason.len().min(MAX_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let reason = &reason.as_bytes()[..end];
    let length = (2 + reason.len()) as u8;
    Bytes::from([&[0x88, length][..], &code.to_be_bytes(), reason].concat())
}

#[cfg(test)]
mod tests;
