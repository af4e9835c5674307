//! What an answer says of its own cost: dollars, and how sure that is. Told on the engine lane to whoever may know.

/// Thousand-millionths of a cent in a dollar.
const NANO_CENTS_PER_DOLLAR: u64 = 100_000_000_000;
const DECIMALS: usize = 11;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerCost {
    /// None where something of it has no known price.
    nano_cents: Option<u64>,
    is_estimated: bool,
}

impl AnswerCost {
    /// Nobody is paid for it.
    pub const FREE: Self = Self { nano_cents: Some(0), is_estimated: false };
    pub const UNKNOWN: Self = Self { nano_cents: None, is_estimated: false };

    pub fn new(nano_cents: u64, is_estimated: bool) -> Self {
        Self { nano_cents: Some(nano_cents), is_estimated }
    }

    pub fn state(&self) -> &'static str {
        match (self.nano_cents, self.is_estimated) {
            (None, _) => "unknown",
            (Some(_), true) => "estimated",
            (Some(_), false) => "exact",
        }
    }

    /// As decimal text; none where it is not known.
    pub fn dollars(&self) -> Option<DollarText> {
        self.nano_cents.map(DollarText::new)
    }

    /// A line of a stream that clients pass over.
    pub fn comment(&self) -> String {
        let state = self.state();
        match self.dollars() {
            Some(dollars) => {
                let dollars = String::from_utf8_lossy(dollars.written());
                format!(": x-gateway-cost {dollars}\n: x-gateway-cost-state {state}\n\n")
            }
            None => format!(": x-gateway-cost-state {state}\n\n"),
        }
    }
}

/// Written digit by digit, without memory of its own: this is on every answer.
#[derive(Debug, Clone, Copy)]
pub struct DollarText {
    bytes: [u8; 32],
    length: usize,
}

impl DollarText {
    fn new(nano_cents: u64) -> Self {
        let mut text = Self { bytes: [0; 32], length: 0 };
        text.push(itoa::Buffer::new().format(nano_cents / NANO_CENTS_PER_DOLLAR).as_bytes());
        let mut rest = nano_cents % NANO_CENTS_PER_DOLLAR;
        if rest > 0 {
            let mut decimals = [b'0'; DECIMALS];
            for digit in decimals.iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            let used = decimals.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
            text.push(b".");
            text.push(&decimals[..used]);
        }
        text
    }

    fn push(&mut self, part: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.length..self.length + part.len()) {
            room.copy_from_slice(part);
            self.length += part.len();
        }
    }

    pub fn written(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A stream with a comment: before the word that ends a chat, since clients read no further.
pub fn with_comment(events: &[u8], comment: &str) -> Vec<u8> {
    const DONE: &[u8] = b"data: [DONE]";
    let end = memchr::memmem::rfind(events, DONE).filter(|at| *at == 0 || events[at - 1] == b'\n');
    let (before, after) = events.split_at(end.unwrap_or(events.len()));
    [before, comment.as_bytes(), after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_dollars_without_needless_digits() {
        for (nano_cents, text) in [
            (0, "0"),
            (1, "0.00000000001"),
            (350_000_000, "0.0035"),
            (100_000_000_000, "1"),
            (123_450_000_000, "1.2345"),
            (u64::MAX, "184467440.73709551615"),
        ] {
            let cost = AnswerCost::new(nano_cents, false);
            assert_eq!(cost.dollars().unwrap().written(), text.as_bytes());
        }
        assert_eq!(AnswerCost::UNKNOWN.dollars().map(|text| text.length), None);
        let states = [AnswerCost::FREE, AnswerCost::new(1, true), AnswerCost::UNKNOWN].map(|cost| cost.state());
        assert_eq!(states, ["exact", "estimated", "unknown"]);
    }

    #[test]
    fn a_comment_stands_before_the_last_word() {
        let comment = AnswerCost::FREE.comment();
        assert_eq!(comment, ": x-gateway-cost 0\n: x-gateway-cost-state exact\n\n");
        let commented = |events: &str| String::from_utf8(with_comment(events.as_bytes(), ": c\n\n")).unwrap();
        assert_eq!(commented("data: {}\n\ndata: [DONE]\n\n"), "data: {}\n\n: c\n\ndata: [DONE]\n\n");
        assert_eq!(commented("data: {}\n\n"), "data: {}\n\n: c\n\n");
        assert_eq!(commented("data: \"data: [DONE]\"\n\n"), "data: \"data: [DONE]\"\n\n: c\n\n");
    }
}
