//! The requests of the two big identity providers, in the shapes that they are recorded to send.

use super::{TOKEN, made, patch, person, provider};
use crate::service::Service;
use serde_json::{Value, json};

const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

fn entra_user(name: &str) -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User", ENTERPRISE],
        "externalId": format!("0a21f0f2-8d2a-4f8e-bf98-{name}"),
        "userName": format!("{name}@acme.test"),
        "active": true,
        "emails": [{ "primary": true, "type": "work", "value": format!("{name}@acme.test") }],
        "meta": { "resourceType": "User" },
        "name": { "formatted": "givenName familyName", "familyName": "familyName", "givenName": "givenName" },
        "roles": [],
    })
}

fn query(name: &str, value: &str) -> String {
    url::form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish()
}

#[tokio::test]
async fn entra_creates_changes_and_deactivates_a_person() {
    let service = Service::start().await;
    let idp = provider(&service, &service.home, TOKEN).await;
    let none =
        idp.get(&format!("/scim/Users?{}", query("filter", "externalId eq \"0a21f0f2-8d2a-4f8e-bf98-ada\""))).await;
    assert_eq!((none.status.as_u16(), &none.json()["totalResults"]), (200, &json!(0)));
    let id = made(&idp, "/scim/Users", entra_user("ada")).await;
    let path = format!("/scim/Users/{id}");
    let changed = patch(
        &idp,
        &path,
        json!([
            { "op": "Replace", "path": "emails[type eq \"work\"].value", "value": "lovelace@acme.test" },
            { "op": "Replace", "path": "name.familyName", "value": "Lovelace" },
            { "op": "Add", "path": format!("{ENTERPRISE}:department"), "value": "Engines" },
        ]),
    )
    .await;
    let seen = changed.json();
    assert_eq!(changed.status, 200, "{seen}");
    assert_eq!(seen["name"]["familyName"], "Lovelace");
    assert_eq!(seen["emails"][0]["value"], "lovelace@acme.test");
    assert_eq!(seen[ENTERPRISE]["department"], "Engines");
    // Without a path, names of values are paths themselves.
    let flat =
        patch(&idp, &path, json!([{ "op": "Add", "value": { "name.givenName": "Ada", "displayName": "A. L." } }]))
            .await;
    assert_eq!((&flat.json()["name"]["givenName"], &flat.json()["displayName"]), (&json!("Ada"), &json!("A. L.")));
    for (value, is_active) in [(json!("False"), false), (json!("True"), true), (json!(false), false)] {
        let answer = patch(&idp, &path, json!([{ "op": "Replace", "path": "active", "value": value }])).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["active"]), (200, &json!(is_active)), "{value}");
    }
    assert_eq!(idp.delete(&path).await.status, 204);
}

#[tokio::test]
async fn entra_fills_and_empties_a_group() {
    let service = Service::start().await;
    let idp = provider(&service, &service.home, TOKEN).await;
    let (ada, bob) =
        (made(&idp, "/scim/Users", entra_user("ada")).await, made(&idp, "/scim/Users", entra_user("bob")).await);
    let body = json!({
        "schemas": [
            "urn:ietf:params:scim:schemas:core:2.0:Group",
            "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group",
        ],
        "externalId": "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159",
        "displayName": "ws-Sales-role-member",
        "meta": { "resourceType": "Group" },
    });
    let id = made(&idp, "/scim/Groups", body).await;
    let path = format!("/scim/Groups/{id}");
    let found = idp
        .get(&format!(
            "/scim/Groups?excludedAttributes=members&{}",
            query("filter", "displayName eq \"ws-Sales-role-member\"")
        ))
        .await
        .json();
    assert_eq!(found["Resources"][0]["id"], json!(id));
    assert_eq!(found["Resources"][0].get("members"), None);
    let member = |id: &str| json!([{ "$ref": null, "value": id }]);
    let count = async || idp.get(&path).await.json()["members"].as_array().unwrap().len();
    for (operations, left) in [
        (json!([{ "op": "Add", "path": "members", "value": member(&ada) }]), 1),
        (json!([{ "op": "Add", "path": "members", "value": member(&bob) }]), 2),
        (json!([{ "op": "Remove", "path": "members", "value": member(&ada) }]), 1),
        (json!([{ "op": "Remove", "path": format!("members[value eq \"{bob}\"]") }]), 0),
    ] {
        let answer = patch(&idp, &path, operations.clone()).await;
        assert_eq!(answer.status, 200, "{operations}: {}", answer.text());
        assert_eq!(count().await, left, "{operations}");
    }
    let renamed = patch(&idp, &path, json!([{ "op": "Replace", "path": "displayName", "value": "Sales" }])).await;
    assert_eq!(renamed.json()["displayName"], "Sales");
}

