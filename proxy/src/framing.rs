//! Frames around the events of a stream, other than server-sent events: taken off, and the events written as server-sent
//! ones, so that everything behind sees one kind of stream. Pure: bytes in, bytes out.

pub mod event_stream;

pub use event_stream::{BadFrame, EventStream};
