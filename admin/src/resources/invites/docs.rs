//! How the OpenAPI document shows invitations.

use super::Invite;
use crate::crud::Resource as _;
use crate::openapi::schema::{self, Schema};
use crate::openapi::{Doc, choices};
use crate::resources::api_keys;
use serde_json::Value;

const LINK: &str = "https://gateway.example.com/invites/accept#token=…";

pub fn docs() -> [Doc; 6] {
    let item = format!("{}/{{inviteId}}", Invite::PATH);
    let link = || schema::any_text().eg(LINK).says("Shown once.");
    let made = schema::object("").need("id", schema::uuid()).need("invite_link", link());
    let resent = schema::object("").need("invite_link", link()).need("inviteLink", link());
    let joined = schema::object("Joined")
        .need("user_id", schema::uuid())
        .need("organisation_id", schema::uuid())
        .need("api_keys", schema::list(api_keys::docs::issued()));
    let acceptance = schema::object("Acceptance")
        .need("token", schema::any_text().eg("the token of the link"))
        .may("first_name", names("Ada"))
        .may("last_name", names("Lovelace"));
    [
        Doc::post(Invite::PATH, "Invite somebody")
            .details("The link is mailed where mail is set up.")
            .body(sent())
            .answer(made.need("object", schema::fixed(Invite::OBJECT))),
        Doc::list::<Invite>(&invite())
            .filter("status", choices(&["pending", "accepted", "cancelled", "expired"]))
            .filter("role", choices(&["admin", "member"]))
            .filter("email", schema::any_text().eg("ada@example.com")),
        Doc::read::<Invite>(&invite()),
        Doc::remove(&item, "Cancel an invite").conditional(),
        Doc::post(&format!("{item}/resend"), "Send an invite again")
            .details("With a new link; the old one is dead.")
            .answer(resent)
            .conditional(),
        Doc::post(&format!("{}/accept", Invite::PATH), "Accept an invite")
            .details("Makes the person, their memberships and keys.")
            .body(acceptance)
            .answer(joined)
            .also(403)
            .also(404)
            .also(409),
    ]
}

fn names(example: &str) -> Schema {
    schema::text(0..=255).eg(example).or_null()
}

fn sent() -> Schema {
    let seat = schema::object("NewSeat")
        .need("id", schema::any_text().eg("ws-market-3f9a01").says("Id or slug of a workspace."))
        .need("role", schema::choice(&["member", "manager", "admin"]));
    let key = schema::object("InvitedKeyDetails")
        .need("scopes", schema::list(schema::any_text().eg("completions.write")))
        .may("name", schema::text(1..=100).eg("First key").or_null())
        .may("expiry", schema::moment().or_null())
        .may("metadata", schema::map(schema::any_text().eg("search")).or_null());
    schema::object("NewInvite")
        .need("email", schema::email())
        .need("role", schema::choice(&["member", "admin"]))
        .may("workspaces", schema::list(seat).or_null())
        .may("workspace_api_key_details", key.or_null().says("A key to make in each of the workspaces."))
        .may("first_name", names("Ada"))
        .may("last_name", names("Lovelace"))
}

fn invite() -> Schema {
    let seat = schema::object("Seat")
        .need("id", schema::any_text().eg("ws-market-3f9a01"))
        .need("workspace_id", schema::uuid())
        .need("role", schema::any_text().eg("member"));
    schema::shown("Invite", "invite")
        .need("email", schema::any_text().eg("ada@example.com"))
        .need("role", schema::choice(&["member", "admin"]))
        .need("status", schema::choice(&["pending", "accepted", "cancelled", "expired"]))
        .need("workspaces", schema::list(seat))
        .need("first_name", schema::any_text().eg("Ada").or_null())
        .need("last_name", schema::any_text().eg("Lovelace").or_null())
        .need("invited_by", schema::uuid())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
        .need("expires_at", schema::time())
        .need("accepted_at", schema::time().or_null().eg(Value::Null))
}
