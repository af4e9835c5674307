//! The stages of a request, in their order: `classify` says what the path is, `identify` who is asking, `receive`
//! takes the body, `plan` finds the config, `admit` asks its limits, `resolve` makes a target of one of its leaves, `prepare` builds the upstream
//! head, `answer` passes the answer on, `settle` notes it all in the journal.
//! The relay lane runs the same first stages and then leaves the bytes to Pingora, edited by `relay`.

pub mod admit;
pub mod answer;
pub mod classify;
pub mod headers_to_metadata;
pub mod identify;
pub mod plan;
pub mod prepare;
pub mod receive;
pub mod relay;
pub mod resolve;
pub mod settle;
pub(crate) mod spelling;
pub mod trace;
