//! Who is asking: the format of API keys, tokens (JWT), and which scopes each kind of credential may hold.

pub mod api_key;
pub mod jwt;
mod key_kind;
pub mod scopes;

pub use key_kind::KeyKind;
