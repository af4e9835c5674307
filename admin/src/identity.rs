//! Who calls and what they may touch: the credential of a request (`credential`), the caller behind it (`caller` for API
//! keys, `tokens` for JWTs, `session` for people with a cookie, `scim_token` for identity providers), what a role allows (`access`), which rows are visible (`tenancy`), and the request as its
//! handler sees it (`call`).

pub mod access;
pub mod again;
pub mod call;
pub mod caller;
pub mod cookies;
pub mod credential;
pub mod csrf;
pub mod oidc;
pub mod scim_token;
pub mod session;
pub mod tenancy;
pub mod tokens;

pub use call::Call;
pub use caller::Caller;
