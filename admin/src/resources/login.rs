//! How people sign in: what an identity provider says of somebody (`arrival`) becomes a person of the organisation
//! with a role and workspaces, and the person gets a session (`sessions`). On the way there, a login that was sent to a
//! provider is remembered until it comes back (`attempts`); whom no provider vouches for comes by a one-time link
//! (`links`), and owners say first whom they believe (`owner_links`). It knows no operation: those are in `resources::auth`.

pub mod arrival;
pub mod attempts;
pub mod domain_proofs;
pub mod domains;
pub mod links;
pub mod owner_links;
pub mod sessions;

/// Who vouches for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginProvider {
    Oidc,
    Saml,
    /// A one-time link, printed by the operator's command or mailed.
    Link,
}

impl LoginProvider {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Oidc => "oidc",
            Self::Saml => "saml",
            Self::Link => "link",
        }
    }
}
