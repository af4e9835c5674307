//! JSON as it was written: where the members of an object stand, in one pass that checks the whole text and builds
//! nothing. Reading one pass over every request and every answer is most of what the gateway itself spends on them.

mod unique_keys;

pub use unique_keys::{is_one_message, last_plain_text, says_all_once};

use serde::Deserialize;
use std::borrow::Cow;

/// One member of an object, as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'t> {
    /// With its quotes and escapes.
    pub key: &'t str,
    pub value: &'t str,
}

impl<'t> Member<'t> {
    /// What the key means; none if its escapes make no text.
    pub fn name(&self) -> Option<Cow<'t, str>> {
        let inner = &self.key[1..self.key.len() - 1];
        match memchr::memchr(b'\\', inner.as_bytes()) {
            None => Some(Cow::Borrowed(inner)),
            Some(_) => serde_json::from_str(self.key).ok().map(Cow::Owned),
        }
    }
}

/// The text is not JSON, or not what was asked for, from this byte on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not JSON from byte {0} on")]
pub struct MalformedJson(pub usize);

/// Members that an object may have. Nobody writes as many, and each costs more here than where it came from.
pub const MAX_MEMBERS: usize = 10_000;

/// The members of a text that is one object.
pub fn members(text: &[u8]) -> Result<Vec<Member<'_>>, MalformedJson> {
    members_of_text(utf8(text)?)
}

/// The same where it is known to be UTF-8.
pub fn members_of_text(text: &str) -> Result<Vec<Member<'_>>, MalformedJson> {
    let mut scan = Scan { text, at: 0 };
    let mut members = Vec::with_capacity(12);
    scan.blank();
    scan.expect(b'{')?;
    scan.blank();
    if scan.peek() == Some(b'}') {
        scan.at += 1;
        return scan.end().map(|()| members);
    }
    loop {
        scan.blank();
        let key = scan.at;
        scan.string()?;
        let key = &text[key..scan.at];
        scan.blank();
        scan.expect(b':')?;
        scan.blank();
        let value = scan.at;
        scan.value()?;
        if members.len() == MAX_MEMBERS {
            return Err(MalformedJson(value));
        }
        members.push(Member { key, value: &text[value..scan.at] });
        scan.blank();
        match scan.next()? {
            b',' => {}
            b'}' => return scan.end().map(|()| members),
            _ => return Err(MalformedJson(scan.at - 1)),
        }
    }
}

/// The items of a text that is one array.
pub fn items(text: &str) -> Result<Vec<&str>, MalformedJson> {
    let mut scan = Scan { text, at: 0 };
    let mut items = Vec::with_capacity(1);
    scan.blank();
    scan.expect(b'[')?;
    scan.blank();
    if scan.peek() == Some(b']') {
        scan.at += 1;
        return scan.end().map(|()| items);
    }
    loop {
        scan.blank();
        let item = scan.at;
        scan.value()?;
        items.push(&text[item..scan.at]);
        scan.blank();
        match scan.next()? {
            b',' => {}
            b']' => return scan.end().map(|()| items),
            _ => return Err(MalformedJson(scan.at - 1)),
        }
    }
}

/// What a string means, of one that was checked; none if its escapes make no text, or if it is no string.
pub fn read_text(written: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'t>(#[serde(borrow)] Cow<'t, str>);
    let plain = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match plain.filter(|plain| memchr::memchr(b'\\', plain.as_bytes()).is_none()) {
        Some(plain) => Some(Cow::Borrowed(plain)),
        None => serde_json::from_str::<Text<'_>>(written).ok().map(|text| text.0),
    }
}

/// Whether the text is one value and nothing else.
pub fn check(text: &[u8]) -> Result<(), MalformedJson> {
    let mut scan = Scan { text: utf8(text)?, at: 0 };
    scan.blank();
    scan.value()?;
    scan.end()
}

