//! Inviting and inviting again: both draw a fresh token, so that an old link is dead once a new one is out.

use super::{Invite, KeyDetails, Seat, may_invite};
use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Resource as _, metadata_schema};
use crate::http::{ApiError, text, time};
use crate::identity::access::WorkspaceRole;
use crate::identity::{Call, Caller, tenancy};
use crate::mail::Letter;
use crate::mail::invitation::Invitation;
use crate::resources::api_keys::authority;
use crate::resources::users::{self, NOT_AN_ADMIN};
use axum::Json;
use axum::extract::{Path, State};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::db::table::Columns;
use shared::identity::api_key::{self, KeyHash};
use shared::identity::scopes;
use shared::model::KeyKind;

const DAYS: i64 = 7;

#[derive(Deserialize)]
struct NewInvite {
    email: String,
    role: users::Role,
    workspaces: Option<Vec<NewSeat>>,
    workspace_api_key_details: Option<KeyDetails>,
    first_name: Option<String>,
    last_name: Option<String>,
}

#[derive(Deserialize)]
struct NewSeat {
    id: String,
    role: String,
}

pub async fn create(State(app): State<App>, call: Call) -> Answer {
    const LAPSED: &str = "UPDATE user_invites SET status = 'expired', last_updated_at = now()
        WHERE organisation_id = $1 AND lower(email) = lower($2) AND status = 'pending' AND expires_at <= now()";
    let new: NewInvite = call.body()?;
    let email = address(&new.email)?;
    let key = new.workspace_api_key_details.map(|key| checked_key(key, Utc::now())).transpose()?;
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    may_invite(&action, &email).await?;
    conforms(&action, key.as_ref()).await?;
    let seats = seats(&action, new.workspaces.unwrap_or_default()).await?;
    may_give(&call.caller, new.role.as_str(), &seats, key.as_ref())?;
    action.tx.execute(LAPSED, &[&action.organisation_id(), &email]).await?;
    let link = InviteLink::fresh(&app);
    let columns = Columns::default()
        .set("organisation_id", action.organisation_id())
        .set("email", email)
        .set("role", new.role.as_str())
        .set("first_name", new.first_name.map(|name| text::sized("first_name", name, 0..=255)).transpose()?)
        .set("last_name", new.last_name.map(|name| text::sized("last_name", name, 0..=255)).transpose()?)
        .set("workspaces", json!(seats))
        .set("workspace_api_key_details", key.map(|key| json!(key)))
        .set("token_hash", link.hash())
        .set("invited_by", call.caller.actor_id())
        .set("expires_at", Utc::now() + TimeDelta::days(DAYS));
    let row = Invite::TABLE.insert(&action.tx, &columns).await.map_err(pending_already)?;
    let invite = Invite::from_row(&row)?;
    let letter = letter(&action, &invite, &link).await?;
    let change = Change { resource_id: invite.id.to_string(), before: None, after: Some(invite.shown(&call)) };
    action.commit(change).await?;
    post(&app, &call, letter);
    Ok(Json(json!({ "id": invite.id, "invite_link": link.url, "object": Invite::OBJECT })))
}

pub async fn resend(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let before = crud::held::<Invite>(&mut action, &id, None).await?;
    if !before.is_open() {
        return Err(ApiError::invalid(format!("This invite is {} and cannot be sent again", before.status.as_str())));
    }
    may_invite(&action, &before.email).await?;
    may_give(&call.caller, &before.role, &before.workspaces, before.key.as_ref())?;
    let link = InviteLink::fresh(&app);
    let columns = Columns::default()
        .set("status", "pending")
        .set("invited_by", call.caller.actor_id())
        .set("token_hash", link.hash())
        .set("expires_at", Utc::now() + TimeDelta::days(DAYS));
    let row = Invite::TABLE.update(&action.tx, before.id, &columns).await.map_err(pending_already)?;
    let after = Invite::from_row(&row.ok_or(ApiError::NotFound(Invite::OBJECT))?)?;
    let letter = letter(&action, &after, &link).await?;
    let (id, before, after) = (before.id.to_string(), before.shown(&call), after.shown(&call));
    action.commit(Change { resource_id: id, before: Some(before), after: Some(after) }).await?;
    post(&app, &call, letter);
    Ok(Json(json!({ "invite_link": link.url, "inviteLink": link.url })))
}

/// The link is shown to whoever invites or invites again, who could follow it: it gives nothing that they could not have.
fn may_give(caller: &Caller, role: &str, seats: &[Seat], key: Option<&KeyDetails>) -> Result<(), ApiError> {
    if role == "admin" && !authority::may_make_admin(caller) {
        return Err(NOT_AN_ADMIN);
    }
    let roles = seats.iter().filter_map(|seat| WorkspaceRole::parse(&seat.role));
    if !roles.into_iter().all(|role| authority::may_seat(caller, role)) {
        return Err(ApiError::Forbidden("Managers and admins of a workspace are invited by who may add them to it"));
    }
    if key.is_some_and(|key| !authority::may_promise(caller, &key.scopes)) {
        return Err(ApiError::Forbidden("A key is promised by those who hold its scopes or may make such keys"));
    }
    Ok(())
}

/// Whoever invites would wait for an answer to a mail that nobody got.
fn post(app: &App, call: &Call, letter: Letter) {
    if call.origin.is_dry_run {
        return;
    }
    if !app.mail.has_server() {
        call.origin.warn("no mail was sent (there is no SMTP_HOST): pass the invite_link on yourself".to_owned());
    }
    app.mail.send(letter);
}

