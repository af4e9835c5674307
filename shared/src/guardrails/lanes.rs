//! Looking at every byte of a text, in a form that compilers make vectors of: blocks of one size, a lane for each byte of a
//! block, and what is left padded to one more block.

pub const LANES: usize = 32;

/// The least of what `value` says of the bytes. The filler stands where a text has no more: its value should decide nothing.
#[inline(always)]
pub fn least(text: &[u8], filler: u8, value: impl Fn(u8) -> u8) -> u8 {
    let mut lanes = [u8::MAX; LANES];
    let (blocks, rest) = text.as_chunks::<LANES>();
    for block in blocks {
        lower(&mut lanes, block, &value);
    }
    lower(&mut lanes, &padded(rest, filler), &value);
    lanes.iter().fold(u8::MAX, |least, lane| least.min(*lane))
}

#[inline(always)]
fn lower(lanes: &mut [u8; LANES], block: &[u8; LANES], value: &impl Fn(u8) -> u8) {
    for (lane, byte) in lanes.iter_mut().zip(block) {
        *lane = (*lane).min(value(*byte));
    }
}

/// Less than a block, with this behind it.
#[inline(always)]
pub fn padded<const SIZE: usize>(rest: &[u8], filler: u8) -> [u8; SIZE] {
    let mut block = [filler; SIZE];
    for (to, from) in block.iter_mut().zip(rest) {
        *to = *from;
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_found_at_every_place_of_a_text_of_every_length() {
        for length in 0..3 * LANES {
            let mut text = vec![b'x'; length];
            assert_eq!(least(&text, b'x', |byte| byte), if length == 0 { b'x' } else { text[0] });
            for at in 0..length {
                text[at] = b'a';
                assert_eq!(least(&text, b'x', |byte| byte), b'a', "{at} of {length}");
                text[at] = b'x';
            }
        }
    }
}
