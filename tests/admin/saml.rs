//! Signing in by SAML, with an identity provider that is written here: it writes its messages in canonical form, so that
//! it can sign them without the code that is tested. Answers that are not to be believed are in `refused` and `wrapped`,
//! the way of a browser is in `login`.

mod encrypted;
mod foreign;
mod idp;
mod login;
mod refused;
mod rollover;
mod saml_idp;
mod samlp;
mod wrapped;
