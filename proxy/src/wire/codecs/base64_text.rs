//! Base64 of text documents, which some formats carry as bytes and others as text, of vectors, and of images that came as
//! bytes. Everything else stays encoded.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text that standard base64 holds; `None` if it is not base64 or not UTF-8.
pub(super) fn decode(base64: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(base64.len() / 4 * 3);
    let (mut buffer, mut bits) = (0_u32, 0_u32);
    for &byte in base64.trim_end_matches('=').as_bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'\r' | b'\n' => continue,
            _ => return None,
        };
        buffer = (buffer << 6) | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits) as u8);
            buffer &= (1 << bits) - 1;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether a text can be base64, of whatever bytes.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'\r' | b'\n');
    !digits.is_empty() && text.len() - digits.len() <= 2 && digits.bytes().all(is_digit)
}

pub(super) fn encode(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let mut base64 = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |place: usize| three.get(place).copied().map_or(0, u32::from);
        let group = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for digit in 0..4 {
            if digit > three.len() {
                base64.push('=');
            } else {
                base64.push(char::from(ALPHABET[(group >> (18 - 6 * digit) & 63) as usize]));
            }
        }
    }
    base64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_and_rubbish_is_refused() {
        for (text, base64) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("né€", "bsOp4oKs")] {
            assert_eq!(encode(text), base64);
            assert_eq!(decode(base64).as_deref(), Some(text));
        }
        assert_eq!(decode("*"), None);
        assert_eq!(decode("/w=="), None);
        for (text, expected) in
            [("Zm9v", true), ("Zg==", true), ("/w==", true), ("", false), ("=", false), ("a b", false)]
        {
            assert_eq!(is_base64(text), expected, "{text}");
        }
    }
}