fn utf8(text: &[u8]) -> Result<&str, MalformedJson> {
    std::str::from_utf8(text).map_err(|error| MalformedJson(error.valid_up_to()))
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, MalformedJson> {
        let byte = self.peek().ok_or(MalformedJson(self.at))?;
        self.at += 1;
        Ok(byte)
    }

    fn expect(&mut self, byte: u8) -> Result<(), MalformedJson> {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            _ => Err(MalformedJson(self.at)),
        }
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn end(&mut self) -> Result<(), MalformedJson> {
        self.blank();
        if self.at == self.text.len() { Ok(()) } else { Err(MalformedJson(self.at)) }
    }

    /// Passes one value. Nesting costs a bit per level and no stack, however deep it goes.
    fn value(&mut self) -> Result<(), MalformedJson> {
        let mut nest = Nest::default();
        loop {
            match self.peek() {
                Some(b'"') => self.string()?,
                Some(b'{') if self.opens(b'}') => {
                    nest.enter(true);
                    self.key()?;
                    continue;
                }
                Some(b'[') if self.opens(b']') => {
                    nest.enter(false);
                    continue;
                }
                Some(b'{' | b'[') => {}
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                _ => return Err(MalformedJson(self.at)),
            }
            loop {
                let Some(is_object) = nest.innermost() else { return Ok(()) };
                self.blank();
                match (self.next()?, is_object) {
                    (b',', true) => {
                        self.blank();
                        self.key()?;
                        break;
                    }
                    (b',', false) => {
                        self.blank();
                        break;
                    }
                    (b'}', true) | (b']', false) => nest.leave(),
                    _ => return Err(MalformedJson(self.at - 1)),
                }
            }
        }
    }

    /// Passes an opening bracket; false if it closes at once.
    fn opens(&mut self, close: u8) -> bool {
        self.at += 1;
        self.blank();
        let closes = self.peek() == Some(close);
        self.at += usize::from(closes);
        !closes
    }

    fn key(&mut self) -> Result<(), MalformedJson> {
        self.string()?;
        self.blank();
        self.expect(b':')?;
        self.blank();
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), MalformedJson> {
        match self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            true => {
                self.at += word.len();
                Ok(())
            }
            false => Err(MalformedJson(self.at)),
        }
    }

    fn number(&mut self) -> Result<(), MalformedJson> {
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), MalformedJson> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(MalformedJson(start)) }
    }

    fn string(&mut self) -> Result<(), MalformedJson> {
        self.expect(b'"')?;
        let text = self.text.as_bytes();
        loop {
            let end = plain_until(text, self.at);
            self.at = end + 1;
            match text.get(end) {
                Some(b'"') => return Ok(()),
                Some(b'\\') => self.escape()?,
                _ => return Err(MalformedJson(end)),
            }
        }
    }

    #[inline(never)]
    fn escape(&mut self) -> Result<(), MalformedJson> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                let digits = self.text.as_bytes().get(self.at..self.at + 4);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(MalformedJson(self.at));
                }
                self.at += 4;
                Ok(())
            }
            _ => Err(MalformedJson(self.at - 1)),
        }
    }
}

/// Which brackets are open: a bit each, the innermost lowest, 64 at a time.
#[derive(Default)]
struct Nest {
    depth: usize,
    bits: u64,
    outer: Vec<u64>,
}

impl Nest {
    fn enter(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(is_object);
        self.depth += 1;
    }

    fn leave(&mut self) {
        self.bits >>= 1;
        self.depth -= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.bits = self.outer.pop().unwrap_or_default();
        }
    }

    fn innermost(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.bits & 1 == 1)
    }
}

/// Where the run of ordinary characters inside a string ends: at a quote, a backslash, a control character or the end.
/// Short runs, as keys are, take a word or two.
#[inline]
fn plain_until(text: &[u8], mut at: usize) -> usize {
    for _ in 0..4 {
        let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) else { return plain_end(text, at) };
        let special = specials(u64::from_le_bytes(*word));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    plain_until_far(text, at)
}

/// The same for a long run, which goes by vectors: first to its end, then back for what may not stand in it.
#[inline(never)]
fn plain_until_far(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let run = &rest[..memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())];
    let lowest = run.iter().fold(u8::MAX, |lowest, byte| lowest.min(*byte));
    if lowest < b' ' { plain_end(text, at) } else { at + run.len() }
}

/// The same byte by byte.
#[inline(never)]
fn plain_end(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len())
}

fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// The high bit of each byte that is special; exact for the lowest of them, which is the one that counts.
fn specials(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES << 7;
    let below = |word: u64, least: u64| word.wrapping_sub(ONES * least);
    let quote = below(word ^ (ONES * b'"' as u64), 1);
    let backslash = below(word ^ (ONES * b'\\' as u64), 1);
    // A byte with its high bit set is below nothing; the exclusive or leaves that bit as it was.
    (below(word, 0x20) | quote | backslash) & !word & HIGHS
}

#[cfg(test)]
mod tests;
