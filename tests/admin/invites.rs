//! Invitations from the first link to the person who joined, and every way in which they end.

use crate::service::Service;
use harness::{Answer, Client};
use serde_json::{Value, json};
use uuid::Uuid;

const INVITES: &str = "/admin/users/invites";

fn outcome(answer: &Answer) -> (u16, String) {
    let code = answer.json()["data"]["errorCode"].as_str().unwrap_or_default().to_owned();
    (answer.status.as_u16(), code)
}

async fn invite(client: &Client, body: Value) -> (String, String) {
    let answer = client.post(INVITES, &body).await;
    assert_eq!(answer.status, 200, "{body}: {}", answer.text());
    let made = answer.json();
    assert_eq!(made["object"], "invite");
    (made["id"].as_str().unwrap().to_owned(), token(&made["invite_link"]))
}

fn token(link: &Value) -> String {
    link.as_str().unwrap().split_once("#token=").unwrap_or_else(|| panic!("{link}")).1.to_owned()
}

async fn accept(service: &Service, token: &str) -> Answer {
    let body = json!({ "token": token, "first_name": "Ada", "last_name": "Byron" });
    service.client().post(&format!("{INVITES}/accept"), &body).await
}

async fn status(client: &Client, id: &str) -> String {
    client.get(&format!("{INVITES}/{id}")).await.json()["status"].as_str().unwrap_or("none").to_owned()
}

async fn lapse(service: &Service, id: &str) {
    service.sql(&format!("UPDATE user_invites SET expires_at = now() WHERE id = '{id}'")).await;
}

#[tokio::test]
async fn an_invitation_becomes_a_person_with_memberships_and_keys() {
    let service = Service::start_with(&["--public-url=https://gw.test/"]).await;
    let client = service.administrator();
    let second = service.workspace("second").await;
    let body = json!({
        "email": "Ada@x.test", "role": "member",
        "workspaces": [{ "id": service.home.workspace_id, "role": "ws-manager" }, { "id": "second", "role": "member" }],
        "workspace_api_key_details": {
            "scopes": ["completions.write", "prompts.list"], "name": "hers", "metadata": { "team": "red" },
        },
    });
    let answer = client.post(INVITES, &body).await.json();
    let (id, token) = (answer["id"].as_str().unwrap().to_owned(), token(&answer["invite_link"]));
    assert_eq!(answer["invite_link"], format!("https://gw.test/invites/accept#token={token}"));
    let seen = client.get(&format!("{INVITES}/{id}")).await.json();
    let expected = json!({
        "object": "invite", "id": id, "email": "Ada@x.test", "role": "member", "status": "pending",
        "workspaces": [
            { "id": service.home.workspace_id, "workspace_id": service.home.workspace_id, "role": "manager" },
            { "id": "second", "workspace_id": second, "role": "member" },
        ],
        "first_name": null, "last_name": null, "invited_by": service.home.admin_key.id, "accepted_at": null,
        "created_at": seen["created_at"], "last_updated_at": seen["last_updated_at"], "expires_at": seen["expires_at"],
    });
    assert_eq!(seen, expected);
    let joined = accept(&service, &token).await;
    assert_eq!(joined.status, 200, "{}", joined.text());
    let joined = joined.json();
    assert_eq!(joined["organisation_id"], json!(service.home.organisation_id));
    let user = client.get(&format!("/admin/users/{}", joined["user_id"].as_str().unwrap())).await.json();
    let named = (&user["first_name"], &user["last_name"], &user["email"], &user["role"]);
    assert_eq!(named, (&json!("Ada"), &json!("Byron"), &json!("Ada@x.test"), &json!("member")));
    assert_eq!(user["workspace_ids"].as_array().unwrap().len(), 2);
    assert_eq!(joined["api_keys"].as_array().unwrap().len(), 2);
    assert_eq!(joined["api_keys"][1]["workspace_id"], json!(second));
    let own = service.client().with_key(joined["api_keys"][0]["key"].as_str().unwrap());
    let key = own.get("/api-keys/self").await.json();
    assert_eq!(key["scopes"], json!(["completions.write", "prompts.list"]), "{key}");
    assert_eq!(own.get("/labels").await.status, 200);
    let invite = client.get(&format!("{INVITES}/{id}")).await.json();
    assert_eq!(invite["status"], "accepted");
    assert!(invite["accepted_at"].is_string(), "{invite}");
    let trail = service.trail(service.home.organisation_id).await;
    let last = trail.last().unwrap();
    assert_eq!((&last["resource_type"], &last["action"]), (&json!("user_invites"), &json!("manage")), "{last}");
    assert_eq!((&last["user_id"], &last["resource_id"]), (&joined["user_id"], &json!(id)));
    assert_eq!(last["client_ip"], "127.0.0.1");
    let everything =
        "SELECT row_to_json(a)::text FROM audit_logs a UNION ALL SELECT row_to_json(i)::text FROM user_invites i";
    for row in service.database.client().await.query(everything, &[]).await.unwrap() {
        let text: String = row.get(0);
        assert!(!text.contains(&token) && !text.contains(joined["api_keys"][0]["key"].as_str().unwrap()), "{text}");
    }
}

