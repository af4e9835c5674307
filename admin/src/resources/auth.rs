//! `/auth/…`: people sign in and out, and see their sessions. What an identity provider said is turned into a session in
//! one place (`finish`), whichever protocol it was said in.

mod backchannel;
pub mod begun;
mod callback;
mod docs;
pub mod finish;
mod link;
mod login;
mod methods;
mod of_person;
mod owner_links;
pub mod place;
pub mod refused;
mod session;
mod session_key;

use crate::crud::Routes;

pub fn routes() -> Routes {
    Routes::default()
        .get("/auth/methods", methods::list)
        .get("/auth/login", login::login)
        .get("/auth/callback/{organisationId}", callback::callback)
        .post("/auth/backchannel-logout/{organisationId}", backchannel::logout)
        .post("/auth/link", link::ask)
        .post("/auth/sessions", link::redeem)
        .get("/auth/sessions", session::list)
        .delete("/auth/sessions/{sessionId}", session::end)
        .get("/auth/session", session::read)
        .post("/auth/session/key", session_key::create)
        .post("/auth/logout", session::logout)
        .post("/auth/owner-links", owner_links::create)
        .get("/admin/users/{userId}/sessions", of_person::list)
        .delete("/admin/users/{userId}/sessions", of_person::end_all)
        .describe(docs::docs())
}
