//! JSON in one spelling: the keys of every object sorted, no blanks. One pass over a text that was read before; what is
//! already in order, as most arrays and small objects are, is copied once.

/// Nobody nests as deep; each level is a call.
const MAX_DEPTH: usize = 128;

/// Sorting moves an object once for each object around it. A text that would be moved more often than this has no spelling.
const MAX_MOVES: usize = 32;

/// The text without these fields of the outermost object. None where it is nested too deep, or is not JSON.
pub fn canonical(text: &[u8], without: &[&str]) -> Option<Vec<u8>> {
    let mut writer = Writer {
        text,
        at: 0,
        out: Vec::with_capacity(text.len()),
        without,
        depth: 0,
        may_move: text.len().saturating_mul(MAX_MOVES),
        members: Vec::with_capacity(16),
        sorted: Vec::new(),
    };
    writer.blank();
    writer.value()?;
    writer.blank();
    (writer.at == text.len()).then_some(writer.out)
}

struct Writer<'t> {
    text: &'t [u8],
    at: usize,
    out: Vec<u8>,
    without: &'t [&'t str],
    depth: usize,
    /// Bytes that may still be moved.
    may_move: usize,
    /// Of all objects that are open, those of the innermost last.
    members: Vec<Written>,
    /// Room to put an object in order.
    sorted: Vec<u8>,
}

/// A member of an object in what was written: where it begins, where its key ends, and where it ends with its comma.
#[derive(Clone, Copy)]
struct Written {
    begin: usize,
    key_end: usize,
    end: usize,
}

