//! Readers of foreign bytes that no other crate needs, shown to the fuzz targets (`tests/fuzz`) alone.

pub use crate::journal::frame::push as push_frame;
pub use crate::journal::reader::Reader;
pub use crate::net::dial::chunked::Chunked;
pub use crate::net::dial::h1::parse_head;
pub use crate::realtime::frames::{FramePart, Frames};
