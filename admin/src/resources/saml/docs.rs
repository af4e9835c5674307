//! SAML's operations in the document.

use crate::openapi::{Doc, schema};

pub fn docs() -> [Doc; 7] {
    let key = schema::object("SamlKey")
        .need("object", schema::fixed("saml_key"))
        .need(
            "status",
            schema::choice(&["active", "standby"]).says("Whether it signs our requests; both open assertions."),
        )
        .need(
            "certificate",
            schema::any_text()
                .eg("-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n")
                .says("What the identity provider knows it by, in PEM."),
        )
        .need("fingerprint", schema::any_text().eg("9F:86:D0:…").says("SHA-256 of the certificate."))
        .need("since", schema::time().says("When it was made."));
    let listed = schema::object("")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX).says("How many there are: none, one or two."))
        .need("data", schema::list(key).says("The keys, the one that signs first."));
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
            .redirects("To where the login was to lead, with the cookie of a session; of one that is refused, where `return_to` was named, with `error` \
                 and without: `sign_in_refused`, `too_many_attempts` or `unavailable`.")
            .also(403)
            .also(429),
        Doc::get("/admin/saml-keys", "List our SAML keys").answer(listed.clone()),
        Doc::post("/admin/saml-keys", "Make another SAML key")
            .details(
                "Its certificate is in our metadata from now on, and assertions may be encrypted for it. It signs \
                 when it is activated; the first one of an organisation does at once.",
            )
            .answer(listed.clone())
            .also(409),
        Doc::post("/admin/saml-keys/activate", "Sign with the other SAML key")
            .details("Active and standby change places: whatever goes wrong, the same call takes it back.")
            .answer(listed)
            .also(404),
        Doc::remove("/admin/saml-keys/standby", "Forget the SAML key that does not sign")
            .details("It leaves our metadata, and nothing that is encrypted for it can be opened.")
            .also(404),
    ]
}
