//! From JavaScript's way of writing patterns to Rust's. They are nearly the same language; what is written alike and means
//! something else is rewritten: `\d`, `\w` and `\b` are ASCII there, `[` is an ordinary character inside a class, `{,2}` is text.

/// The pattern for the `regex` crate, or why there is none.
pub fn translate(pattern: &str) -> Result<String, &'static str> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut is_class = false;
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        at += match (rest[0], is_class) {
            ('\\', _) => escape(rest, is_class, &mut out)?,
            ('[', false) => {
                let (taken, is_open) = open_class(rest, &mut out);
                is_class = is_open;
                taken
            }
            (']', true) => {
                is_class = false;
                put(&mut out, "]", 1)
            }
            ('[' | '&' | '~', true) => {
                out.push('\\');
                out.push(rest[0]);
                1
            }
            ('-', true) if rest.get(1) == Some(&'-') => put(&mut out, r"\-", 1),
            ('(', false)
                if starts(rest, "(?=") || starts(rest, "(?!") || starts(rest, "(?<=") || starts(rest, "(?<!") =>
            {
                return Err("look-around is not supported");
            }
            ('{', false) if !is_repetition(rest) => put(&mut out, r"\{", 1),
            ('}', false) if !closes_repetition(&out) => put(&mut out, r"\}", 1),
            (other, _) => {
                out.push(other);
                1
            }
        };
    }
    Ok(out)
}

/// Writes an escape and says how many characters of the pattern it was.
fn escape(rest: &[char], is_class: bool, out: &mut String) -> Result<usize, &'static str> {
    let Some(letter) = rest.get(1) else { return Err("it ends in a backslash") };
    Ok(match (letter, is_class) {
        ('1'..='9' | 'k', false) => return Err("backreferences are not supported"),
        ('d', false) => put(out, "[0-9]", 2),
        ('D', false) => put(out, "[^0-9]", 2),
        ('w', false) => put(out, "[0-9A-Za-z_]", 2),
        ('W', false) => put(out, "[^0-9A-Za-z_]", 2),
        ('d', true) => put(out, "0-9", 2),
        ('w', true) => put(out, "0-9A-Za-z_", 2),
        ('D', true) => put(out, "[^0-9]", 2),
        ('W', true) => put(out, "[^0-9A-Za-z_]", 2),
        ('b', false) => put(out, r"(?-u:\b)", 2),
        ('b', true) => put(out, r"\x08", 2),
        ('0', _) => put(out, r"\x00", 2),
        ('x' | 'u' | 'p' | 'P', _) if rest.get(2) == Some(&'{') => {
            let Some(end) = rest.iter().position(|letter| *letter == '}') else {
                return Err("it has an escape that does not end");
            };
            out.extend(&rest[..=end]);
            end + 1
        }
        ('n' | 'r' | 't' | 'f' | 'v' | 's' | 'S' | 'B' | 'x' | 'u', _) => {
            out.extend(['\\', *letter]);
            2
        }
        ('c' | 'p' | 'P', _) => return Err("it has an escape that is not supported"),
        // Characters that mean something on their own keep their backslash, all others are themselves.
        (other, _) => {
            if r"\.+*?()|[]{}^$#&-~/".contains(*other) {
                out.push('\\');
            }
            out.push(*other);
            2
        }
    })
}

/// Writes the beginning of a class and says whether it goes on; `[]` and `[^]` are whole.
fn open_class(rest: &[char], out: &mut String) -> (usize, bool) {
    match rest {
        ['[', '^', ']', ..] => (put(out, r"(?s:.)", 3), false),
        // Matches nothing.
        ['[', ']', ..] => (put(out, r"[^\x00-\x{10FFFF}]", 2), false),
        ['[', '^', ..] => (put(out, "[^", 2), true),
        _ => (put(out, "[", 1), true),
    }
}

fn put(out: &mut String, text: &str, taken: usize) -> usize {
    out.push_str(text);
    taken
}

fn starts(rest: &[char], text: &str) -> bool {
    text.chars().enumerate().all(|(index, expected)| rest.get(index) == Some(&expected))
}

/// `{2}`, `{2,}` or `{2,3}`.
fn is_repetition(rest: &[char]) -> bool {
    let inside: String = rest[1..].iter().take_while(|letter| **letter != '}').take(16).collect();
    let is_closed = rest.get(inside.chars().count() + 1) == Some(&'}');
    let (least, most) = inside.split_once(',').unwrap_or((&inside, ""));
    let is_number = |text: &str| text.chars().all(|letter| letter.is_ascii_digit());
    is_closed && !least.is_empty() && is_number(least) && is_number(most)
}

/// Whether what was written so far has a repetition open.
fn closes_repetition(out: &str) -> bool {
    let Some(open) = out.rfind('{') else { return false };
    let is_escaped = out[..open].ends_with('\\');
    let inside = &out[open + 1..];
    !is_escaped && !inside.is_empty() && inside.chars().all(|letter| letter.is_ascii_digit() || letter == ',')
}
