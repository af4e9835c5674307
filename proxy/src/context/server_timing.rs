//! The `server-timing` of an answer: what the gateway took, and what it waited for the provider.

use std::time::Duration;

/// Written digit by digit: this is on every answer, and formatting costs several times as much.
pub fn timing(own: Duration, upstream: Duration) -> TimingText {
    let mut text = TimingText { bytes: [0; 80], length: 0 };
    text.push(b"gateway;dur=");
    text.push_millis(own);
    text.push(b", upstream;dur=");
    text.push_millis(upstream);
    text
}

/// Milliseconds alone.
pub fn millis(duration: Duration) -> TimingText {
    let mut text = TimingText { bytes: [0; 80], length: 0 };
    text.push_millis(duration);
    text
}

/// A text that needs no memory of its own; what does not fit is left out.
pub struct TimingText {
    bytes: [u8; 80],
    length: usize,
}

impl TimingText {
    fn push(&mut self, part: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.length..self.length + part.len()) {
            room.copy_from_slice(part);
            self.length += part.len();
        }
    }

    /// With three decimals.
    fn push_millis(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.push(itoa::Buffer::new().format(micros / 1000).as_bytes());
        let [tens, ones] = [(micros / 10 % 10) as u8, (micros % 10) as u8];
        self.push(&[b'.', b'0' + (micros / 100 % 10) as u8, b'0' + tens, b'0' + ones]);
    }

    pub fn written(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_written_with_three_decimals() {
        for (micros, text) in [(0, "0.000"), (7, "0.007"), (999, "0.999"), (1000, "1.000"), (1_234_567, "1234.567")] {
            let told = timing(Duration::from_micros(micros), Duration::MAX);
            let expected = format!("gateway;dur={text}, upstream;dur=18446744073709551.615");
            assert_eq!(told.written(), expected.as_bytes());
        }
    }
}
