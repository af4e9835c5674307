//! What is around the text of an answer. Frames other than server-sent events are taken off, and the events written as
//! server-sent ones, so that everything behind sees one kind of stream; compression is undone. Pure: bytes in, bytes out.

pub mod compression;
pub mod event_stream;

pub use event_stream::{BadFrame, EventStream};
