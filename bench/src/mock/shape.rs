//! How an answer leaves: a pure plan of writes, waits and breaks made from the answer's bytes and the fault.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::fault::Fault;

/// The bytes of an answer before any fault.
#[derive(Debug)]
pub enum Payload {
    Whole(Bytes),
    /// Server-sent events, one per entry.
    Events(Vec<Bytes>),
    /// A stream of another framing, with its content type.
    Pieces(&'static str, Vec<Bytes>),
    /// So many bytes of the pattern.
    Pattern(u64),
    /// Something that is no JSON, with its content type.
    Typed(&'static str, Bytes),
}

#[derive(Debug, PartialEq)]
pub enum Step {
    Send(Bytes),
    /// Pattern bytes from an offset to another.
    Pattern(u64, u64),
    /// What was sent so far leaves before anything else is.
    Flush,
    Wait(Duration),
    /// Breaks the connection.
    Cut,
}

impl Payload {
    pub fn whole(body: Vec<u8>) -> Self {
        Self::Whole(Bytes::from(body))
    }

    /// The length to announce; a stream announces none.
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::Whole(body) | Self::Typed(_, body) => Some(body.len() as u64),
            Self::Events(_) | Self::Pieces(..) => None,
            Self::Pattern(length) => Some(*length),
        }
    }
}

pub fn plan(payload: Payload, fault: &Fault) -> VecDeque<Step> {
    let sends = match payload {
        Payload::Whole(body) | Payload::Typed(_, body) => vec![Step::Send(body)],
        Payload::Events(events) | Payload::Pieces(_, events) => events.into_iter().map(Step::Send).collect(),
        Payload::Pattern(length) => vec![Step::Pattern(0, length)],
    };
    let pieces = sends.into_iter().flat_map(|send| pieces(send, fault));
    let apart = fault.chunk_bytes.is_some() || fault.split_utf8;
    let mut plan = Plan { steps: VecDeque::new(), offset: 0, cut_at: fault.cut_at, stall_at: fault.stall_after_bytes };
    // A stream that is measured begins as providers' do: its role comes together with its first token.
    let undelayed = usize::from(fault.stamp);
    for (index, piece) in pieces.enumerate() {
        if let Some(delay) = fault.chunk_delay_ms.filter(|_| index > undelayed) {
            plan.steps.extend([Step::Flush, Step::Wait(Duration::from_millis(delay))]);
        } else if apart && index > 0 {
            plan.steps.push_back(Step::Flush);
        }
        if !plan.send(piece, fault.stall()) {
            return plan.steps;
        }
    }
    // Beyond the last byte the answer is whole, but its end is late or never comes.
    if plan.stall_at.is_some() {
        plan.steps.extend([Step::Flush, Step::Wait(fault.stall())]);
    }
    if plan.cut_at.is_some() {
        plan.cut();
    }
    plan.steps
}

struct Plan {
    steps: VecDeque<Step>,
    offset: u64,
    cut_at: Option<u64>,
    stall_at: Option<u64>,
}

impl Plan {
    /// Adds a piece, broken where the fault wants it. False when the answer ends here.
    fn send(&mut self, piece: Step, stall: Duration) -> bool {
        let end = self.offset + length(&piece);
        if self.cut_at.is_some_and(|at| at < end) || self.stall_at.is_some_and(|at| at < end) {
            let stalls_first = match (self.stall_at, self.cut_at) {
                (Some(stall), Some(cut)) => stall <= cut,
                (stall, _) => stall.is_some(),
            };
            let at = if stalls_first { self.stall_at.take() } else { self.cut_at };
            let (before, after) = split(piece, at.map_or(0, |at| at.saturating_sub(self.offset)));
            self.offset += length(&before);
            self.push(before);
            if !stalls_first {
                self.cut();
                return false;
            }
            self.steps.extend([Step::Flush, Step::Wait(stall)]);
            return self.send(after, stall);
        }
        self.offset = end;
        self.push(piece);
        true
    }

    fn push(&mut self, piece: Step) {
        if length(&piece) > 0 {
            self.steps.push_back(piece);
        }
    }

    fn cut(&mut self) {
        self.steps.extend([Step::Flush, Step::Cut]);
    }
}

