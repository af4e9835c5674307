//! How the OpenAPI document shows signing in and out.

use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};

pub fn docs() -> [Doc; 14] {
    let email = || schema::email().says("Where the person gets mail.");
    let organisation = || schema::uuid().says("The organisation to sign in to.");
    [
        Doc::get("/auth/methods", "List how people of a mail domain sign in")
            .details(
                "For sign-in pages. The domain of the address alone decides: the answer is the same for everybody of it, \
                 whether there is such a person or not.",
            )
            .filter("email", email().says("Whose domain is asked about."))
            .answer(methods())
            .also(429),
        Doc::get("/auth/login", "Sign in at the identity provider")
            .details(
                "For browsers: answers with a redirect to the identity provider of the organisation, which is named by its \
                 id or found by the domain of an e-mail address.",
            )
            .filter("email", email().or_empty().says("Whose domain says which organisation it is."))
            .filter("organisation", organisation().or_empty().says("The organisation to sign in to."))
            .filter("return_to", return_to())
            .redirects("To the identity provider; of a login that cannot begin to `return_to`, where one was named, with `error`.")
            .also(403)
            .also(404)
            .also(429),
        Doc::get("/auth/callback/{organisationId}", "Come back from the identity provider")
            .details(
                "For browsers, and for the settings of the identity provider, where it is the redirect URI. Begins a \
                 session and sends the browser to where the login was to lead.",
            )
            .filter("state", schema::any_text().eg("the state of the login").says("As the login was begun with."))
            .filter("code", schema::any_text().eg("the code").says("What the tokens are asked for with."))
            .filter("iss", schema::any_text().eg("https://id.example.com").says("Which identity provider it is."))
            .filter("error", schema::any_text().eg("access_denied").says("Why the identity provider refused."))
            .redirects("To where the login was to lead, with the cookie of a session; of one that is refused, where `return_to` was named, with `error` \
                 and without: `access_denied`, `sign_in_refused`, `too_many_attempts` or `unavailable`.")
            .also(403)
            .also(429),
        Doc::post("/auth/backchannel-logout/{organisationId}", "Hear of a logout at the identity provider")
            .details(
                "For the settings of the identity provider, as its back-channel logout URI. Takes the form field \
                 `logout_token` and ends the sessions that it is about.",
            )
            .also(403),
        Doc::post("/auth/link", "Ask for a one-time link")
            .details("Mailed to the person, if there is one. The answer is the same whether there is or not.")
            .body(
                schema::object("LinkRequest")
                    .need("email", email())
                    .may("organisation_id", organisation().or_null().says("Without it: every one the person is in.")),
            )
            .answer(schema::object("").need("message", schema::any_text().eg("If there is such a person, a link was sent")))
            .also(429),
        Doc::post("/auth/sessions", "Sign in with a one-time link")
            .details("Answers with the cookie of a session. The link does not work a second time.")
            .body(schema::object("LinkRedemption").need(
                "token",
                schema::text(1..=255).eg("the token of the link").says("What stands behind the # of the link."),
            ))
            .answer(
                schema::shown("StartedSession", "session")
                    .need("user_id", schema::uuid().says("The person."))
                    .need("organisation_id", organisation())
                    .need("return_to", schema::any_text().eg("/console").says("Where to go on.")),
            )
            .also(403)
            .also(429),
        Doc::get("/auth/sessions", "List own sessions").answer(listed()),
        Doc::remove("/auth/sessions/{sessionId}", "End one of one's own sessions"),
        Doc::get("/auth/session", "Read who is signed in")
            .details("With the token that calls which change something repeat in `x-gateway-csrf-token`.")
            .answer(session()),
        Doc::post("/auth/session/key", "Get a key that calls models for the session")
            .details(
                "For pages: inference takes no cookie. The key acts for the person in one workspace, calls models and MCP \
                 tools and renders prompts as far as they may, and does nothing else. It ends after a quarter of an hour \
                 and with the session; a person has three at once, and a fourth ends the oldest. It is in no list of keys.",
            )
            .body(schema::object("NewSessionKey").may(
                "workspace_id",
                schema::any_text()
                    .eg("ws-market-3f9a01")
                    .or_null()
                    .says("Id or slug; without it the one that `x-gateway-workspace` names, else the default one."),
            ))
            .answer(session_key())
            .also(403),
        Doc::post("/auth/logout", "Sign out")
            .details("Ends the session at once.")
            .answer(schema::object("LoggedOut").need(
                "logout_url",
                schema::any_text()
                    .eg("https://id.example.com/logout")
                    .or_null()
                    .says("Where the browser goes to sign out of the identity provider too."),
            )),
        Doc::post("/auth/owner-links", "Let an identity provider sign an owner in")
            .details(
                "By an owner, for themselves, before their first login by that identity provider: without it the login is \
                 refused. It holds for an hour, and for one login; afterwards the identity provider knows them.",
            )
            .body(schema::object("NewOwnerLink").need("issuer", issuer()))
            .answer(
                schema::object("OwnerLink")
                    .need("object", schema::fixed("owner_link"))
                    .need("user_id", schema::uuid())
                    .need("issuer", issuer())
                    .need("expires_at", schema::time()),
            )
            .also(403),
        Doc::get("/admin/users/{userId}/sessions", "List the sessions of a person").answer(listed()),
        Doc::remove("/admin/users/{userId}/sessions", "Sign a person out everywhere")
            .details("All their sessions end at once, and links that were mailed to them. They may sign in again.")
            .answer(
                schema::object("SignedOut")
                    .need("ended_sessions", schema::whole(0..=i64::MAX).eg(2).says("How many sessions there were.")),
            ),
    ]
}