#[tokio::test]
async fn a_link_works_once_also_when_two_follow_it_at_once() {
    let service = Service::start().await;
    let (_, token) = invite(&service.administrator(), json!({ "email": "ada@x.test", "role": "admin" })).await;
    let (one, two) = tokio::join!(accept(&service, &token), accept(&service, &token));
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400]);
    let again = accept(&service, &token).await;
    assert_eq!((outcome(&again), &again.json()["data"]["errors"][0]["field"]), ((400, "AB01".into()), &json!("token")));
    let refused = service.trail(service.home.organisation_id).await.pop().unwrap();
    assert_eq!((&refused["response_status_code"], &refused["user_id"]), (&json!(400), &Value::Null));
    for body in [json!({ "token": "x" }), json!({ "token": "" }), json!({}), json!({ "token": 1 })] {
        let answer = service.client().post(&format!("{INVITES}/accept"), &body).await;
        assert_eq!(outcome(&answer), (400, "AB01".into()), "{body}");
    }
}

#[tokio::test]
async fn sending_again_kills_the_old_link_and_revives_what_had_expired() {
    let service = Service::start().await;
    let client = service.administrator();
    let (id, old) = invite(&client, json!({ "email": "ada@x.test", "role": "member", "workspaces": [] })).await;
    lapse(&service, &id).await;
    assert_eq!(status(&client, &id).await, "expired");
    assert_eq!(outcome(&accept(&service, &old).await), (400, "AB01".into()));
    let again = client.post(&format!("{INVITES}/{id}/resend"), &json!({})).await;
    assert_eq!(again.status, 200, "{}", again.text());
    assert_eq!(again.json()["invite_link"], again.json()["inviteLink"]);
    let new = token(&again.json()["invite_link"]);
    assert_eq!(status(&client, &id).await, "pending");
    assert_eq!(outcome(&accept(&service, &old).await), (400, "AB01".into()), "the old link is dead");
    assert_eq!(accept(&service, &new).await.status, 200);
    for answer in [
        client.post(&format!("{INVITES}/{id}/resend"), &json!({})).await,
        client.delete(&format!("{INVITES}/{id}")).await,
    ] {
        assert_eq!(outcome(&answer), (400, "AB01".into()), "accepted is accepted");
    }
}

#[tokio::test]
async fn a_cancelled_invitation_opens_nothing_and_stays_readable() {
    let service = Service::start().await;
    let client = service.administrator();
    let (id, token) = invite(&client, json!({ "email": "ada@x.test", "role": "member" })).await;
    let path = format!("{INVITES}/{id}");
    assert_eq!(client.delete(&path).await.json(), json!({}));
    assert_eq!(status(&client, &id).await, "cancelled");
    assert_eq!(outcome(&accept(&service, &token).await), (400, "AB01".into()));
    for answer in [client.delete(&path).await, client.post(&format!("{path}/resend"), &json!({})).await] {
        assert_eq!(outcome(&answer), (400, "AB01".into()));
    }
    assert_eq!(client.get(INVITES).await.json()["total"], 0);
    assert_eq!(client.get(&format!("{INVITES}?status=cancelled")).await.json()["total"], 1);
    invite(&client, json!({ "email": "ada@x.test", "role": "member" })).await;
}