fn length(step: &Step) -> u64 {
    match step {
        Step::Send(bytes) => bytes.len() as u64,
        Step::Pattern(from, to) => to - from,
        Step::Flush | Step::Wait(_) | Step::Cut => 0,
    }
}

fn split(step: Step, at: u64) -> (Step, Step) {
    match step {
        Step::Send(mut bytes) => {
            let before = bytes.split_to(at as usize);
            (Step::Send(before), Step::Send(bytes))
        }
        Step::Pattern(from, to) => (Step::Pattern(from, from + at), Step::Pattern(from + at, to)),
        other => (other, Step::Flush),
    }
}

/// One send as the smaller writes a fault asks for.
fn pieces(send: Step, fault: &Fault) -> Vec<Step> {
    let Step::Send(mut bytes) = send else { return vec![send] };
    let mut pieces = Vec::new();
    if let Some(size) = fault.chunk_bytes {
        while bytes.len() > size.max(1) {
            pieces.push(Step::Send(bytes.split_to(size.max(1))));
        }
    } else if fault.split_utf8 {
        // Continuation bytes are 10xxxxxx: cut before each character's second byte.
        while let Some(at) = (1..bytes.len()).find(|&at| bytes[at] & 0xC0 == 0x80 && bytes[at - 1] & 0xC0 == 0xC0) {
            pieces.push(Step::Send(bytes.split_to(at)));
        }
    }
    pieces.push(Step::Send(bytes));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(text: &'static str) -> Step {
        Step::Send(Bytes::from_static(text.as_bytes()))
    }

    fn events() -> Payload {
        Payload::Events(vec![Bytes::from_static(b"abc"), Bytes::from_static(b"def")])
    }

    const HOUR: Step = Step::Wait(Duration::from_secs(3600));

    #[test]
    fn a_fault_breaks_the_answer_where_it_says() {
        let fault = Fault::default;
        for (fault, expected) in [
            (fault(), vec![send("abc"), send("def")]),
            (Fault { cut_at: Some(0), ..fault() }, vec![Step::Flush, Step::Cut]),
            (Fault { cut_at: Some(2), ..fault() }, vec![send("ab"), Step::Flush, Step::Cut]),
            (Fault { cut_at: Some(3), ..fault() }, vec![send("abc"), Step::Flush, Step::Cut]),
            (Fault { cut_at: Some(6), ..fault() }, vec![send("abc"), send("def"), Step::Flush, Step::Cut]),
            (
                Fault { stall_after_bytes: Some(4), ..fault() },
                vec![send("abc"), send("d"), Step::Flush, HOUR, send("ef")],
            ),
            (
                Fault { stall_after_bytes: Some(1), cut_at: Some(2), ..fault() },
                vec![send("a"), Step::Flush, HOUR, send("b"), Step::Flush, Step::Cut],
            ),
            (
                Fault { chunk_bytes: Some(2), ..fault() },
                vec![send("ab"), Step::Flush, send("c"), Step::Flush, send("de"), Step::Flush, send("f")],
            ),
            (
                Fault { chunk_delay_ms: Some(5), ..fault() },
                vec![send("abc"), Step::Flush, Step::Wait(Duration::from_millis(5)), send("def")],
            ),
        ] {
            assert_eq!(Vec::from(plan(events(), &fault)), expected, "{fault:?}");
        }
    }

    #[test]
    fn every_multibyte_character_is_split() {
        let fault = Fault { split_utf8: true, ..Fault::default() };
        let steps = plan(Payload::Whole(Bytes::from_static("aé🌍z".as_bytes())), &fault);
        let sends: Vec<_> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Send(bytes) => Some(&bytes[..]),
                _ => None,
            })
            .collect();
        assert_eq!(sends, [&b"a\xC3"[..], b"\xA9\xF0", b"\x9F\x8C\x8Dz"]);
    }

    #[test]
    fn the_pattern_breaks_like_bytes() {
        let fault = Fault { cut_at: Some(10), ..Fault::default() };
        assert_eq!(Vec::from(plan(Payload::Pattern(100), &fault)), [Step::Pattern(0, 10), Step::Flush, Step::Cut]);
    }
}