fn methods() -> Schema {
    schema::object("SignInMethods")
        .need("object", schema::fixed("sign_in_methods"))
        .need(
            "methods",
            schema::list(schema::choice(&["oidc", "saml", "link"])).says(
                "Where `GET /auth/login` leads to (`oidc`, `saml`), and whether `POST /auth/link` mails links. None of \
                 them: by the link of an operator.",
            ),
        )
        .need(
            "public_url",
            schema::any_text()
                .eg("https://gateway.example.com")
                .says("The address that the gateway has for browsers; from another one sign-in fails."),
        )
}

fn return_to() -> Schema {
    schema::any_text().eg("/console").or_empty().says("A path of this host to go to afterwards.")
}

fn session() -> Schema {
    let user = schema::object("SignedInUser")
        .need("id", schema::uuid())
        .need("email", schema::any_text().eg("ada@example.com"))
        .need("first_name", schema::any_text().eg("Ada").or_null())
        .need("last_name", schema::any_text().eg("Lovelace").or_null())
        .need("role", schema::choice(&["owner", "admin", "member"]));
    let organisation =
        schema::object("SignedInOrganisation").need("id", schema::uuid()).need("name", schema::any_text().eg("Acme"));
    let workspace = schema::object("SignedInWorkspace")
        .need("id", schema::uuid())
        .need("slug", schema::any_text().eg("ws-market-3f9a01"))
        .need("name", schema::any_text().eg("Market"))
        .need("role", schema::choice(&["member", "manager", "admin"]));
    let acting = schema::object("SessionRights")
        .need("workspace_id", schema::uuid().or_null().says("Null for the whole organisation."))
        .need("scopes", schema::list(schema::any_text().eg("configs.read")).says("Those that count there."));
    schema::shown("Session", "session")
        .need(
            "acting",
            acting.or_null().says(
                "What the session may do in the workspace that this request names by `x-gateway-workspace`, or in the \
                 organisation (`*`); null where it may not act.",
            ),
        )
        .need("provider", provider())
        .need("user", user)
        .need("organisation", organisation)
        .need("created_at", schema::time())
        .need("expires_at", schema::time().says("When it ends in any case."))
        .need("csrf_token", schema::any_text().eg("Yq3…").says("For `x-gateway-csrf-token`."))
        .need("workspaces", schema::list(workspace).says("Where the person may act, by `x-gateway-workspace`."))
}

fn session_key() -> Schema {
    schema::shown("SessionKey", "session_key")
        .need("key", schema::any_text().eg("pk-3f9a…").says("The secret, which is shown once."))
        .need("workspace_id", schema::uuid())
        .need("scopes", schema::list(schema::any_text().eg("completions.write")))
        .need("expires_at", schema::time())
}

fn listed() -> Schema {
    let session = schema::object("ListedSession")
        .need("id", schema::uuid())
        .need("provider", provider())
        .need("client_ip", schema::any_text().eg("192.0.2.1").or_null().says("Where it was begun from."))
        .need("user_agent", schema::any_text().eg("Mozilla/5.0").or_null().says("The browser it was begun in."))
        .need("created_at", schema::time())
        .need("last_used_at", schema::time().says("To the minute."))
        .need("is_current", schema::flag().says("Whether it is the one that asks."));
    schema::object("Sessions")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX).eg(1))
        .need("data", schema::list(session))
}

fn issuer() -> Schema {
    schema::text(1..=1024)
        .eg("https://id.example.com")
        .says("The `issuer` of OIDC, or the entity id of SAML, as the auth settings name it.")
}

fn provider() -> Schema {
    schema::choice(&["oidc", "saml", "link"]).says("Who vouched for the person.")
}
