//! Owners: made by owners, never the last one gone, also when two act at once, and all of them told.

use super::everywhere;
use crate::login::browser::Browser;
use crate::login::by_link;
use crate::service::Service;
use harness::Answer;
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

async fn become_as(browser: &mut Browser, person: Uuid, role: &str) -> Answer {
    browser.send(Method::PUT, &format!("/admin/users/{person}"), Some(&json!({ "role": role }))).await
}

async fn owners(service: &Service) -> Vec<Uuid> {
    const OWNERS: &str = "SELECT id FROM users WHERE organisation_id = $1 AND role = 'owner' AND status = 'active'
        ORDER BY created_at, id";
    let client = service.database.client().await;
    let rows = client.query(OWNERS, &[&service.home.organisation_id]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn letters(service: &Service) -> Vec<(String, String)> {
    const LETTERS: &str = "SELECT recipient, subject FROM letters WHERE kind = 'owner' ORDER BY subject, recipient";
    let rows = service.database.client().await.query(LETTERS, &[]).await.unwrap();
    service.sql("DELETE FROM letters").await;
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test]
async fn an_owner_makes_another_and_hands_over() {
    let service = Service::start().await;
    let (first, second) = (service.home.owner_id, service.person("member", Some("member")).await);
    service.sql(&format!("UPDATE users SET email = 'ada@home.test' WHERE id = '{second}'")).await;
    let mut browser = by_link(&service, first).await;
    // The last owner stays.
    for role in ["admin", "member"] {
        let answer = become_as(&mut browser, first, role).await;
        assert_eq!(answer.status, 409, "{}", answer.text());
    }
    assert_eq!(browser.delete(&format!("/admin/users/{first}")).await.status, 409);
    assert_eq!(become_as(&mut browser, second, "owner").await.status, 200);
    let told = |to: &str, text: &str| (to.to_owned(), text.to_owned());
    let news = "ada@home.test is now an owner of Home";
    assert_eq!(letters(&service).await, [told("ada@home.test", news), told("owner@home.test", news)]);
    let row = service
        .trail(service.home.organisation_id)
        .await
        .into_iter()
        .rev()
        .find(|row| row["resource_type"] == "users")
        .unwrap();
    assert_eq!((&row["before"]["role"], &row["after"]["role"]), (&json!("member"), &json!("owner")), "{row}");
    assert_eq!((&row["user_id"], &row["resource_id"]), (&json!(first), &json!(second.to_string())));
    // Handed over: from now on the first is an admin, who changes no owner.
    assert_eq!(become_as(&mut browser, first, "admin").await.status, 200);
    let news = "owner@home.test is no longer an owner of Home";
    assert_eq!(letters(&service).await, [told("ada@home.test", news), told("owner@home.test", news)]);
    assert_eq!(owners(&service).await, [second]);
    assert_eq!(become_as(&mut browser, first, "owner").await.status, 403);
    assert_eq!(become_as(&mut browser, second, "member").await.status, 403);
    assert!(letters(&service).await.is_empty());
    // The other is the last one now, and stays too.
    let mut other = by_link(&service, second).await;
    assert_eq!(other.delete(&format!("/admin/users/{second}")).await.status, 409);
    assert_eq!(become_as(&mut other, first, "owner").await.status, 200);
    assert_eq!(other.delete(&format!("/admin/users/{second}")).await.status, 200, "who is not the last one leaves");
    assert_eq!(other.get("/auth/session").await.status, 401);
    assert_eq!(owners(&service).await, [first]);
    let role = service.database.client().await.query_one("SELECT role FROM users WHERE id = $1", &[&second]).await;
    assert_eq!(role.unwrap().get::<_, &str>(0), "member", "who comes back is no owner");
}

#[tokio::test]
async fn two_owners_who_act_at_once_leave_one() {
    let service = Service::start().await;
    for round in 0..6 {
        let (one, two) = (service.person("owner", None).await, service.person("owner", None).await);
        service.sql(&format!("UPDATE users SET role = 'member' WHERE id NOT IN ('{one}', '{two}')")).await;
        let (mut first, mut second) = (by_link(&service, one).await, by_link(&service, two).await);
        let (path_one, path_two) = (format!("/admin/users/{one}"), format!("/admin/users/{two}"));
        let answers = match round % 3 {
            // Each the other, each themselves, and one of each.
            0 => tokio::join!(become_as(&mut first, two, "member"), become_as(&mut second, one, "member")),
            1 => tokio::join!(become_as(&mut first, one, "admin"), second.delete(&path_two)),
            _ => tokio::join!(first.delete(&path_two), second.delete(&path_one)),
        };
        let statuses = [answers.0.status.as_u16(), answers.1.status.as_u16()];
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "round {round}: {statuses:?}");
        assert!(statuses.iter().all(|status| matches!(status, 200 | 401 | 403 | 404 | 409)), "{statuses:?}");
        assert_eq!(owners(&service).await.len(), 1, "round {round}");
    }
}

#[tokio::test]
async fn nobody_but_owners_makes_or_changes_one() {
    let service = Service::start().await;
    let (owner, member) = (service.home.owner_id, service.person("member", Some("member")).await);
    let mut admin = everywhere(&service, service.person("admin", None).await).await;
    let itself = admin.user().await;
    for (who, role) in [(owner, "member"), (owner, "admin"), (owner, "owner"), (member, "owner"), (itself, "owner")] {
        assert_eq!(become_as(&mut admin, who, role).await.status, 403, "{role}");
        let answer = service.administrator().put(&format!("/admin/users/{who}"), &json!({ "role": role })).await;
        assert_eq!(answer.status, 403, "by a key: {}", answer.text());
    }
    assert_eq!(admin.delete(&format!("/admin/users/{owner}")).await.status, 403);
    assert_eq!(admin.delete(&format!("/admin/users/{owner}/sessions")).await.status, 403);
    let invite = json!({ "email": "eve@x.test", "role": "owner" });
    assert_eq!(admin.post("/admin/users/invites", &invite).await.status, 400);
    let mut boss = by_link(&service, owner).await;
    assert_eq!(boss.post("/admin/users/invites", &invite).await.status, 400, "nobody begins as one");
    assert_eq!(boss.get("/auth/session").await.status, 200, "still signed in");
    assert_eq!(owners(&service).await, [owner]);
    // Members and admins are an admin's to change.
    assert_eq!(become_as(&mut admin, member, "admin").await.status, 200);
    assert_eq!(admin.delete(&format!("/admin/users/{member}")).await.status, 200);
    // Where people come from a directory, nobody is changed here, by anybody, but for who is an owner.
    let scim_only = json!({ "settings": { "scim_only_user_management": true } });
    assert_eq!(boss.send(Method::PUT, "/admin/organisation", Some(&scim_only)).await.status, 200);
    let person = service.person("member", None).await;
    assert_eq!(become_as(&mut boss, person, "admin").await.status, 403);
    let named = json!({ "role": "owner", "first_name": "Grace" });
    assert_eq!(boss.send(Method::PUT, &format!("/admin/users/{person}"), Some(&named)).await.status, 403);
    assert_eq!(become_as(&mut boss, person, "owner").await.status, 200, "an organisation can be handed over");
    assert_eq!(become_as(&mut boss, person, "member").await.status, 200);
    let refused: Value = boss.delete(&format!("/admin/users/{person}")).await.json();
    assert!(refused["message"].as_str().unwrap().contains("SCIM"), "{refused}");
}
