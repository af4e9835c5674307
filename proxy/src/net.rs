//! The sockets. `dial` opens every outbound connection; `custom_hosts` remembers hosts that were judged; `downstream` is the
//! client as the other rooms see it.

pub mod custom_hosts;
pub mod dial;
pub mod downstream;