#[tokio::test]
async fn okta_pushes_people_and_groups() {
    let service = Service::start().await;
    let idp = provider(&service, &service.home, TOKEN).await;
    let filter = query("filter", "userName eq \"ada@acme.test\"");
    let none = idp.get(&format!("/scim/Users?{filter}&startIndex=1&count=100")).await.json();
    assert_eq!((&none["totalResults"], &none["startIndex"]), (&json!(0), &json!(1)));
    let (ada, bob) = (made(&idp, "/scim/Users", person("ada")).await, made(&idp, "/scim/Users", person("bob")).await);
    let path = format!("/scim/Users/{ada}");
    // A whole person comes back changed, with what we had shown.
    let mut whole = idp.get(&path).await.json();
    whole["active"] = json!(false);
    let off = idp.put(&path, &whole).await;
    assert_eq!((off.status.as_u16(), &off.json()["active"]), (200, &json!(false)), "{}", off.text());
    let on = patch(&idp, &path, json!([{ "op": "replace", "value": { "active": true } }])).await;
    assert_eq!(on.json()["active"], true);
    let body = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"], "displayName": "Engineers",
        "members": [{ "value": ada, "display": "ada@acme.test" }],
    });
    let group = made(&idp, "/scim/Groups", body).await;
    let path = format!("/scim/Groups/{group}");
    let renamed =
        patch(&idp, &path, json!([{ "op": "replace", "value": { "id": group, "displayName": "Makers" } }])).await;
    assert_eq!((renamed.status.as_u16(), &renamed.json()["displayName"]), (200, &json!("Makers")));
    let both = patch(
        &idp,
        &path,
        json!([
            { "op": "remove", "path": format!("members[value eq \"{ada}\"]") },
            { "op": "add", "path": "members", "value": [{ "value": bob, "display": "bob@acme.test" }] },
        ]),
    )
    .await;
    let members = both.json()["members"].clone();
    assert_eq!((members.as_array().unwrap().len(), &members[0]["value"]), (1, &json!(bob)), "{members}");
}

#[tokio::test]
async fn an_installation_without_scim_says_so_to_everybody() {
    let service = Service::start_with(&["--scim-enabled=OFF"]).await;
    let idp = provider(&service, &service.home, TOKEN).await;
    let refused = idp.get("/scim/Users").await;
    assert_eq!((refused.status.as_u16(), &refused.json()["status"]), (402, &json!("402")), "{}", refused.text());
    assert!(refused.text().contains("SCIM_ENABLED"), "{}", refused.text());
    assert_eq!(idp.post("/scim/Users", &person("ada")).await.status, 402);
    assert_eq!(service.administrator().get("/scim/workspaces").await.status, 402);
    // And an organisation that has switched it off for itself.
    let service = Service::start().await;
    let idp = provider(&service, &service.home, TOKEN).await;
    let off = json!({ "scim": { "enabled": false } });
    assert_eq!(service.administrator().put(super::AUTH, &off).await.status, 200);
    assert_eq!(idp.get("/scim/Users").await.status, 403);
}

