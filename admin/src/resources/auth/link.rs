//! One-time links over HTTP: asking for one by mail, and redeeming one. Who asks is told the same whoever they ask for,
//! and as fast: whether there is such a person is found out after the answer.

use super::finish::refusal_of;
use super::place;
use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::crud::Answer;
use crate::http::{ApiError, json as body_of, text};
use crate::identity::call::{PublicCall, RequestOrigin};
use crate::identity::csrf;
use crate::mail::login_link::LoginLink;
use crate::resources::login::LoginProvider;
use crate::resources::login::links;
use crate::resources::login::links::{Addressee, Redeemed};
use crate::resources::login::sessions;
use crate::resources::login::sessions::NewSession;
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::json;
use shared::telemetry::LogLimit;
use std::sync::Arc;
use uuid::Uuid;

#[derive(Deserialize)]
struct LinkRequest {
    email: String,
    organisation_id: Option<Uuid>,
}

#[derive(Deserialize)]
struct Redemption {
    token: String,
}

pub async fn ask(State(app): State<App>, PublicCall(origin): PublicCall) -> Answer {
    let asked: LinkRequest = body_of::parse_bytes(&origin.body)?;
    let email = text::email("email", &asked.email)?;
    place::allow(&app, &origin)?;
    tokio::spawn(async move {
        if let Err(error) = send(&app, &origin, &email, asked.organisation_id).await {
            static NO_LINKS: LogLimit = LogLimit::new();
            if let Some(skipped) = NO_LINKS.pass() {
                tracing::error!(%error, skipped, "login links could not be made");
            }
        }
    });
    Ok(Json(json!({ "message": "If there is such a person, a link was sent to the address" })))
}

async fn send(app: &App, origin: &Arc<RequestOrigin>, email: &str, organisation: Option<Uuid>) -> Result<(), ApiError> {
    let mut db = app.db.get().await?;
    for to in links::addressees(&*db, email, organisation).await? {
        let tx = db.transaction().await?;
        if !links::may_mail(&tx, &to).await? {
            continue;
        }
        let token = links::create(&tx, &to).await?;
        let mut record = AuditRecord::for_visitor(origin, to.organisation_id);
        record.resource_id = Some(to.user_id.to_string());
        record.after = Some(json!({ "user_id": to.user_id, "email": to.email }));
        audit::record(&tx, &record).await?;
        tx.commit().await?;
        let link = links::url(&app.public_url, &token);
        let (organisation, minutes) = (to.organisation.as_str(), links::MINUTES);
        app.mail.send(LoginLink { email: &to.email, organisation, link: &link, minutes }.letter());
    }
    Ok(())
}

/// Begins a session with the token of a link. Only pages of ours may: another site could sign a browser in as somebody
/// else, who then sees what is done there.
pub async fn redeem(State(app): State<App>, PublicCall(origin): PublicCall) -> Result<Response, ApiError> {
    let sent: Redemption = body_of::parse_bytes(&origin.body)?;
    let token = text::sized("token", sent.token, 1..=255)?;
    place::allow(&app, &origin)?;
    if !csrf::is_own_site(&origin.headers, &app.public_url) {
        return Err(ApiError::Forbidden("A link may be used only by pages of the gateway's own address"));
    }
    let mut db = app.db.get().await?;
    let tx = db.transaction().await?;
    // What tells an expired link from an unknown token is for the trail alone.
    let invalid = || ApiError::field("token", "is not valid, or no longer");
    let person = match links::redeem(&tx, &token).await? {
        Redeemed::By(person) => person,
        Redeemed::Unknown => return Err(invalid()),
        Redeemed::TooLate { organisation_id, user_id } => {
            let refused = invalid();
            let mut record = refusal_of(&origin, organisation_id, &refused);
            record.user_id = Some(user_id);
            audit::record(&tx, &record).await?;
            // It is gone now.
            tx.commit().await?;
            return Err(refused);
        }
    };
    let session = sessions::start(&tx, &app, &origin, by_link(&person)).await?;
    let mut record = AuditRecord::for_visitor(&origin, person.organisation_id);
    record.user_id = Some(person.user_id);
    record.resource_id = Some(session.id.to_string());
    record.after = Some(json!({ "user_id": person.user_id, "email": person.email, "provider": "link" }));
    audit::record(&tx, &record).await?;
    tx.commit().await?;
    let shown = json!({
        "object": "session",
        "id": session.id,
        "user_id": person.user_id,
        "organisation_id": person.organisation_id,
        "return_to": place::CONSOLE,
    });
    Ok(([(header::SET_COOKIE, session.cookie)], Json(shown)).into_response())
}

fn by_link(person: &Addressee) -> NewSession<'static> {
    NewSession {
        organisation_id: person.organisation_id,
        user_id: person.user_id,
        provider: LoginProvider::Link,
        issuer: None,
        subject: None,
        provider_session: None,
        id_token: None,
    }
}
