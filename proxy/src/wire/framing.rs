//! What is around the text of an answer. Frames other than server-sent events are taken off, and the events written as
//! server-sent ones, so that everything behind sees one kind of stream; compression is undone. For clients that take other
//! frames these are written again at the end. Pure: bytes in, bytes out.

pub mod compression;
pub mod end_markers;
pub mod event_stream;
mod event_stream_writer;
mod json_array;

pub use event_stream::{BadFrame, EventStream};
pub use event_stream_writer::write_frame;
pub use json_array::JsonArray;
