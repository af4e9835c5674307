//! The frames of one direction of a websocket (RFC 6455), found in the bytes that pass. Nothing is changed and little is
//! kept: a message that arrives in one piece is shown where it stands, one in several pieces is gathered up to a limit,
//! and what cannot be understood ends the looking, never the passing. What is gathered counts in the memory of bodies; a text
//! that finds no room there is one that could not be read.

use crate::runtime::memory::{HeldSize, MemoryOwner};

/// Longest message that is gathered; a longer one is passed without being read.
const MAX_MESSAGE: usize = 256 << 10;
/// What may stay allocated between messages.
const MAX_IDLE_BUFFER: usize = 16 << 10;
/// Longest head of a frame, and longest payload of one that controls.
const HEAD: usize = 14;
const CONTROL: u64 = 125;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub enum FramePart<'p> {
    /// A whole text.
    Text(&'p [u8]),
    /// A text that could not be read: compressed, or too long.
    Unread,
    /// A message that is no text.
    Binary,
    /// The sender closes, with its code if it gave one.
    Close(Option<u16>),
}

#[derive(Debug, Default)]
pub struct Frames {
    head: [u8; HEAD],
    head_length: usize,
    frame: Option<Frame>,
    /// What was gathered of a message, and of a frame that controls.
    message: Vec<u8>,
    /// What the message takes in the memory of bodies.
    size: HeldSize,
    control: Vec<u8>,
    text: TextState,
    is_lost: bool,
    /// Where in the last piece a frame ended, or the piece began between two; none when it is all of one frame.
    boundary: Option<usize>,
}

/// The frame whose payload passes.
#[derive(Debug, Clone, Copy)]
struct Frame {
    opcode: u8,
    is_final: bool,
    mask: Option<[u8; 4]>,
    length: u64,
    left: u64,
}

/// Whether a text is under way, in however many frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum TextState {
    #[default]
    No,
    Gathered,
    Unread,
    Binary,
}

impl Frames {
    pub fn new(owner: MemoryOwner<'_>) -> Self {
        Self { size: HeldSize::new(owner), ..Self::default() }
    }

    /// Whether a frame could stand here that the sender did not send.
    pub fn is_between_frames(&self) -> bool {
        self.head_length == 0 && self.frame.is_none() && !self.is_lost
    }

    /// How much of the last piece could be passed so that something else may follow it.
    pub fn boundary(&self) -> Option<usize> {
        self.boundary
    }

