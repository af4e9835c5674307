//! Whether every reader of a text reads the same in it: one pass that builds nothing. Of a name that an object has twice one
//! reader takes the first and another the last, and some refuse what others read. What cannot be told at a glance counts as
//! said otherwise: who wants to know reads it into values.
//!
//! The text was checked before, as all fields of a request are: what cannot stand in JSON is not looked for again.

use super::{read_text, specials};
use std::borrow::Cow;
use std::ops::Range;

/// Objects and lists inside each other. Readers that build values go deeper.
const MAX_DEPTH: usize = 64;
/// Names of one object; each is compared with those before it.
const MAX_NAMES: usize = 48;
/// Longer numbers, and those with exponents, may be more than a reader can hold.
const MAX_NUMBER: usize = 32;

/// Whether a value says everything once.
pub fn says_all_once(value: &str) -> bool {
    let mut walk = Walk::new(value);
    walk.blank();
    walk.value(MAX_DEPTH).is_some() && walk.is_at_end()
}

/// What the last message of a list says, if the list says everything once and the message is one text and nothing else.
pub fn last_plain_text(messages: &str) -> Option<Cow<'_, str>> {
    let mut walk = Walk::new(messages);
    if walk.peek() != Some(b'[') {
        return None;
    }
    walk.list(MAX_DEPTH)?;
    let (inside, has_escapes) = walk.plain_content.take().filter(|_| walk.is_at_end())?;
    match has_escapes {
        false => messages.get(inside).map(Cow::Borrowed),
        true => read_text(messages.get(inside.start.checked_sub(1)?..=inside.end)?),
    }
}

/// Whether a list is one message, written as most are: its role and its content, one text.
pub fn is_one_message(messages: &str) -> bool {
    let mut walk = Walk::new(messages);
    walk.peek() == Some(b'[')
        && walk.opens(b']')
        && walk.usual_message().is_some()
        && walk.next() == Some(b']')
        && walk.is_at_end()
}

/// Where the inside of a string stands, and whether it has escapes.
type StringPlace = (Range<usize>, bool);

struct Walk<'t> {
    text: &'t [u8],
    at: usize,
    /// Those of all objects that are open.
    names: Vec<&'t [u8]>,
    /// What the value that ended last says, where it was a message of one text and nothing else.
    plain_content: Option<StringPlace>,
}

impl<'t> Walk<'t> {
    fn new(text: &'t str) -> Self {
        Self { text: text.as_bytes(), at: 0, names: Vec::new(), plain_content: None }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        self.blank();
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn is_at_end(&mut self) -> bool {
        self.blank();
        self.at == self.text.len()
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(|_| ()),
            b'{' => self.object(depth.checked_sub(1)?),
            b'[' => {
                self.list(depth.checked_sub(1)?)?;
                self.plain_content = None;
                Some(())
            }
            b't' | b'n' => self.pass(4),
            b'f' => self.pass(5),
            _ => self.number(),
        }
    }

    fn pass(&mut self, count: usize) -> Option<()> {
        self.at += count;
        Some(())
    }