#[tokio::test]
async fn an_address_is_invited_once_at_a_time_and_not_when_it_is_there_already() {
    let service = Service::start().await;
    let client = service.administrator();
    let body = |email: &str| json!({ "email": email, "role": "member" });
    let (ada, upper) = (body("ada@x.test"), body("ADA@X.TEST"));
    let (one, two) = tokio::join!(client.post(INVITES, &ada), client.post(INVITES, &upper));
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    assert_eq!(outcome(&client.post(INVITES, &ada).await), (409, "AB07".into()));
    assert_eq!(outcome(&client.post(INVITES, &body("Owner@home.test")).await), (409, "AB07".into()), "a user");
    let first = client.get(INVITES).await.json()["data"][0]["id"].as_str().unwrap().to_owned();
    lapse(&service, &first).await;
    let (_, token) = invite(&client, ada).await;
    assert_eq!(status(&client, &first).await, "expired");
    let revived = client.post(&format!("{INVITES}/{first}/resend"), &json!({})).await;
    assert_eq!(outcome(&revived), (409, "AB07".into()), "another one is pending");
    assert_eq!(accept(&service, &token).await.status, 200);
    let stranger = service.client().with_key(&service.organisation().await.admin_key.key);
    invite(&stranger, body("ada@x.test")).await;
}

#[tokio::test]
async fn what_cannot_be_promised_is_refused() {
    let service = Service::start().await;
    let client = service.administrator();
    let other = service.organisation().await;
    let base = json!({ "email": "ada@x.test", "role": "member" });
    for (field, value, status, named) in [
        ("email", json!("ada"), 400, "email"),
        ("email", json!("ada@x.test\r\nBcc: y@z.test"), 400, "email"),
        ("email", Value::Null, 400, "email"),
        ("role", json!("owner"), 400, "role"),
        ("role", json!("manager"), 400, "role"),
        ("workspaces", json!([{ "id": "nowhere", "role": "member" }]), 404, "workspaces[0].id"),
        ("workspaces", json!([{ "id": other.workspace_id, "role": "member" }]), 404, "workspaces[0].id"),
        ("workspaces", json!([{ "id": service.home.workspace_id, "role": "owner" }]), 400, "workspaces[0].role"),
        ("workspaces", json!([{ "id": service.home.workspace_id }]), 400, "workspaces[0].role"),
        ("workspace_api_key_details", json!({ "name": "n" }), 400, "workspace_api_key_details.scopes"),
        (
            "workspace_api_key_details",
            json!({ "scopes": ["workspaces.create"] }),
            400,
            "workspace_api_key_details.scopes[0]",
        ),
        ("first_name", json!("x".repeat(256)), 400, "first_name"),
    ] {
        let mut body = base.clone();
        body[field] = value.clone();
        let answer = client.post(INVITES, &body).await;
        let at = answer.json()["data"]["errors"][0]["field"].as_str().unwrap_or_default().to_owned();
        assert_eq!((answer.status.as_u16(), at.as_str()), (status, named), "{field} {value}: {}", answer.text());
    }
    let schema = json!({ "type": "object", "additionalProperties": true, "required": ["team"] });
    client.put("/admin/organisation", &json!({ "metadata_schemas": { "api_key": schema } })).await;
    let mut body = base.clone();
    body["workspace_api_key_details"] = json!({ "scopes": [], "metadata": {} });
    let answer = client.post(INVITES, &body).await;
    assert_eq!(answer.json()["data"]["errors"][0]["field"], "workspace_api_key_details.metadata.team");
    assert_eq!(client.get(&format!("{INVITES}?status=pending")).await.json()["total"], 0);
}