    /// Looks at bytes that pass.
    pub fn push(&mut self, bytes: &[u8], mut found: impl FnMut(FramePart<'_>)) {
        self.boundary = self.is_between_frames().then_some(0);
        let mut passed = 0;
        while passed < bytes.len() && !self.is_lost {
            passed += match self.frame {
                None => self.begin(&bytes[passed..], &mut found),
                Some(frame) => self.go_on(frame, &bytes[passed..], &mut found),
            };
            if self.is_between_frames() {
                self.boundary = Some(passed);
            }
        }
    }

    /// Takes bytes of a head.
    fn begin(&mut self, bytes: &[u8], found: &mut impl FnMut(FramePart<'_>)) -> usize {
        let wanted = if self.head_length < 2 { 2 } else { head_length(self.head[1]) };
        let taken = bytes.len().min(wanted - self.head_length);
        self.head[self.head_length..self.head_length + taken].copy_from_slice(&bytes[..taken]);
        self.head_length += taken;
        if self.head_length >= 2 && self.head_length == head_length(self.head[1]) {
            self.head_length = 0;
            let frame = Frame::parse(&self.head);
            self.enter(frame, self.head[0] & 0x40 != 0);
            if frame.left == 0 && !self.is_lost {
                self.end(frame, None, found);
            }
        }
        taken
    }

    fn enter(&mut self, frame: Frame, is_compressed: bool) {
        self.frame = Some(frame);
        if frame.is_control() {
            self.is_lost = frame.length > CONTROL || !frame.is_final;
            return;
        }
        match frame.opcode {
            TEXT => self.text = if is_compressed { TextState::Unread } else { TextState::Gathered },
            0 => {}
            _ => self.text = TextState::Binary,
        }
    }

    /// Takes bytes of a payload.
    fn go_on(&mut self, mut frame: Frame, bytes: &[u8], found: &mut impl FnMut(FramePart<'_>)) -> usize {
        let taken = usize::try_from(frame.left).unwrap_or(usize::MAX).min(bytes.len());
        let piece = &bytes[..taken];
        let before = frame.length - frame.left;
        frame.left -= taken as u64;
        self.frame = Some(frame);
        // Most messages come whole, and need not be copied.
        let is_whole = before == 0 && frame.left == 0 && frame.is_final && frame.mask.is_none();
        if is_whole && !frame.is_control() && self.message.is_empty() && taken <= MAX_MESSAGE {
            self.end(frame, Some(piece), found);
            return taken;
        }
        if frame.is_control() {
            append(&mut self.control, piece, frame.mask, before);
        } else if self.text == TextState::Gathered {
            if self.message.len() + taken > MAX_MESSAGE {
                self.forget_message();
            } else {
                append(&mut self.message, piece, frame.mask, before);
                if self.size.set(self.message.capacity()).is_err() {
                    self.forget_message();
                }
            }
        }
        if frame.left == 0 {
            self.end(frame, None, found);
        }
        taken
    }

    /// A frame is over; `whole` is its payload where it was not gathered.
    fn end(&mut self, frame: Frame, whole: Option<&[u8]>, found: &mut impl FnMut(FramePart<'_>)) {
        self.frame = None;
        if frame.is_control() {
            if frame.opcode == CLOSE {
                found(FramePart::Close(self.control.first_chunk().map(|code| u16::from_be_bytes(*code))));
            }
            self.control.clear();
            return;
        }
        if !frame.is_final {
            return;
        }
        let text = std::mem::replace(&mut self.text, TextState::No);
        match text {
            TextState::Gathered => found(FramePart::Text(whole.unwrap_or(&self.message))),
            TextState::Unread => found(FramePart::Unread),
            TextState::Binary => found(FramePart::Binary),
            TextState::No => {}
        }
        self.message.clear();
        self.message.shrink_to(MAX_IDLE_BUFFER);
        let _ = self.size.set(self.message.capacity());
    }

    /// It passes without being read.
    fn forget_message(&mut self) {
        self.text = TextState::Unread;
        self.message = Vec::new();
        let _ = self.size.set(0);
    }
}

impl Frame {
    /// Of a head that is whole.
    fn parse(head: &[u8; HEAD]) -> Self {
        let [first, second, rest @ ..] = head;
        let (length, after) = match second & 0x7f {
            126 => (u64::from(u16::from_be_bytes([rest[0], rest[1]])), 2),
            127 => (rest[..8].iter().fold(0, |length, byte| (length << 8) | u64::from(*byte)), 8),
            short => (u64::from(short), 0),
        };
        let mask = (second & 0x80 != 0).then(|| [rest[after], rest[after + 1], rest[after + 2], rest[after + 3]]);
        Self { opcode: first & 0x0f, is_final: first & 0x80 != 0, mask, length, left: length }
    }

    fn is_control(self) -> bool {
        self.opcode >= 8
    }
}

fn head_length(second: u8) -> usize {
    let length = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    2 + length + if second & 0x80 == 0 { 0 } else { 4 }
}

/// `before` bytes of the payload have passed, which the mask goes by.
fn append(to: &mut Vec<u8>, piece: &[u8], mask: Option<[u8; 4]>, before: u64) {
    match mask {
        None => to.extend_from_slice(piece),
        Some(mask) => {
            let start = (before % 4) as usize;
            to.extend(piece.iter().zip(mask.iter().cycle().skip(start)).map(|(byte, mask)| byte ^ mask));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::memory::body_memory;
    use crate::runtime::tenant_share::Tenant;
    use proptest::prelude::*;

    fn frame(first: u8, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
        let bit = if mask.is_some() { 0x80 } else { 0 };
        let mut frame = vec![first];
        match payload.len() {
            length @ 0..126 => frame.push(bit | length as u8),
            length @ 126..65_536 => {
                frame.push(bit | 126);
                frame.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                frame.push(bit | 127);
                frame.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        frame.extend(mask.into_iter().flatten());
        append(&mut frame, payload, mask, 0);
        frame
    }

    fn seen(frames: &mut Frames, bytes: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        frames.push(bytes, |part| {
            all.push(match part {
                FramePart::Text(text) => String::from_utf8_lossy(text).into_owned(),
                FramePart::Unread => "unread".to_owned(),
                FramePart::Binary => "bytes".to_owned(),
                FramePart::Close(code) => format!("close {code:?}"),
            });
        });
        all
    }

    /// A stream with everything in it, and what it says.
    fn stream(mask: Option<[u8; 4]>) -> (Vec<u8>, Vec<&'static str>) {
        let long = vec![b'x'; MAX_MESSAGE + 1];
        let bytes = [
            frame(0x81, b"one", mask),
            frame(0x01, b"tw", mask),
            frame(0x89, b"ping", mask),
            frame(0x80, b"o", mask),
            frame(0x82, b"binary", mask),
            frame(0xc1, b"compressed", mask),
            frame(0x81, b"", mask),
            frame(0x81, &long, mask),
            frame(0x81, b"three", mask),
            frame(0x88, &[3, 243, b'w', b'h', b'y'], mask),
            frame(0x88, &[], mask),
        ];
        let said = vec!["one", "two", "bytes", "unread", "", "unread", "three", "close Some(1011)", "close None"];
        (bytes.concat(), said)
    }

    #[test]
    fn what_comes_in_one_piece_is_read_as_what_comes_in_many() {
        for mask in [None, Some([7, 99, 200, 31])] {
            let (bytes, said) = stream(mask);
            assert_eq!(seen(&mut Frames::default(), &bytes), said);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn frames_are_found_wherever_the_bytes_are_cut(
            cuts in prop::collection::vec(1usize..4000, 1..200), is_masked in any::<bool>(),
        ) {
            let (bytes, said) = stream(is_masked.then_some([7, 99, 200, 31]));
            let mut frames = Frames::default();
            let (mut found, mut rest) = (Vec::new(), &bytes[..]);
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                found.extend(seen(&mut frames, piece));
                rest = after;
            }
            found.extend(seen(&mut frames, rest));
            prop_assert_eq!(found, said);
            prop_assert!(frames.is_between_frames());
        }

        #[test]
        fn whatever_passes_little_of_it_is_kept(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
            let mut frames = Frames::default();
            for _ in 0..20 {
                frames.push(&bytes, |_| {});
                prop_assert!(frames.message.capacity() <= 2 * MAX_MESSAGE && frames.control.len() <= CONTROL as usize);
            }
        }
    }

    #[test]
    fn what_is_gathered_counts_and_what_finds_no_room_is_not_read() {
        const LONG: usize = 200 << 10;
        let tenant = Tenant::test(1, 1);
        let [first, last] = [frame(0x01, &vec![b'x'; LONG], Some([1, 2, 3, 4])), frame(0x80, b"y", None)];
        for (room, is_read) in [(4 << 20, true), (LONG, false)] {
            let memory = body_memory(room);
            let mut frames = Frames::new(MemoryOwner { memory: &memory, tenant });
            assert!(seen(&mut frames, &first).is_empty());
            assert_eq!(memory.used() >= LONG, is_read, "{}", memory.used());
            let said = seen(&mut frames, &last);
            assert_eq!((said.len(), said[0] != "unread"), (1, is_read));
            assert_eq!(memory.used(), 0, "it is given back");
            assert_eq!(seen(&mut frames, &frame(0x81, b"next", None)), ["next"], "the session goes on");
        }
        let memory = body_memory(4 << 20);
        let mut frames = Frames::new(MemoryOwner { memory: &memory, tenant });
        frames.push(&first, |_| {});
        assert!(memory.used() >= LONG);
        drop(frames);
        assert_eq!(memory.used(), 0, "it goes with its session");
    }

    #[test]
    fn inside_a_head_or_a_payload_nothing_may_be_put() {
        let bytes = frame(0x81, &[b'a'; 200], None);
        for cut in [1, 2, 3, 4, 100] {
            let mut frames = Frames::default();
            frames.push(&bytes[..cut], |_| {});
            assert!(!frames.is_between_frames(), "{cut}");
            assert_eq!(frames.boundary(), Some(0), "{cut}: before the frame");
            frames.push(&bytes[cut..], |_| {});
            assert!(frames.is_between_frames(), "{cut}");
            assert_eq!(frames.boundary(), Some(bytes.len() - cut), "{cut}: after it");
            frames.push(&bytes[..cut], |_| {});
            frames.push(&bytes[cut..150], |_| {});
            assert_eq!(frames.boundary(), None, "{cut}: inside it");
        }
    }
}