    /// Passes an opening bracket; false if it closes at once.
    fn opens(&mut self, close: u8) -> bool {
        self.at += 1;
        self.blank();
        let closes = self.peek() == Some(close);
        self.at += usize::from(closes);
        !closes
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        if !self.opens(b']') {
            return Some(());
        }
        loop {
            let from = self.at;
            self.plain_content = self.usual_message();
            if self.plain_content.is_none() {
                self.at = from;
                self.value(depth)?;
            }
            match self.next()? {
                b',' => self.blank(),
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    /// What a message says that is written as most are: its role, then its content, one text, and nothing else. Else nothing is
    /// known of what stands here.
    fn usual_message(&mut self) -> Option<StringPlace> {
        self.expect(b"{")?;
        self.expect(b"\"role\"")?;
        self.expect(b":")?;
        self.string()?;
        self.blank();
        self.expect(b",")?;
        self.expect(b"\"content\"")?;
        self.expect(b":")?;
        let content = self.long_string()?;
        self.blank();
        self.expect(b"}")?;
        Some(content)
    }

    /// Passes these bytes, and blanks behind them.
    #[inline(always)]
    fn expect<const LENGTH: usize>(&mut self, bytes: &[u8; LENGTH]) -> Option<()> {
        if self.text.get(self.at..)?.first_chunk::<LENGTH>() != Some(bytes) {
            return None;
        }
        self.at += LENGTH;
        self.blank();
        Some(())
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        let text = self.text;
        let begin = self.names.len();
        let (mut is_plain, mut content) = (true, None);
        let mut is_open = self.opens(b'}');
        while is_open {
            let (name, has_escapes) = self.string()?;
            let name = text.get(name)?;
            let others = &self.names[begin..];
            // Written with escapes it could be another name than it seems.
            if has_escapes || others.len() == MAX_NAMES || others.contains(&name) {
                return None;
            }
            self.names.push(name);
            if self.next()? != b':' {
                return None;
            }
            self.blank();
            match (name, self.peek()) {
                (b"content", Some(b'"')) => content = Some(self.string()?),
                (b"role" | b"name" | b"content", _) => self.value(depth)?,
                _ => {
                    is_plain = false;
                    self.value(depth)?;
                }
            }
            match self.next()? {
                b',' => self.blank(),
                b'}' => is_open = false,
                _ => return None,
            }
        }
        self.plain_content = content.filter(|_| is_plain);
        self.names.truncate(begin);
        Some(())
    }

    /// What stands between the quotes, and whether it has escapes. Halves of letters have no meaning by themselves, and readers
    /// differ about them.
    fn string(&mut self) -> Option<StringPlace> {
        self.string_by(end_of_short_run)
    }

    /// The same of one that is long, as texts are.
    fn long_string(&mut self) -> Option<StringPlace> {
        self.string_by(end_of_run)
    }

    /// Runs end with a quote or a backslash.
    #[inline(always)]
    fn string_by(&mut self, end_of_run: impl Fn(&[u8], usize) -> Option<usize>) -> Option<StringPlace> {
        if self.peek() != Some(b'"') {
            return None;
        }
        let (from, mut has_escapes) = (self.at + 1, false);
        self.at = from;
        loop {
            let end = end_of_run(self.text, self.at)?;
            self.at = end + 1;
            match self.text.get(end..)? {
                [b'"', ..] => return Some((from..end, has_escapes)),
                [b'\\', b'u', b'd' | b'D', ..] => return None,
                _ => {}
            }
            has_escapes = true;
            // What is escaped may be a quote or a backslash.
            self.at += 1;
        }
    }

    fn number(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let length = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'.')).unwrap_or(rest.len());
        self.at += length;
        ((1..=MAX_NUMBER).contains(&length) && !matches!(self.peek(), Some(b'e' | b'E'))).then_some(())
    }
}

/// The next quote or backslash.
fn end_of_run(text: &[u8], at: usize) -> Option<usize> {
    memchr::memchr2(b'"', b'\\', text.get(at..)?).map(|end| at + end)
}

/// The same of short runs, as names are: they take a word or two.
#[inline]
fn end_of_short_run(text: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..2 {
        let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) else { break };
        let special = specials(u64::from_le_bytes(*word));
        if special != 0 {
            return Some(at + special.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    end_of_run(text, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_readers_could_read_otherwise_is_not_said_once() {
        for (text, expected) in [
            (r#"{"a":1,"b":[{"a":null},{"a":"x"}],"c":{"a":1.5,"b":true}}"#, true),
            (r#" [ 1 , -0.5 , true , false , null , "é\n\u00e9" , { } , [ ] ] "#, true),
            (r#""\\ud800""#, true),
            (r#"{"a":1,"a":1}"#, false),
            (r#"{"b":{"a":1,"a":1}}"#, false),
            (r#"[{"c":[{"a":1,"b":2,"a":1}]}]"#, false),
            (r#"{"a":1,"\u0061":1}"#, false),
            (r#"{"\u0061":1}"#, false),
            (r#""\ud83d\ude42""#, false),
            (r#""\ud800""#, false),
            ("1e5", false),
            ("1e999", false),
            ("123456789012345678901234567890123", false),
            ("{} x", false),
            ("[1,]", false),
            ("[1", false),
            ("", false),
        ] {
            assert_eq!(says_all_once(text), expected, "{text}");
        }
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(says_all_once(&nested(MAX_DEPTH)) && !says_all_once(&nested(MAX_DEPTH + 1)));
        let many = |count: usize| {
            let members: Vec<String> = (0..count).map(|number| format!("\"{number}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert!(says_all_once(&many(MAX_NAMES)) && !says_all_once(&many(MAX_NAMES + 1)));
    }

    #[test]
    fn the_last_message_is_told_where_it_is_one_text() {
        for (messages, expected) in [
            (r#"[{"role":"user","content":"a"}]"#, Some("a")),
            (r#"[ { "role" : "user" , "content" : "a" } , { "role":"user" , "content":"b" } ]"#, Some("b")),
            (r#"[{"role":"user","content":"a"},{"content":"b","role":"user"}]"#, Some("b")),
            (r#"[{"role":"user","content":"a"},{"role":"user","content":"b","name":"n"}]"#, Some("b")),
            (r#"[{"role":"user","content":"\ud83d\ude42"}]"#, None),
            (r#"[{"role":"user","content":"a","role":"user"}]"#, None),
            (r#" [ { "content" : "a\n" , "role" : "user" , "name":"n" } ] "#, None),
            (r#"[{"role":"user","content":"a"},{"role":"user","content":"b\n"}]"#, Some("b\n")),
            (r#"[{"role":"user","content":"a"},{"role":"user","content":[{"content":"b"}]}]"#, None),
            (r#"[{"role":"user","content":"a"},{"role":"assistant","content":"b","tool_calls":[]}]"#, None),
            (r#"[{"role":"user","content":"a"},{"role":"user","content":null}]"#, None),
            (r#"[{"role":"user","content":"a"},{"role":"user"}]"#, None),
            (r#"[{"role":"user","content":"a"},{}]"#, None),
            (r#"[{"role":"user","content":"a"},"b"]"#, None),
            (r#"[{"role":"user","content":"a"},[]]"#, None),
            (r#"[[{"role":"user","content":"a"}]]"#, None),
            (r#"[{"role":{"content":"a"},"content":"b"}]"#, Some("b")),
            (r#"[{"role":"user","content":"a","content":"b"}]"#, None),
            (r#"[{"role":"user","role":"user"},{"role":"user","content":"b"}]"#, None),
            (r#"{"role":"user","content":"a"}"#, None),
            (r#""a""#, None),
            ("[]", None),
        ] {
            assert_eq!(last_plain_text(messages).as_deref(), expected, "{messages}");
        }
    }
}
