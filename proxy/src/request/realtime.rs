//! Realtime sessions: what is said in them is watched by `websocket`; `relay::session` asks the limits of their responses.

mod events;
pub(crate) mod frames;
mod unfinished;
mod websocket;

pub use events::{Done, RealtimeEvent};
pub use websocket::{SessionNeeds, Websocket};
