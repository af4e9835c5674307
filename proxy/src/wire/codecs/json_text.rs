//! A text as JSON writes it. Most bytes of most texts stand for themselves: they are looked at sixteen at a time and
//! copied in runs, which is what writing a conversation mostly is.

const CHUNK: usize = 16;

pub(super) fn write_text(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, others) = rest.split_at(plain_prefix(rest));
        out.extend_from_slice(plain);
        let Some((&byte, after)) = others.split_first() else { break };
        write_escaped(byte, out);
        rest = after;
    }
    out.push(b'"');
}

/// How many bytes stand for themselves before the first that does not.
fn plain_prefix(bytes: &[u8]) -> usize {
    let is_plain = |chunk: &[u8]| chunk.iter().fold(true, |is_plain, byte| is_plain & !is_special(*byte));
    let begin = bytes.chunks_exact(CHUNK).take_while(|chunk| is_plain(chunk)).count() * CHUNK;
    let after = bytes[begin..].iter().position(|byte| is_special(*byte));
    after.map_or(bytes.len(), |after| begin + after)
}

fn is_special(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\')
}

fn write_escaped(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&digits);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        write_text(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_character_up_to_the_first_beyond_ascii_is_written_as_a_serializer_would_wherever_it_stands() {
        for character in (0..=0x80_u8).map(char::from) {
            for before in 0..2 * CHUNK {
                let text = format!("{}{character}{character}z", "x".repeat(before));
                assert_eq!(written(&text), serde_json::to_string(&text).unwrap(), "{character:?} after {before}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_a_serializer_would(text in "(\\PC|[\\x00-\\x1f]|\"|\\\\|[a-z ]{0,40}){0,12}") {
            prop_assert_eq!(written(&text), serde_json::to_string(&text).unwrap());
        }
    }
}
