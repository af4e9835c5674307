//! The sockets. `dial` opens every outbound connection; `custom_hosts` remembers hosts that were judged; `cloud_http` sends
//! what clouds and secret managers are asked, `own_call` what the gateway asks often; `downstream` is the client as the other rooms see it,
//! `head_lines` the head of what it is answered and `header_text` a value in it, `in_memory` one without a socket, `answer_budget` what several of those hold together.

pub mod answer_budget;
pub mod cloud_http;
pub mod custom_hosts;
pub mod dial;
pub mod downstream;
pub mod head_lines;
pub mod header_text;
pub mod in_memory;
pub mod own_call;
pub mod own_cookies;
pub mod retry_after;
