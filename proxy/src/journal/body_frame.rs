//! The frame of a segment that holds the bodies and heads of a call, right after its record: where each part ends, then
//! the parts. Written without being put together first: a body can be a megabyte, and most are shared with the answer.

use crate::journal::logged_body::captured::CapturedBody;

const NUMBERS: usize = 8;
/// Flags and numbers before the parts.
pub const HEAD: usize = 1 + NUMBERS * 8;

const ASKS_USAGE: u8 = 1;
const IS_DEBUG: u8 = 2;
const REQUEST_IS_TEXT: u8 = 4;
const RESPONSE_IS_TEXT: u8 = 8;

/// What is to be written.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    pub heads: &'a [u8],
    /// Where the client's head ends in it, and where the provider's.
    pub asked_end: usize,
    pub sent_end: usize,
    pub request: &'a CapturedBody,
    pub sent: &'a [u8],
    pub asks_usage: bool,
    pub is_debug: bool,
    pub response: &'a CapturedBody,
}

/// What was written.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredBodies<'b> {
    pub asked_head: &'b [u8],
    pub sent_head: &'b [u8],
    pub answered_head: &'b [u8],
    pub request: StoredText<'b>,
    pub sent: &'b [u8],
    pub asks_usage: bool,
    /// Whether more than a failed answer was kept.
    pub is_debug: bool,
    pub response: StoredText<'b>,
}

/// As much of a body as was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredText<'b> {
    pub bytes: &'b [u8],
    pub length: u64,
    pub is_text: bool,
}

impl<'a> Parts<'a> {
    pub fn head(&self) -> [u8; HEAD] {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let mut head = [0; HEAD];
        head[0] = flag(self.asks_usage, ASKS_USAGE)
            | flag(self.is_debug, IS_DEBUG)
            | flag(self.request.is_text, REQUEST_IS_TEXT)
            | flag(self.response.is_text, RESPONSE_IS_TEXT);
        let numbers = [
            self.asked_end as u64,
            self.sent_end as u64,
            self.heads.len() as u64,
            self.request.stored_length() as u64,
            self.sent.len() as u64,
            self.response.stored_length() as u64,
            self.request.length,
            self.response.length,
        ];
        for (place, number) in head[1..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        head
    }

    /// In the order in which they are written after the head and the heads.
    pub fn slices(&self) -> [&'a [u8]; 5] {
        let (request, response) = (self.request, self.response);
        [&request.whole, &request.more, self.sent, &response.whole, &response.more]
    }
}

impl<'b> StoredBodies<'b> {
    /// None when it is not what we wrote.
    pub fn decode(bytes: &'b [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD)?;
        let mut numbers = [0_u64; NUMBERS];
        for (number, place) in numbers.iter_mut().zip(head[1..].chunks_exact(8)) {
            *number = u64::from_le_bytes(place.try_into().ok()?);
        }
        let [asked_end, sent_end, heads, request, sent, response, request_length, response_length] = numbers;
        let size = |number: u64| usize::try_from(number).ok();
        let (heads, rest) = rest.split_at_checked(size(heads)?)?;
        let (request, rest) = rest.split_at_checked(size(request)?)?;
        let (sent, rest) = rest.split_at_checked(size(sent)?)?;
        let (response, rest) = rest.split_at_checked(size(response)?)?;
        let (asked_end, sent_end) = (size(asked_end)?, size(sent_end)?);
        let is_set = |flag: u8| head[0] & flag != 0;
        rest.is_empty().then_some(())?;
        Some(Self {
            asked_head: heads.get(..asked_end)?,
            sent_head: heads.get(asked_end..sent_end)?,
            answered_head: heads.get(sent_end..)?,
            request: StoredText { bytes: request, length: request_length, is_text: is_set(REQUEST_IS_TEXT) },
            sent,
            asks_usage: is_set(ASKS_USAGE),
            is_debug: is_set(IS_DEBUG),
            response: StoredText { bytes: response, length: response_length, is_text: is_set(RESPONSE_IS_TEXT) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn written() -> Vec<u8> {
        let request =
            CapturedBody { whole: Bytes::from_static(b"req"), length: 9, is_text: true, ..CapturedBody::default() };
        let response =
            CapturedBody { whole: Bytes::from_static(b"re"), more: b"sp".to_vec(), length: 4, is_text: false };
        let parts = Parts {
            heads: b"abcdef",
            asked_end: 1,
            sent_end: 3,
            request: &request,
            sent: b"sent",
            asks_usage: true,
            is_debug: false,
            response: &response,
        };
        [&parts.head()[..], parts.heads, &parts.slices().concat()].concat()
    }

    #[test]
    fn a_body_is_read_back_as_it_was_written() {
        let bytes = written();
        let expected = StoredBodies {
            asked_head: b"a",
            sent_head: b"bc",
            answered_head: b"def",
            request: StoredText { bytes: b"req", length: 9, is_text: true },
            sent: b"sent",
            asks_usage: true,
            is_debug: false,
            response: StoredText { bytes: b"resp", length: 4, is_text: false },
        };
        assert_eq!(StoredBodies::decode(&bytes), Some(expected));
    }

    #[test]
    fn what_is_no_body_is_none() {
        let bytes = written();
        for cut in 0..bytes.len() {
            assert_eq!(StoredBodies::decode(&bytes[..cut]), None, "{cut}");
        }
        let mut absurd = bytes.clone();
        absurd[1..9].fill(0xff);
        assert_eq!(StoredBodies::decode(&absurd), None);
        assert_eq!(StoredBodies::decode(&[bytes, vec![0]].concat()), None);
    }
}
