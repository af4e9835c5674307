//! What a provider's own bytes mean, by the dialect that it speaks: which event is the first content, what is an error
//! inside a 200, whether a stream has said that it is over. From this follows the commit point, the moment from which an
//! answer is passed on and no other attempt can take its place.
//!
//! Chosen for each target and asked about what the target sent, before any step has changed it. Today a target speaks the
//! dialect of the client's route; one whose answers are translated gets a dialect of its own here, and what is known of
//! its streams stands beside `content` and `ending`.

use super::content::{self, Meaning};
use super::ending::StreamEnding;
use shared::providers::Family;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireDialect {
    /// Chats, completions, and every family without a stream of its own kind.
    OpenAi,
    Messages,
    Responses,
}

impl WireDialect {
    /// What a target speaks that is asked for this family in the family's own dialect.
    pub fn of_family(family: Family) -> Self {
        match family {
            Family::Messages | Family::CountTokens => Self::Messages,
            Family::Responses => Self::Responses,
            _ => Self::OpenAi,
        }
    }

    /// What an event means as long as no content has come.
    pub fn event_meaning(self, data: &[u8]) -> Meaning {
        match self {
            // Their events cannot be taken for each other's.
            Self::OpenAi | Self::Messages | Self::Responses => content::meaning(data),
        }
    }

    /// What a whole plain answer with a success status means.
    pub fn body_meaning(self, body: &[u8]) -> Meaning {
        match self {
            Self::OpenAi | Self::Messages | Self::Responses => content::meaning_of_answer(body),
        }
    }

    /// Watches a stream for its end marker.
    pub fn ending(self) -> StreamEnding {
        StreamEnding::new(self)
    }
}
