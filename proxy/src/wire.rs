//! The formats of the trade, without a decision about anything: vendors' dialects, frames of streams, JSON, tokens. Pure.

pub mod codecs;
pub mod conversation;
pub mod event_texts;
pub mod framing;
pub mod json;
pub mod sse;
pub mod vocabulary;
