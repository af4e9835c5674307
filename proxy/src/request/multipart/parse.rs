//! Where the parts of a form stand (RFC 7578 over RFC 2046), found in one pass and without copying any of them.

use memchr::memmem;
use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormPart {
    pub name: String,
    pub is_file: bool,
    /// From its delimiter to the next one's.
    pub whole: Range<usize>,
    pub value: Range<usize>,
}

/// A request with more of them is nobody's upload.
const MAX_PARTS: usize = 1000;

/// The parts, and where the closing delimiter begins. None when it is no whole form.
pub(super) fn parts(body: &[u8], boundary: &[u8]) -> Option<(Vec<FormPart>, usize)> {
    let delimiter = [b"--", boundary].concat();
    let finder = memmem::Finder::new(&delimiter);
    let mut parts = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    let mut from = 0;
    loop {
        let at = from + finder.find(&body[from..])?;
        let after = at + delimiter.len();
        from = after;
        // It counts at the beginning of a line alone.
        if at != 0 && !body[..at].ends_with(b"\r\n") {
            continue;
        }
        let (line, is_last) = match &body[after..] {
            rest if rest.starts_with(b"--") => (0, true),
            rest => match end_of_line(rest) {
                Some(line) => (after + line, false),
                None => continue,
            },
        };
        if let Some((start, content)) = open {
            // A part without so much as the line break before its end has no end.
            let end = at.checked_sub(2).filter(|end| *end + 2 >= content)?;
            parts.push(part(body, start..at, content, end.max(content))?);
        }
        if is_last {
            return Some((parts, at));
        }
        if parts.len() == MAX_PARTS {
            return None;
        }
        open = Some((at, line));
        // Its own line break may already belong to the next delimiter.
        from = line - 2;
    }
}

/// Past the line break, if nothing but blanks stand before it.
fn end_of_line(rest: &[u8]) -> Option<usize> {
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    rest[blanks..].starts_with(b"\r\n").then_some(blanks + 2)
}

fn part(body: &[u8], whole: Range<usize>, content: usize, end: usize) -> Option<FormPart> {
    let text = &body[content..end];
    let (head, value) = match text.starts_with(b"\r\n") {
        true => (&text[..0], content + 2),
        false => {
            let blank = memmem::find(text, b"\r\n\r\n")?;
            (&text[..blank], content + blank + 4)
        }
    };
    let disposition = disposition(head);
    let name = parameter(disposition, b"name").unwrap_or_default();
    let is_file = parameter(disposition, b"filename").or_else(|| parameter(disposition, b"filename*")).is_some();
    Some(FormPart { name: String::from_utf8_lossy(&name).into_owned(), is_file, whole, value: value..end.max(value) })
}

/// What the head of a part says of it; empty when it says nothing.
pub(super) fn disposition(head: &[u8]) -> &[u8] {
    let found = head.split(|byte| *byte == b'\n').find_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        line[..colon].trim_ascii().eq_ignore_ascii_case(b"content-disposition").then(|| line[colon + 1..].trim_ascii())
    });
    found.unwrap_or_default()
}

/// A parameter of a header such as `form-data; name="a"; filename="b;c"`.
pub(super) fn parameter(header: &[u8], wanted: &[u8]) -> Option<Vec<u8>> {
    let mut rest = header;
    while let Some(semicolon) = unquoted(rest, b';') {
        rest = &rest[semicolon + 1..];
        let one = &rest[..unquoted(rest, b';').unwrap_or(rest.len())];
        let Some(equals) = one.iter().position(|byte| *byte == b'=') else { continue };
        if one[..equals].trim_ascii().eq_ignore_ascii_case(wanted) {
            return Some(unquote(one[equals + 1..].trim_ascii()));
        }
    }
    None
}

/// The first such byte outside of quotes.
fn unquoted(text: &[u8], wanted: u8) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.iter().position(|byte| {
        let found = !is_quoted && *byte == wanted;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ => {}
        }
        found
    })
}

fn unquote(text: &[u8]) -> Vec<u8> {
    let Some(inner) = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")) else { return text.to_vec() };
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        out.push(if *byte == b'\\' { *bytes.next().unwrap_or(byte) } else { *byte });
    }
    out
}
