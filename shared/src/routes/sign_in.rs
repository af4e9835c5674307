//! How people sign in and out. Addresses that an identity provider is told name the organisation: whoever comes back to
//! one belongs to a login of that organisation, or is refused.

use super::operation::{Access, Operation, delete, get, post};

const PUBLIC: Access = Access::Public;
/// A response of 256 KiB, in the form that it is posted in.
const SAML_BODY: usize = 400 << 10;

pub(super) static AUTH: &[Operation] = &[
    get(0, "/auth/methods", PUBLIC, &[]),
    // What begins well is in the trail when it ends; what cannot begin, at once.
    get(0, "/auth/login", PUBLIC, &[]).audited("sessions", "create"),
    get(0, "/auth/callback/{organisationId}", PUBLIC, &[]).audited("sessions", "create"),
    post(0, "/auth/backchannel-logout/{organisationId}", PUBLIC, &[]).audited("sessions", "delete"),
    get(0, "/auth/saml/{organisationId}/metadata", PUBLIC, &[]),
    get(0, "/auth/saml/{organisationId}/login", PUBLIC, &[]).audited("sessions", "create"),
    // Answers with certificates and many groups are long.
    post(0, "/auth/saml/{organisationId}/acs", PUBLIC, &[]).audited("sessions", "create").body_up_to(SAML_BODY),
    post(0, "/auth/link", PUBLIC, &[]).audited("login_links", "create"),
    // The token of a link in the body is the credential.
    post(0, "/auth/sessions", PUBLIC, &[]).audited("sessions", "create"),
    get(0, "/auth/sessions", Access::Session, &[]),
    delete(0, "/auth/sessions/{sessionId}", Access::Session, &[]).audited("sessions", "delete"),
    get(0, "/auth/session", Access::Session, &[]),
    post(0, "/auth/session/key", Access::Session, &[]).audited("session_keys", "create"),
    post(0, "/auth/logout", Access::Session, &[]).audited("sessions", "delete"),
    post(0, "/auth/owner-links", Access::Session, &[]).audited("owner_links", "create").after_recent_sign_in(),
];
