//! How the OpenAPI document shows the members of a workspace.

use crate::http::PageSizes;
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use crate::resources::api_keys;

const ROLES: &[&str] = &["member", "manager", "admin"];

pub fn docs(base: &str) -> [Doc; 5] {
    let (all, one) = (format!("{base}/{{workspaceId}}/users"), format!("{base}/{{workspaceId}}/users/{{userId}}"));
    let many = schema::object("NewMembers").need("users", schema::list(schema::either([sent(), schema::uuid()])));
    let page = schema::object("MemberList")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX))
        .need("data", schema::list(member()));
    let role = schema::object("MemberChange").need("role", schema::choice(ROLES));
    [
        Doc::post(&all, "Add members to a workspace")
            .details("Takes a list of users, or one user alone. Nobody gives a role above their own, or is shown the secret of a \
                 key that can do more than they can.")
            .body(schema::either([many, sent()]))
            .answer(schema::object("").may("api_keys", schema::list(api_keys::docs::issued()))),
        Doc::get(&all, "List the members of a workspace")
            .pages(PageSizes::USUAL)
            .filter("role", schema::choice(&["member", "manager", "admin", ""]))
            .filter("email", schema::any_text().eg("ada@example.com"))
            .answer(page),
        Doc::get(&one, "Read a member").answer(member()),
        Doc::put(&one, "Change a member's role").body(role),
        Doc::remove(&one, "Remove a member").details("Their keys of this workspace go with them."),
    ]
}

/// Somebody to add.
pub fn sent() -> Schema {
    schema::object("NewMember")
        .need("id", schema::uuid().says("The user; `user_id` does as well."))
        .may("role", schema::choice(ROLES).or_null())
}

pub fn member() -> Schema {
    schema::shown("Member", "workspace-user")
        .need("user_id", schema::uuid())
        .need("first_name", schema::any_text().eg("Ada").or_null())
        .need("last_name", schema::any_text().eg("Lovelace").or_null())
        .need("email", schema::any_text().eg("ada@example.com"))
        .need("org_role", schema::choice(&["member", "admin", "owner"]))
        .need("role", schema::choice(ROLES))
        .need("status", schema::fixed("active"))
        .need("workspace_id", schema::uuid())
        .need("scopes", schema::list(schema::any_text().eg("completions.write")).says("What the role allows."))
        .need("settings", schema::any_object().or_null())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
}
