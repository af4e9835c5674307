//! SCIM's operations in the document.

use crate::openapi::{Doc, schema};
use serde_json::json;
use shared::routes::Method;

pub fn docs() -> Vec<Doc> {
    let mut docs = mappings();
    for (path, summary) in [
        ("/scim/ServiceProviderConfig", "Read what this SCIM server can do"),
        ("/scim/ResourceTypes", "List the kinds of SCIM resources"),
        ("/scim/ResourceTypes/{id}", "Read a kind of SCIM resources"),
        ("/scim/Schemas", "List the schemas of SCIM resources"),
        ("/scim/Schemas/{id}", "Read a schema of SCIM resources"),
    ] {
        docs.push(Doc::get(path, summary));
    }
    for (base, what) in [("/scim/Users", "user"), ("/scim/Groups", "group")] {
        let item = format!("{base}/{{id}}");
        let sent = || {
            schema::any_object().eg(match what {
                "user" => json!({ "userName": "ada@example.com", "active": true }),
                _ => json!({ "displayName": "ws-Sales-role-member", "members": [] }),
            })
        };
        let text = |says: &str, example: &str| schema::any_text().eg(example).says(says);
        let list = Doc::get(base, &format!("List {what}s by SCIM"))
            .filter("filter", text("A filter as RFC 7644 describes it.", "externalId eq \"701984\""))
            .filter("startIndex", text("The first to show, from 1.", "1"))
            .filter("count", text("How many to show, at most 1000.", "100"))
            .filter("attributes", text("The attributes to show.", "id"))
            .filter("excludedAttributes", text("The attributes to leave out.", "members"));
        docs.push(list);
        docs.push(Doc::post(base, &format!("Create a {what} by SCIM")).body(sent()).tagged());
        docs.push(Doc::get(&item, &format!("Read a {what} by SCIM")).tagged());
        docs.push(Doc::put(&item, &format!("Replace a {what} by SCIM")).body(sent()).tagged().conditional());
        let patch = json!({ "Operations": [{ "op": "replace", "path": "externalId", "value": "701984" }] });
        let patched = Doc::new(Method::Patch, &item, &format!("Update a {what} by SCIM"));
        docs.push(patched.body(schema::any_object().eg(patch)).tagged().conditional());
        docs.push(Doc::remove(&item, &format!("Delete a {what} by SCIM")).conditional());
    }
    let bulk = json!({ "Operations": [{ "method": "DELETE", "path": "/Users/0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11" }] });
    docs.push(Doc::post("/scim/Bulk", "Run several SCIM operations").body(schema::any_object().eg(bulk)));
    docs
}

fn mappings() -> Vec<Doc> {
    let role = || schema::any_text().eg("member").says("admin, manager or member, in upper or lower case.");
    let mapping = schema::object("ScimMapping")
        .need("id", schema::uuid().says("The id of the mapping."))
        .need("workspace_id", schema::uuid().says("The workspace that members of the group belong to."))
        .need("scim_group", schema::any_text().eg("Sales").says("The name of the group."))
        .need("scim_group_id", schema::uuid().says("The id of the group."))
        .need("role", role());
    let new = schema::object("NewScimMapping")
        .need("workspace_id", schema::name_of("ws-sales-3f9a01").says("Id or slug of the workspace."))
        .need("role", role())
        .may(
            "scim_group_id",
            schema::any_text()
                .eg("0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11")
                .or_null()
                .says("The id of the group; or its name, not both."),
        )
        .may(
            "scim_group_name",
            schema::any_text()
                .eg("Sales")
                .or_null()
                .says("The name of the group, which is made if there is none; or its id, not both."),
        );
    let group = schema::object("ScimGroup")
        .need("id", schema::uuid().says("The id of the group."))
        .need("name", schema::any_text().eg("Sales").says("The name of the group."))
        .need("members_count", schema::whole(0..=i64::MAX).says("How many people are in it."));
    let total = || schema::whole(0..=i64::MAX).says("How many there are on all pages.");
    let paged = |doc: Doc| {
        doc.filter("page", schema::whole(0..=i64::MAX).eg(0).says("Which page; the first is 0."))
            .filter("page_size", schema::whole(0..=i64::MAX).eg(100).says("Rows on a page, at most 100."))
    };
    let listed = schema::object("").need("mappings", schema::list(mapping.clone()).says("The mappings."));
    let groups = schema::object("").need("groups", schema::list(group).says("The groups."));
    vec![
        paged(Doc::get("/scim/workspaces", "List which groups stand for which workspaces"))
            .filter("workspace_id", schema::name_of("ws-sales-3f9a01").or_empty().says("Id or slug of a workspace."))
            .filter("scim_group_id", schema::any_text().eg("0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11").says("A group."))
            .filter("role", role())
            .answer(listed.need("total_count", total())),
        Doc::post("/scim/workspaces", "Create a mapping of a group to a workspace").body(new).answer(mapping),
        Doc::remove("/scim/workspaces/{mappingId}", "Delete a mapping of a group to a workspace")
            .details("Members stay.")
            .answer(schema::object("").need("success", schema::fixed(true).says("Always true."))),
        paged(Doc::get("/scim/groups", "List the groups of the identity provider"))
            .filter("search", schema::any_text().eg("sales").says("Part of the name."))
            .answer(groups.need("total_count", total())),
    ]
}
