//! Whether every reader of a text reads the same in it: one pass that builds nothing. Of a name that an object has twice one
//! reader takes the first and another the last, and some refuse what others read. What cannot be told at a glance counts as
//! said otherwise: who wants to know reads it into values.

use super::{Scan, specials};

/// Objects and lists inside each other. Readers that build values go deeper.
const DEEPEST: usize = 64;
/// Names of one object; each is compared with those before it.
const MOST_NAMES: usize = 48;
/// Longer numbers, and those with exponents, may be more than a reader can hold.
const LONGEST_NUMBER: usize = 32;

/// Whether a value says everything once, of one that was checked.
pub fn says_all_once(value: &str) -> bool {
    Walk::new(value).whole().is_some()
}

/// What the last message of a list says, as it is written, if the list says everything once and the message is one text and
/// nothing else. Of a list that was checked.
pub fn last_plain_content(messages: &str) -> Option<&str> {
    if !messages.starts_with('[') {
        return None;
    }
    let mut walk = Walk::new(messages);
    walk.list(DEEPEST)?;
    walk.scan.end().ok()?;
    walk.plain_content
}

struct Walk<'t> {
    scan: Scan<'t>,
    /// Those of all objects that are open, with their values.
    members: Vec<(&'t str, &'t str)>,
    /// Of the value that ended last, where it was such an object.
    plain_content: Option<&'t str>,
}

impl<'t> Walk<'t> {
    fn new(text: &'t str) -> Self {
        Self { scan: Scan { text, at: 0 }, members: Vec::new(), plain_content: None }
    }

    fn whole(&mut self) -> Option<()> {
        self.scan.blank();
        self.value(DEEPEST)?;
        self.scan.end().ok()
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.scan.peek()? {
            b'"' => self.string().map(|_| ()),
            b'{' => self.object(depth.checked_sub(1)?),
            b'[' => {
                self.list(depth.checked_sub(1)?)?;
                self.plain_content = None;
                Some(())
            }
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.scan.word("true").ok(),
            b'f' => self.scan.word("false").ok(),
            b'n' => self.scan.word("null").ok(),
            _ => None,
        }
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        if !self.scan.opens(b']') {
            return Some(());
        }
        loop {
            // That of the item before.
            self.plain_content = None;
            self.value(depth)?;
            self.scan.blank();
            match self.scan.next().ok()? {
                b',' => self.scan.blank(),
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        let begin = self.members.len();
        let mut is_open = self.scan.opens(b'}');
        while is_open {
            let (name, has_escapes) = self.string()?;
            let others = &self.members[begin..];
            // Written with escapes it could be another name than it seems.
            if has_escapes || others.len() == MOST_NAMES || others.iter().any(|(other, _)| *other == name) {
                return None;
            }
            self.scan.blank();
            self.scan.expect(b':').ok()?;
            self.scan.blank();
            let value = self.scan.at;
            self.value(depth)?;
            self.members.push((name, &self.scan.text[value..self.scan.at]));
            self.scan.blank();
            match self.scan.next().ok()? {
                b',' => self.scan.blank(),
                b'}' => is_open = false,
                _ => return None,
            }
        }
        self.plain_content = plain_content(&self.members[begin..]);
        self.members.truncate(begin);
        Some(())
    }

    /// As it is written, and whether with escapes. Halves of letters have no meaning by themselves, and readers differ about them.
    fn string(&mut self) -> Option<(&'t str, bool)> {
        let from = self.scan.at;
        self.scan.expect(b'"').ok()?;
        let text = self.scan.text.as_bytes();
        let mut has_escapes = false;
        loop {
            let end = end_of_run(text, self.scan.at)?;
            self.scan.at = end + 1;
            if text.get(end) == Some(&b'"') {
                return Some((&self.scan.text[from..self.scan.at], has_escapes));
            }
            if let [b'u', b'd' | b'D', ..] = text.get(self.scan.at..)? {
                return None;
            }
            has_escapes = true;
            // What is escaped may be a quote or a backslash.
            self.scan.at += 1;
        }
    }

    fn number(&mut self) -> Option<()> {
        let from = self.scan.at;
        self.scan.number().ok()?;
        let written = &self.scan.text.as_bytes()[from..self.scan.at];
        (written.len() <= LONGEST_NUMBER && !written.iter().any(|byte| matches!(byte, b'e' | b'E'))).then_some(())
    }
}

/// The next quote or backslash: nothing else ends a run in a string that was checked. Short runs, as names are, take a word or
/// two.
fn end_of_run(text: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..2 {
        let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) else { break };
        let special = specials(u64::from_le_bytes(*word));
        if special != 0 {
            return Some(at + special.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr::memchr2(b'"', b'\\', text.get(at..)?).map(|end| at + end)
}

/// Of a message that has nothing else to be looked at.
fn plain_content<'t>(message: &[(&'t str, &'t str)]) -> Option<&'t str> {
    let is_plain = |(name, _): &(&str, &str)| matches!(*name, "\"role\"" | "\"content\"" | "\"name\"");
    if !message.iter().all(is_plain) {
        return None;
    }
    let content = message.iter().find(|(name, _)| *name == "\"content\"");
    content.map(|(_, value)| *value).filter(|value| value.starts_with('"'))
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
        assert!(says_all_once(&nested(DEEPEST)) && !says_all_once(&nested(DEEPEST + 1)));
        let many = |count: usize| {
            let members: Vec<String> = (0..count).map(|number| format!("\"{number}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert!(says_all_once(&many(MOST_NAMES)) && !says_all_once(&many(MOST_NAMES + 1)));
    }

    #[test]
    fn the_last_message_is_told_where_it_is_one_text() {
        for (messages, expected) in [
            (r#"[{"role":"user","content":"a"}]"#, Some("\"a\"")),
            (r#" [ { "content" : "a\n" , "role" : "user" , "name":"n" } ] "#, None),
            (r#"[{"role":"user","content":"a"},{"role":"user","content":"b\n"}]"#, Some("\"b\\n\"")),
            (r#"[{"role":"user","content":"a"},{"role":"user","content":[{"content":"b"}]}]"#, None),
            (r#"[{"role":"user","content":"a"},{"role":"assistant","content":"b","tool_calls":[]}]"#, None),
            (r#"[{"role":"user","content":"a"},{"role":"user","content":null}]"#, None),
            (r#"[{"role":"user","content":"a"},{"role":"user"}]"#, None),
            (r#"[{"role":"user","content":"a"},{}]"#, None),
            (r#"[{"role":"user","content":"a"},"b"]"#, None),
            (r#"[{"role":"user","content":"a"},[]]"#, None),
            (r#"[[{"role":"user","content":"a"}]]"#, None),
            (r#"[{"role":{"content":"a"},"content":"b"}]"#, Some("\"b\"")),
            (r#"[{"role":"user","content":"a","content":"b"}]"#, None),
            (r#"[{"role":"user","role":"user"},{"role":"user","content":"b"}]"#, None),
            (r#"{"role":"user","content":"a"}"#, None),
            (r#""a""#, None),
            ("[]", None),
        ] {
            assert_eq!(last_plain_content(messages), expected, "{messages}");
        }
    }
}