/// What the person invited follows. The token stands behind the `#`, which browsers do not send to servers' logs.
struct InviteLink {
    token: String,
    url: String,
}

impl InviteLink {
    fn fresh(app: &App) -> Self {
        let token = api_key::generate("");
        let url = format!("{}/invites/accept#token={token}", app.public_url);
        Self { token, url }
    }

    fn hash(&self) -> Vec<u8> {
        KeyHash::from_key(self.token.as_bytes()).0.to_vec()
    }
}

async fn letter(action: &Action<'_>, invite: &Invite, link: &InviteLink) -> Result<Letter, ApiError> {
    const NAME: &str = "SELECT name FROM organisations WHERE id = $1";
    let row = action.tx.query_one(NAME, &[&action.organisation_id()]).await?;
    let invitation = Invitation {
        email: &invite.email,
        organisation: row.try_get("name")?,
        link: &link.url,
        expires_at: invite.expires_at,
    };
    Ok(invitation.letter())
}

/// An address that mail can be sent to.
fn address(text: &str) -> Result<String, ApiError> {
    let email = text::email("email", text)?;
    match email.parse::<lettre::Address>() {
        Ok(_) => Ok(email),
        Err(_) => Err(ApiError::field("email", "must be an e-mail address")),
    }
}

async fn seats(action: &Action<'_>, sent: Vec<NewSeat>) -> Result<Vec<Seat>, ApiError> {
    let mut seats: Vec<Seat> = Vec::new();
    for (n, NewSeat { id, role }) in sent.into_iter().enumerate() {
        let field = |name: &str| format!("workspaces[{n}].{name}");
        let role = WorkspaceRole::parse(&role)
            .ok_or_else(|| ApiError::field(field("role"), "must be one of `admin`, `manager`, `member`"))?;
        let found = tenancy::find_workspace(&action.tx, action.organisation_id(), &id).await?;
        let workspace_id = found.ok_or_else(|| ApiError::no_such(field("id"), "workspace"))?;
        if seats.iter().any(|seat| seat.workspace_id == workspace_id) {
            return Err(ApiError::field(field("id"), "is named twice"));
        }
        seats.push(Seat { id, workspace_id, role: role.as_str().to_owned() });
    }
    Ok(seats)
}

/// Checked now: the person who accepts could not put it right.
fn checked_key(key: KeyDetails, now: DateTime<Utc>) -> Result<KeyDetails, ApiError> {
    let within = |error: ApiError| error.under("workspace_api_key_details");
    let allowed = scopes::all_for(KeyKind::WorkspaceUser);
    if let Some(n) = key.scopes.iter().position(|scope| !allowed.contains(&scope.as_str())) {
        return Err(within(ApiError::field(format!("scopes[{n}]"), "is not a scope of a user's key")));
    }
    let name = key.name.map(|name| text::sized("name", name, 1..=100)).transpose().map_err(within)?;
    let expiry = key.expiry.as_deref().map(|text| time::parsed("expiry", text)).transpose().map_err(within)?;
    if expiry.is_some_and(|expiry| expiry <= now) {
        return Err(within(ApiError::field("expiry", "must be in the future")));
    }
    Ok(KeyDetails { name, ..key })
}

async fn conforms(action: &Action<'_>, key: Option<&KeyDetails>) -> Result<(), ApiError> {
    const SCHEMA: &str = "SELECT metadata_schemas -> 'api_key' FROM organisations WHERE id = $1";
    let Some(key) = key else { return Ok(()) };
    let row = action.tx.query_one(SCHEMA, &[&action.organisation_id()]).await?;
    let schema = row.try_get::<_, Option<Value>>(0)?.unwrap_or_default();
    let metadata: Map<String, Value> =
        key.metadata.iter().flatten().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    metadata_schema::conforms(&schema, &metadata).map_err(|error| error.under("workspace_api_key_details.metadata"))
}

fn pending_already(error: tokio_postgres::Error) -> ApiError {
    match ApiError::from(error) {
        ApiError::Conflict(_) => {
            let message =
                "There is a pending invite for this e-mail address already: send it again, or cancel it first";
            ApiError::Conflict(message.into())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_promised_only_if_it_can_be_made() {
        let now = "2026-01-05T10:30:00Z".parse().unwrap();
        for (details, refused) in [
            (json!({ "scopes": ["completions.write"] }), None),
            (json!({ "scopes": [], "name": "n", "expiry": "2026-01-06", "metadata": { "a": "b" } }), None),
            (json!({ "scopes": ["completions.write", "workspaces.create"] }), Some("scopes[1]")),
            (json!({ "scopes": ["invented"] }), Some("scopes[0]")),
            (json!({ "scopes": [], "name": "" }), Some("name")),
            (json!({ "scopes": [], "expiry": "2026-01-05T10:30:00Z" }), Some("expiry")),
            (json!({ "scopes": [], "expiry": "soon" }), Some("expiry")),
        ] {
            let checked = checked_key(serde_json::from_value(details.clone()).unwrap(), now);
            let named = checked.err().map(|error| error.to_string().split(':').next().unwrap().to_owned());
            assert_eq!(named, refused.map(|field| format!("workspace_api_key_details.{field}")), "{details}");
        }
    }

    #[test]
    fn only_what_mail_can_be_sent_to_is_an_address() {
        for (text, accepted) in [
            ("ada@acme.test", true),
            ("ada+x@localhost", true),
            ("ada@acme.test\r\nBcc: x@y.test", false),
            ("ada@acme..test", false),
            ("Ada <ada@acme.test>", false),
            ("<ada@acme.test>", false),
        ] {
            assert_eq!(address(text).is_ok(), accepted, "{text}");
        }
    }
}
