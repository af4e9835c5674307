//! Which steps an answer goes through on its way back, and in which order: the one place where a response transform is
//! put in. Each call of a target gets a list of its own; most are empty. Engine lane only: what is relayed, and websockets,
//! pass unchanged.

use super::answer::{Guarded, Reshaped, Steps, StripUsage, Translated, WholeBody};
use super::call::{Call, ProviderCalls};
use super::translate::WayBack;

impl ProviderCalls {
    /// Nearest to the provider first: what was asked for beyond the client's wish goes before anything reads the rest,
    /// and behind the translation everything is in the client's format.
    pub(super) fn response_steps(&self, call: Call<'_>) -> Steps {
        let mut steps = Steps::default();
        if call.asks_usage {
            steps.push(StripUsage);
        }
        match call.translated.and_then(|translated| translated.back.as_ref()) {
            None => {}
            Some(WayBack::Conversation(translation)) => steps.push(Translated::new(translation.clone(), call.room)),
            Some(WayBack::Object(reshaping)) => steps.push(Reshaped::new(reshaping.clone())),
        }
        if let Some(guarded) = call.guarded {
            steps.push(Guarded::new(guarded.clone()));
        }
        if call.needs_whole {
            steps.push(WholeBody);
        }
        if let Some(frames) = call.frames {
            steps.frame_as(frames);
        }
        #[cfg(test)]
        (self.more_steps)(&mut steps);
        steps
    }
}

#[cfg(test)]
mod tests;