/// Counted by triggers: a change of two members in a large group touches no row of anybody else.
#[tokio::test]
async fn a_change_of_a_group_writes_only_rows_of_whom_it_names() {
    const COUNT: &str = "CREATE TABLE written (of text);
        CREATE FUNCTION count_written() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO written VALUES (TG_TABLE_NAME); RETURN NULL; END $$;
        CREATE TRIGGER written AFTER INSERT OR UPDATE OR DELETE ON scim_group_members
            FOR EACH ROW EXECUTE FUNCTION count_written();
        CREATE TRIGGER written AFTER INSERT OR UPDATE OR DELETE ON workspace_members
            FOR EACH ROW EXECUTE FUNCTION count_written();
        CREATE TRIGGER written AFTER INSERT OR UPDATE OR DELETE ON users
            FOR EACH ROW EXECUTE FUNCTION count_written();";
    const WRITTEN: &str = "SELECT of || ' ' || count(*) FROM written GROUP BY of ORDER BY of";
    let service = Service::start().await;
    let idp = provider(&service, &service.home, TOKEN).await;
    let mut people = Vec::new();
    for n in 0..20 {
        people.push(made(&idp, "/scim/Users", person(&format!("p{n}"))).await);
    }
    let members: Vec<Value> = people[..19].iter().map(|id| json!({ "value": id })).collect();
    let group = made(&idp, "/scim/Groups", json!({ "displayName": "ws-All-role-member", "members": members })).await;
    let db = service.database.client().await;
    db.batch_execute(COUNT).await.unwrap();
    let operations = json!([
        { "op": "remove", "path": format!("members[value eq \"{}\"]", people[0]) },
        { "op": "add", "path": "members", "value": [{ "value": people[19] }, { "value": people[5] }] },
    ]);
    assert_eq!(patch(&idp, &format!("/scim/Groups/{group}"), operations).await.status, 200);
    let written: Vec<String> = db.query(WRITTEN, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(written, ["scim_group_members 2", "workspace_members 2"]);
}

/// 30 groups of the same 1,000 people: more members than one page shows.
const CROWD: &str = "WITH people AS (INSERT INTO users (organisation_id, email, role)
        SELECT $1, 'crowd-' || n || '@acme.test', 'member' FROM generate_series(1, 1000) n RETURNING id),
    groups AS (INSERT INTO scim_groups (organisation_id, display_name, created_at)
        SELECT $1, 'Crowd ' || n, now() + n * interval '1 second' FROM generate_series(1, 30) n RETURNING id)
    INSERT INTO scim_group_members (organisation_id, group_id, user_id)
    SELECT $1, groups.id, people.id FROM groups, people";

#[tokio::test]
async fn a_page_of_groups_ends_before_it_shows_too_many_members_and_the_next_goes_on_there() {
    let service = Service::start().await;
    let idp = provider(&service, &service.home, TOKEN).await;
    service.database.client().await.execute(CROWD, &[&service.home.organisation_id]).await.unwrap();
    let (mut seen, mut start, mut pages) = (Vec::new(), 1, 0);
    while seen.len() < 30 {
        let page = idp.get(&format!("/scim/Groups?startIndex={start}&count=1000")).await.json();
        let groups = page["Resources"].as_array().unwrap();
        assert_eq!((&page["totalResults"], &page["itemsPerPage"]), (&json!(30), &json!(groups.len())));
        assert!((1..=20).contains(&groups.len()), "{}", groups.len());
        for group in groups {
            assert_eq!(group["members"].as_array().unwrap().len(), 1000);
            seen.push(group["displayName"].as_str().unwrap().to_owned());
        }
        start += groups.len();
        pages += 1;
    }
    assert_eq!(seen, (1..=30).map(|n| format!("Crowd {n}")).collect::<Vec<_>>());
    assert_eq!(pages, 2);
    let bare = idp.get("/scim/Groups?count=1000&excludedAttributes=members").await.json();
    assert_eq!(bare["itemsPerPage"], 30, "without members there is nothing to bound");
}

#[tokio::test]
async fn a_group_of_more_members_than_a_page_shows_stands_alone_on_its_page() {
    let service = Service::start().await;
    let idp = provider(&service, &service.home, TOKEN).await;
    let larger = CROWD.replace("(1, 1000)", "(1, 20001)").replace("(1, 30)", "(1, 2)");
    service.database.client().await.execute(&larger, &[&service.home.organisation_id]).await.unwrap();
    for start in [1, 2] {
        let page = idp.get(&format!("/scim/Groups?startIndex={start}")).await.json();
        assert_eq!((&page["totalResults"], &page["itemsPerPage"]), (&json!(2), &json!(1)));
        assert_eq!(page["Resources"][0]["members"].as_array().unwrap().len(), 20_001);
    }
}
