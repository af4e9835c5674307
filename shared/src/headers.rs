//! HTTP headers that both services read: the gateway's own prefix, what may be forwarded to a provider, and the address of
//! the client.

pub mod client_ip;
pub mod forwarded_headers;
pub mod gateway_headers;
pub mod header_prefix;
