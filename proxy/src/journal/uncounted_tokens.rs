//! Texts of calls whose provider did not report usage, until their tokens are counted. In memory only: what must not be
//! kept must not reach the disk either. If the process dies before, the rough figure in the record stays.

use crate::limits::usage::UncountedCall;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// Calls that wait for their record to be stored, and bytes of their texts. Of what is beyond, the rough figure counts.
const MAX_CALLS: usize = 50_000;
const MAX_BYTES: usize = 16 << 20;

#[derive(Debug, Default)]
pub struct UncountedCalls {
    waiting: Mutex<UncountedTexts>,
}

#[derive(Debug, Default)]
struct UncountedTexts {
    /// By the id of the record, the oldest first.
    texts: BTreeMap<Uuid, Arc<UncountedCall>>,
    bytes: usize,
    counted: BTreeMap<Uuid, (u64, u64)>,
}

impl UncountedCalls {
    /// To be called before the record can be shipped.
    pub fn put(&self, id: Uuid, spoken: UncountedCall) {
        let size = spoken.size();
        let mut waiting = self.waiting.lock();
        if waiting.texts.len() < MAX_CALLS && waiting.bytes + size <= MAX_BYTES {
            waiting.bytes += size;
            waiting.texts.insert(id, Arc::new(spoken));
        }
    }

    pub fn has_texts(&self) -> bool {
        !self.waiting.lock().texts.is_empty()
    }

    /// Counts the waiting calls, without holding the lock meanwhile.
    pub fn count(&self) {
        let next = || self.waiting.lock().texts.first_key_value().map(|(id, spoken)| (*id, spoken.clone()));
        while let Some((id, spoken)) = next() {
            let tokens = spoken.tokens();
            let mut waiting = self.waiting.lock();
            waiting.texts.remove(&id);
            waiting.bytes = waiting.bytes.saturating_sub(spoken.size());
            waiting.counted.insert(id, tokens);
            if waiting.counted.len() > MAX_CALLS {
                waiting.counted.pop_first();
            }
        }
    }

    /// Prompt and completion tokens of a call.
    pub fn tokens(&self, id: Uuid) -> Option<(u64, u64)> {
        self.waiting.lock().counted.get(&id).copied()
    }

    /// Its record is stored.
    pub fn forget(&self, id: Uuid) {
        self.waiting.lock().counted.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::usage::AnsweredText;
    use bytes::Bytes;

    fn said(text: &str) -> UncountedCall {
        let answered = AnsweredText::Stream(text.into(), text.len() as u64);
        UncountedCall { model: None, asked: Bytes::new(), answered }
    }

    #[test]
    fn texts_become_figures_and_are_gone() {
        let (uncounted, id) = (UncountedCalls::default(), Uuid::from_u128(1));
        uncounted.put(id, said(" one two"));
        assert_eq!((uncounted.tokens(id), uncounted.has_texts()), (None, true));
        uncounted.count();
        assert_eq!((uncounted.tokens(id), uncounted.has_texts()), (Some((0, 2)), false));
        uncounted.forget(id);
        assert_eq!((uncounted.tokens(id), uncounted.waiting.lock().bytes), (None, 0));
    }

    #[test]
    fn what_waits_is_bounded() {
        let (uncounted, text) = (UncountedCalls::default(), "a ".repeat(1 << 20));
        for id in 0..20 {
            uncounted.put(Uuid::from_u128(id), said(&text));
        }
        let waiting = uncounted.waiting.lock();
        assert!(waiting.bytes <= MAX_BYTES && (4..=8).contains(&waiting.texts.len()), "{}", waiting.texts.len());
    }
}
