//! Deterministic bytes of any length, computable at any offset, so that both ends of a large transfer can check it
//! without holding it.

use openssl::sha::Sha256;

/// Fills `buffer` with the pattern's bytes from `offset` on.
pub fn fill(offset: u64, buffer: &mut [u8]) {
    let mut word = offset / 8;
    let mut skip = (offset % 8) as usize;
    let mut rest = buffer;
    while !rest.is_empty() {
        let bytes = mix(word).to_le_bytes();
        let take = (8 - skip).min(rest.len());
        let (now, later) = rest.split_at_mut(take);
        now.copy_from_slice(&bytes[skip..skip + take]);
        rest = later;
        skip = 0;
        word += 1;
    }
}

/// SHA-256, in hex, of the first `length` bytes.
pub fn sha256(length: u64) -> String {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut offset = 0;
    while offset < length {
        let take = (length - offset).min(buffer.len() as u64) as usize;
        fill(offset, &mut buffer[..take]);
        hash.update(&buffer[..take]);
        offset += take as u64;
    }
    hex(&hash.finish())
}

pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// SplitMix64: neighbouring words look unrelated, so a lost or repeated block shows.
fn mix(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_equals_the_same_part_of_the_whole() {
        let mut whole = vec![0; 100];
        fill(0, &mut whole);
        for from in 0..40 {
            let mut part = vec![0; 50];
            fill(from, &mut part);
            assert_eq!(part, whole[from as usize..from as usize + 50], "from {from}");
        }
    }

    #[test]
    fn the_hash_is_that_of_the_bytes() {
        let mut whole = vec![0; 70_001];
        fill(0, &mut whole);
        assert_eq!(sha256(70_001), hex(&openssl::sha::sha256(&whole)));
    }
}
