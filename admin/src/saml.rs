//! SAML 2.0 as a service provider: what we ask of an identity provider and whether its answers are to be believed. Only
//! the protocol: it knows neither database nor handlers, which are in `resources::saml`.
//!
//! Signatures are made of two old parts of the gateway, OpenSSL and sixty lines of hashing, and of one that is written here:
//! exclusive canonicalisation. See ARCHITECTURE.md for why no library does all of it.

mod canonical;
mod encryption;
pub mod key;
pub mod message;
pub mod metadata;
pub mod providers;
pub mod response;
pub mod settings;
mod signature;
pub mod work;
mod xml;

pub use settings::{AttributeNames, Binding, SamlSettings};
pub use xml::escaped;
