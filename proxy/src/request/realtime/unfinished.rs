//! A guess at what a response has used that was never said to be over: a client that leaves before the end has read what
//! it wanted, and the provider is paid for it.

/// Letters of a token of text, as everywhere else in the gateway.
const TEXT: u64 = 4;
/// A token of sound that is said is 50 ms, of sound that is heard 100 ms: of 24,000 samples a second, two bytes each, in
/// base64.
const SPOKEN: u64 = 3200;
const HEARD: u64 = 2 * SPOKEN;

#[derive(Debug, Default)]
pub struct Unfinished {
    written_text: u64,
    spoken_audio: u64,
    heard_text: u64,
    heard_audio: u64,
    /// What the response before it read: the next one reads that again, and more.
    last_input: u64,
}

impl Unfinished {
    pub fn says_text(&mut self, letters: u64) {
        self.written_text = self.written_text.saturating_add(letters);
    }

    pub fn says_audio(&mut self, letters: u64) {
        self.spoken_audio = self.spoken_audio.saturating_add(letters);
    }

    pub fn hears(&mut self, letters: u64, is_audio: bool) {
        let heard = if is_audio { &mut self.heard_audio } else { &mut self.heard_text };
        *heard = heard.saturating_add(letters);
    }

    /// A response is over, and read so many tokens.
    pub fn ends(&mut self, input: Option<u64>) {
        *self = Self { last_input: input.unwrap_or(self.last_input), ..Self::default() };
    }

    /// Tokens that it read and said.
    pub fn tokens(&self) -> (u64, u64) {
        let heard = self.heard_text / TEXT + self.heard_audio / HEARD;
        let output = self.written_text.div_ceil(TEXT) + self.spoken_audio.div_ceil(SPOKEN);
        (self.last_input.saturating_add(heard), output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_reads_what_the_one_before_it_read_and_what_came_since() {
        let mut unfinished = Unfinished::default();
        unfinished.hears(40, false);
        unfinished.hears(6400, true);
        unfinished.says_text(9);
        unfinished.says_audio(3201);
        assert_eq!(unfinished.tokens(), (11, 5));
        unfinished.ends(Some(100));
        assert_eq!(unfinished.tokens(), (100, 0));
        unfinished.hears(4, false);
        unfinished.ends(None);
        assert_eq!(unfinished.tokens(), (100, 0));
    }
}