#[tokio::test]
async fn a_list_is_narrowed_by_role_address_and_status() {
    let service = Service::start().await;
    let client = service.administrator();
    let (one, _) = invite(&client, json!({ "email": "one@x.test", "role": "admin" })).await;
    let (two, _) = invite(&client, json!({ "email": "two@x.test", "role": "member" })).await;
    let (three, token) = invite(&client, json!({ "email": "three@x.test", "role": "member" })).await;
    accept(&service, &token).await;
    lapse(&service, &two).await;
    for (query, expected) in [
        ("", vec![&three, &two, &one]),
        ("role=admin", vec![&one]),
        ("email=TWO@x.test", vec![&two]),
        ("status=expired", vec![&two]),
        ("status=pending", vec![&one]),
        ("status=accepted,pending", vec![&three, &one]),
        ("pageSize=1&currentPage=1", vec![&two]),
    ] {
        let list = client.get(&format!("{INVITES}?{query}")).await.json();
        let ids: Vec<_> = list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        assert_eq!(ids, expected, "{query}");
    }
    assert_eq!(client.get(&format!("{INVITES}?status=gone")).await.status, 400);
    let stranger = service.client().with_key(&service.organisation().await.admin_key.key);
    assert_eq!(stranger.get(INVITES).await.json()["total"], 0);
    let path = format!("{INVITES}/{one}");
    for answer in [
        stranger.get(&path).await,
        stranger.delete(&path).await,
        stranger.post(&format!("{path}/resend"), &json!({})).await,
    ] {
        assert_eq!(outcome(&answer), (404, "AB08".into()));
    }
}

#[tokio::test]
async fn nobody_joins_by_invitation_where_people_come_from_a_directory() {
    let service = Service::start().await;
    let client = service.administrator();
    let (id, token) = invite(&client, json!({ "email": "ada@x.test", "role": "member" })).await;
    client.put("/admin/organisation", &json!({ "settings": { "scim_only_user_management": true } })).await;
    for answer in [
        client.post(INVITES, &json!({ "email": "bob@x.test", "role": "member" })).await,
        client.post(&format!("{INVITES}/{id}/resend"), &json!({})).await,
        accept(&service, &token).await,
    ] {
        assert_eq!(outcome(&answer), (403, "AB03".into()), "{}", answer.text());
    }
    assert_eq!(status(&client, &id).await, "pending", "a refused acceptance does not use the link up");
}

#[tokio::test]
async fn seats_and_keys_are_given_as_the_workspaces_are_at_acceptance() {
    let service = Service::start().await;
    let client = service.administrator();
    let (gone, full): (Uuid, Uuid) = (service.workspace("gone").await, service.workspace("full").await);
    let (_, token) = invite(&client, json!({
        "email": "ada@x.test", "role": "member",
        "workspaces": [{ "id": gone, "role": "admin" }, { "id": full, "role": "admin" }, { "id": service.home.workspace_id, "role": "member" }],
        "workspace_api_key_details": { "scopes": ["completions.write"] },
    })).await;
    service.sql("UPDATE workspaces SET status = 'archived' WHERE slug = 'gone'").await;
    service.sql(r#"UPDATE workspaces SET settings = '{"user_api_key_count": 0}' WHERE slug = 'full'"#).await;
    client.put("/admin/organisation", &json!({ "settings": { "user_api_key_max_ttl": 3600 } })).await;
    let joined = accept(&service, &token).await.json();
    let user = client.get(&format!("/admin/users/{}", joined["user_id"].as_str().unwrap())).await.json();
    assert_eq!(user["workspace_ids"].as_array().unwrap().len(), 2, "{user}");
    let keys = joined["api_keys"].as_array().unwrap();
    assert_eq!(keys.len(), 1, "one workspace is gone and one has room for no key: {joined}");
    assert_eq!(keys[0]["workspace_id"], json!(service.home.workspace_id));
    let ends =
        "SELECT expires_at <= now() + interval '1 hour' AND expiry_enforced FROM api_keys WHERE user_id IS NOT NULL";
    let ends: bool = service.database.client().await.query_one(ends, &[]).await.unwrap().get(0);
    assert!(ends, "the longest life of a user's key holds for this one too");
}
