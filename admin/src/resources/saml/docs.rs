//! SAML's operations in the document.

use crate::openapi::{Doc, schema};

pub fn docs() -> [Doc; 3] {
    let page = schema::any_text().eg("/console").says("Where to afterwards: a path of this host.");
    [
        Doc::get("/auth/saml/{organisationId}/metadata", "Read our SAML metadata")
            .details("For the identity provider of the organisation; there before it is set up.")
            .file(&["application/samlmetadata+xml"]),
        Doc::get("/auth/saml/{organisationId}/login", "Begin a login by SAML")
            .details(
                "Sends the browser to the organisation's identity provider, by a redirect or a form that posts itself.",
            )
            .filter("return_to", page.or_empty())
            .redirects("To the identity provider.")
            .also(403)
            .also(404)
            .also(429),
        Doc::post("/auth/saml/{organisationId}/acs", "Take the answer of the identity provider")
            .details("Of the form that it posts, the field `SAMLResponse` is read. Begins a session.")
            .redirects("To where the login was to lead, with the cookie of a session.")
            .also(403)
            .also(429),
    ]
}
