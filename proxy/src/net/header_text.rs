//! The value of a header of ours before it has a form. A map of headers wants a value of its own for each; lines want the
//! bytes alone, and need no memory for them.

use http::HeaderValue;
use std::cell::RefCell;
use std::sync::LazyLock;

#[derive(Debug, Clone, Copy)]
pub enum HeaderText<'t> {
    Static(&'static str),
    Value(&'t HeaderValue),
    /// Letters of ours.
    Bytes(&'t [u8]),
    Number(u64),
    /// One that stands in many answers, as caps do.
    Common(u64),
    /// A number of seconds, as `60s`.
    Seconds(u64),
}

impl HeaderText<'_> {
    pub fn to_value(self) -> HeaderValue {
        match self {
            Self::Static(text) => HeaderValue::from_static(text),
            Self::Value(value) => value.clone(),
            Self::Bytes(bytes) => HeaderValue::from_bytes(bytes).unwrap_or(HeaderValue::from_static("")),
            Self::Number(number) => HeaderValue::from(number),
            Self::Common(number) => common(number),
            Self::Seconds(count) => seconds(count),
        }
    }

    pub fn push_to(self, out: &mut Vec<u8>) {
        let number = |number: u64, out: &mut Vec<u8>| {
            out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        };
        match self {
            Self::Static(text) => out.extend_from_slice(text.as_bytes()),
            Self::Value(value) => out.extend_from_slice(value.as_bytes()),
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Number(count) | Self::Common(count) => number(count, out),
            Self::Seconds(count) => {
                number(count, out);
                out.push(b's');
            }
        }
    }
}

/// Each thread keeps the last few.
fn common(count: u64) -> HeaderValue {
    const CACHED: usize = 16;
    thread_local! {
        static WRITTEN: RefCell<[(u64, HeaderValue); CACHED]> =
            const { RefCell::new([const { (0, HeaderValue::from_static("0")) }; CACHED]) };
    }
    WRITTEN.with_borrow_mut(|written| {
        // Caps are mostly round: their last bits are all the same.
        let place = &mut written[(count.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize];
        if place.0 != count {
            *place = (count, HeaderValue::from(count));
        }
        place.1.clone()
    })
}

/// Most windows are minutes.
fn seconds(count: u64) -> HeaderValue {
    static MINUTE: LazyLock<[HeaderValue; 61]> = LazyLock::new(|| std::array::from_fn(|n| written(n as u64)));
    fn written(count: u64) -> HeaderValue {
        HeaderValue::from_maybe_shared(format!("{count}s")).unwrap_or(HeaderValue::from_static("1s"))
    }
    let known = usize::try_from(count).ok().and_then(|count| MINUTE.get(count));
    known.cloned().unwrap_or_else(|| written(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_and_lines_have_the_same_text() {
        let value = HeaderValue::from_static("value");
        let texts = [
            (HeaderText::Static("text"), "text".to_owned()),
            (HeaderText::Value(&value), "value".to_owned()),
            (HeaderText::Bytes(b"bytes"), "bytes".to_owned()),
            (HeaderText::Number(u64::MAX), u64::MAX.to_string()),
            (HeaderText::Seconds(0), "0s".to_owned()),
            (HeaderText::Seconds(60), "60s".to_owned()),
            (HeaderText::Seconds(86_400), "86400s".to_owned()),
        ];
        // Some share a place among those that are kept.
        let common = [0, 7, 16, 0, 1000, 10_000, 1000, 999_999, 1 << 40, u64::MAX, 1000, 0];
        let common = common.map(|count| (HeaderText::Common(count), count.to_string()));
        for (text, expected) in texts.into_iter().chain(common) {
            let mut line = Vec::new();
            text.push_to(&mut line);
            assert_eq!(line, expected.as_bytes(), "{text:?}");
            assert_eq!(text.to_value(), expected, "{text:?}");
        }
    }
}