impl Writer<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, expected: u8) -> Option<()> {
        (self.peek()? == expected).then(|| self.at += 1)
    }

    fn value(&mut self) -> Option<()> {
        match self.peek()? {
            b'{' => self.nested(Self::object),
            b'[' => self.nested(Self::array),
            b'"' => self.string(),
            _ => self.scalar(),
        }
    }

    fn nested(&mut self, write: fn(&mut Self) -> Option<()>) -> Option<()> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        write(self)?;
        self.depth -= 1;
        Some(())
    }

    /// As it is written, with its quotes.
    fn string(&mut self) -> Option<()> {
        let begin = self.at;
        self.take(b'"')?;
        loop {
            let rest = self.text.get(self.at..)?;
            self.at += memchr::memchr2(b'"', b'\\', rest)?;
            match self.peek()? {
                b'"' => break,
                _ => self.at += 2,
            }
        }
        self.at += 1;
        self.out.extend_from_slice(self.text.get(begin..self.at)?);
        Some(())
    }

    fn scalar(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let is_over = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
        let length = rest.iter().position(is_over).unwrap_or(rest.len());
        if length == 0 {
            return None;
        }
        self.out.extend_from_slice(rest.get(..length)?);
        self.at += length;
        Some(())
    }

    fn array(&mut self) -> Option<()> {
        self.take(b'[')?;
        self.out.push(b'[');
        self.blank();
        if self.take(b']').is_none() {
            loop {
                self.blank();
                self.value()?;
                self.blank();
                if self.take(b',').is_none() {
                    break;
                }
                self.out.push(b',');
            }
            self.take(b']')?;
        }
        self.out.push(b']');
        Some(())
    }

    fn object(&mut self) -> Option<()> {
        self.take(b'{')?;
        self.out.push(b'{');
        self.blank();
        if self.take(b'}').is_none() {
            let first = self.members.len();
            loop {
                self.blank();
                self.member()?;
                self.blank();
                if self.take(b',').is_none() {
                    break;
                }
            }
            self.take(b'}')?;
            self.sort(first)?;
            if self.members.len() > first {
                // The comma of the last.
                self.out.pop();
            }
            self.members.truncate(first);
        }
        self.out.push(b'}');
        Some(())
    }

    fn member(&mut self) -> Option<()> {
        let begin = self.out.len();
        self.string()?;
        let key_end = self.out.len();
        let is_left_out = self.depth == 1 && {
            let key = self.out.get(begin + 1..key_end - 1)?;
            self.without.iter().any(|name| name.as_bytes() == key)
        };
        self.blank();
        self.take(b':')?;
        self.out.push(b':');
        self.blank();
        self.value()?;
        self.out.push(b',');
        match is_left_out {
            true => self.out.truncate(begin),
            false => self.members.push(Written { begin, key_end, end: self.out.len() }),
        }
        Some(())
    }

    /// Puts the members of the innermost object in order, which begin here. Those of the same name stay in theirs: it decides
    /// which of them counts.
    fn sort(&mut self, first: usize) -> Option<()> {
        let Self { out, members, sorted, may_move, .. } = self;
        let members = members.get_mut(first..)?;
        let key = |member: &Written| &out[member.begin..member.key_end];
        if members.is_sorted_by(|one, next| key(one) <= key(next)) {
            return Some(());
        }
        let (begin, end) = (members.first()?.begin, members.last()?.end);
        *may_move = may_move.checked_sub(end - begin)?;
        members.sort_by(|one, other| key(one).cmp(key(other)));
        sorted.clear();
        sorted.reserve(end - begin);
        for member in &*members {
            sorted.extend_from_slice(&out[member.begin..member.end]);
        }
        out[begin..end].copy_from_slice(sorted);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    fn text(written: &str) -> Option<String> {
        canonical(written.as_bytes(), &["stream", "stream_options"]).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_text_has_one_spelling() {
        for (written, expected) in [
            ("{}", Some("{}")),
            (" { } ", Some("{}")),
            (r#"{"b":1,"a":[ 1 , {"d":null, "c":"x\"}"} ]}"#, Some(r#"{"a":[1,{"c":"x\"}","d":null}],"b":1}"#)),
            (r#"{"a":1, "a":2}"#, Some(r#"{"a":1,"a":2}"#)),
            (r#"{"b":{},"stream":true,"a":[],"stream_options":{"x":[1]}}"#, Some(r#"{"a":[],"b":{}}"#)),
            (r#"{"stream":true}"#, Some("{}")),
            (r#"{"a":{"stream":true}}"#, Some(r#"{"a":{"stream":true}}"#)),
            (r#"{"é":1,"z":2}"#, Some(r#"{"z":2,"é":1}"#)),
            ("", None),
            ("{", None),
            (r#"{"a"}"#, None),
            (r#"{"a":1} x"#, None),
            (r#"{"a":"b"#, None),
            ("[1,]", None),
        ] {
            assert_eq!(text(written).as_deref(), expected, "{written}");
        }
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(text(&deep(MAX_DEPTH)).is_some());
        assert!(text(&deep(MAX_DEPTH + 1)).is_none());
    }

    #[test]
    fn a_text_that_would_be_moved_too_often_has_no_spelling() {
        let mut written = "x".repeat(1 << 16);
        written = format!("\"{written}\"");
        for _ in 0..100 {
            written = format!(r#"{{"b":{written},"a":1}}"#);
        }
        assert!(text(&written).is_none());
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-d\"\\\\]{0,3}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    /// Written with its members turned round at every level, and with blanks.
    fn turned(value: &Value, out: &mut String) {
        match value {
            Value::Object(members) => {
                out.push_str("{ ");
                for (place, (name, value)) in members.iter().rev().enumerate() {
                    out.push_str(if place > 0 { " ,\n" } else { "" });
                    out.push_str(&Value::from(name.as_str()).to_string());
                    out.push_str(" :\t");
                    turned(value, out);
                }
                out.push_str(" }");
            }
            Value::Array(items) => {
                out.push('[');
                for (place, item) in items.iter().enumerate() {
                    out.push_str(if place > 0 { ", " } else { "" });
                    turned(item, out);
                }
                out.push(']');
            }
            other => out.push_str(&other.to_string()),
        }
    }

    proptest! {
        #[test]
        fn the_order_of_keys_and_blanks_change_nothing(value in json()) {
            let mut other = String::new();
            turned(&value, &mut other);
            let spelled = canonical(value.to_string().as_bytes(), &[]).unwrap();
            prop_assert_eq!(&spelled, &canonical(other.as_bytes(), &[]).unwrap());
            prop_assert_eq!(serde_json::from_slice::<Value>(&spelled).unwrap(), value);
        }

        #[test]
        fn values_that_differ_are_spelled_differently(one in json(), other in json()) {
            let spelled = |value: &Value| canonical(value.to_string().as_bytes(), &[]).unwrap();
            prop_assert_eq!(spelled(&one) == spelled(&other), one == other);
        }

        #[test]
        fn whatever_comes_it_ends(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = canonical(&bytes, &["stream"]);
        }
    }
}
