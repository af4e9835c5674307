//! Who somebody becomes at their first login, and what their claims give them at every one.

use super::{Browser, person, prove, set_up, signed_in, started};
use crate::service::Service;
use harness::Answer;
use serde_json::{Value, json};

const INVITES: &str = "/admin/users/invites";

async fn login(service: &Service, provider: &super::Provider, claims: Value) -> (Answer, Browser) {
    let mut browser = Browser::new(service);
    (signed_in(service, provider, &mut browser, claims).await, browser)
}

/// Workspaces of a person by slug, with their role.
async fn places(browser: &mut Browser) -> Vec<(String, String)> {
    let session = browser.get("/auth/session").await.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    session["workspaces"].as_array().unwrap().iter().map(|one| (text(&one["slug"]), text(&one["role"]))).collect()
}

#[tokio::test]
async fn only_people_of_a_proved_domain_become_members_by_themselves() {
    let (service, provider) = started(&[]).await;
    for (email, status) in [
        ("ada@home.test", 303),
        ("ada@HOME.test", 403),
        ("bob@sub.home.test", 403),
        ("bob@home.test.evil.test", 403),
        ("bob@xhome.test", 403),
        ("bob@elsewhere.test", 403),
        ("bob@evil.test@home.test", 403),
        ("no address", 403),
    ] {
        let (answer, _) = login(&service, &provider, person(email, email)).await;
        assert_eq!(answer.status, status, "{email}: {}", answer.text());
    }
    let domains = json!({ "allowed_domains": [{ "domain": "home.test", "allow_subdomains": true }] });
    set_up(&service, domains).await;
    assert_eq!(login(&service, &provider, person("s", "bob@sub.home.test")).await.0.status, 303);
    // What a key says of itself is proved by nothing.
    let claimed = json!({ "allowed_domains": [{ "domain": "elsewhere.test", "verified": true }] });
    service.administrator().put(super::AUTH_SETTINGS, &claimed).await;
    assert_eq!(login(&service, &provider, person("e", "bob@elsewhere.test")).await.0.status, 403);
    let rows = super::trail(&service).await;
    assert!(rows.iter().any(|row| row["error"].as_str().is_some_and(|text| text.contains("invited"))), "{rows:?}");
}

#[tokio::test]
async fn domain_take_over_a_domain_belongs_to_who_proved_it_and_the_nearest_proof_counts() {
    let (service, provider) = started(&[]).await;
    let other = service.organisation().await;
    prove(&service, other.organisation_id, "eu.home.test").await;
    set_up(&service, json!({ "allowed_domains": [{ "domain": "home.test", "allow_subdomains": true }] })).await;
    assert_eq!(login(&service, &provider, person("1", "bob@us.home.test")).await.0.status, 303);
    assert_eq!(login(&service, &provider, person("2", "bob@eu.home.test")).await.0.status, 403);
    let twice = "INSERT INTO verified_domains (organisation_id, domain, method) VALUES ($1, 'home.test', 'dns')";
    let refused = service.database.client().await.execute(twice, &[&other.organisation_id]).await;
    assert!(refused.is_err(), "a domain is one organisation's");
}

#[tokio::test]
async fn an_invitation_decides_role_and_workspaces_of_whoever_it_is_for() {
    let (service, provider) = started(&[]).await;
    let sales = service.workspace("sales").await;
    let invite = json!({ "email": "bob@elsewhere.test", "role": "admin", "first_name": "Robert",
                         "workspaces": [{ "id": "sales", "role": "manager" }],
                         "workspace_api_key_details": { "scopes": ["completions.write"], "name": "Promised" } });
    assert_eq!(service.administrator().post(INVITES, &invite).await.status, 200);
    set_up(&service, json!({ "disable_auto_provision_user": true })).await;
    let (refused, _) = login(&service, &provider, person("ada", "ada@home.test")).await;
    assert_eq!(refused.status, 403, "nobody who was not invited: {}", refused.text());
    let (answer, mut browser) = login(&service, &provider, person("bob", "Bob@elsewhere.test")).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert_eq!(browser.get("/auth/session").await.json()["user"]["role"], "admin");
    let listed = service.administrator().get(INVITES).await.json();
    assert_eq!(listed["data"][0]["status"], "accepted", "{listed}");
    let keys = "SELECT name FROM api_keys WHERE workspace_id = $1 AND user_id IS NOT NULL";
    let keys = service.database.client().await.query(keys, &[&sales]).await.unwrap();
    assert_eq!(keys.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["Promised"]);
    let members = service.administrator().get(&format!("/admin/workspaces/{sales}/users")).await.json();
    assert_eq!(members["data"][0]["role"], "manager", "{members}");
}

#[tokio::test]
async fn who_was_removed_comes_back_by_invitation_only() {
    let (service, provider) = started(&[]).await;
    let (_, mut browser) = login(&service, &provider, person("ada", "ada@home.test")).await;
    let id = browser.get("/auth/session").await.json()["user"]["id"].as_str().unwrap().to_owned();
    assert_eq!(service.administrator().delete(&format!("/admin/users/{id}")).await.status, 200);
    assert_eq!(browser.get("/auth/session").await.status, 401);
    let (refused, _) = login(&service, &provider, person("ada", "ada@home.test")).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let invite = json!({ "email": "ada@home.test", "role": "member" });
    assert_eq!(service.administrator().post(INVITES, &invite).await.status, 200);
    let (back, mut browser) = login(&service, &provider, person("ada", "ada@home.test")).await;
    assert_eq!(back.status, 303, "{}", back.text());
    assert_ne!(browser.get("/auth/session").await.json()["user"]["id"], json!(id), "as somebody new");
}

#[tokio::test]
async fn a_directory_alone_manages_people_where_the_organisation_says_so() {
    let (service, provider) = started(&[]).await;
    let change = json!({ "settings": { "scim_only_user_management": true } });
    assert_eq!(service.administrator().put("/admin/organisation", &change).await.status, 200);
    let (refused, _) = login(&service, &provider, person("ada", "ada@home.test")).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(refused.text().contains("SCIM"), "{}", refused.text());
    // Who is there already gets in.
    super::allow_owner(&service, &provider).await;
    assert_eq!(login(&service, &provider, person("owner", "owner@home.test")).await.0.status, 303);
}

#[tokio::test]
async fn claims_give_and_take_roles_and_workspaces_at_every_login() {
    let (service, provider) = started(&[]).await;
    let sales = service.workspace("sales").await;
    let rules = json!([
        { "claim": "groups", "value": "platform", "role": "admin" },
        { "claim": "groups", "value": "sales", "workspace_id": "sales", "role": "member" },
        { "claim": "realm.roles", "value": "lead", "workspace_id": sales, "role": "manager" },
    ]);
    set_up(&service, json!({ "claim_rules": rules })).await;
    let with = |more: Value| {
        let mut claims = person("ada", "ada@home.test");
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        claims
    };
    let named = |role: &str| vec![("sales".to_owned(), role.to_owned())];
    let (_, mut browser) = login(&service, &provider, with(json!({ "groups": ["sales"] }))).await;
    assert_eq!(places(&mut browser).await, named("member"));
    let lead = json!({ "groups": ["sales"], "realm": { "roles": ["lead"] } });
    let (_, mut browser) = login(&service, &provider, with(lead)).await;
    assert_eq!(places(&mut browser).await, named("manager"), "the highest of all");
    let key = service.person_client(sales, browser.user().await).await;
    assert_eq!(key.get("/labels").await.status, 200);
    let (_, mut browser) = login(&service, &provider, with(json!({ "groups": ["platform"] }))).await;
    assert_eq!(browser.get("/auth/session").await.json()["user"]["role"], "admin");
    assert_eq!(key.get("/labels").await.status, 401, "keys end with the membership");
    let (_, mut browser) = login(&service, &provider, with(json!({ "groups": [] }))).await;
    assert_eq!(browser.get("/auth/session").await.json()["user"]["role"], "member");
    assert!(places(&mut browser).await.is_empty());
    let row = super::trail(&service).await.pop().unwrap();
    assert_eq!((&row["after"]["role"], &row["after"]["provider"]), (&json!("member"), &json!("oidc")), "{row}");
    // Owners stay owners, and what was given by hand stays.
    super::allow_owner(&service, &provider).await;
    let (_, mut owner) = login(&service, &provider, person("owner", "owner@home.test")).await;
    assert_eq!(owner.get("/auth/session").await.json()["user"]["role"], "owner");
    for (rule, field) in [
        (json!({ "claim": "g", "value": "v", "role": "manager" }), "claim_rules[0].role"),
        (json!({ "claim": "", "value": "v", "role": "admin" }), "claim_rules[0].claim"),
        (
            json!({ "claim": "g", "value": "v", "role": "admin", "workspace_id": "nowhere" }),
            "claim_rules[0].workspace_id",
        ),
    ] {
        let answer = service.administrator().put(super::AUTH_SETTINGS, &json!({ "claim_rules": [rule] })).await;
        assert!((400..=404).contains(&answer.status.as_u16()), "{}", answer.text());
        assert!(answer.text().contains(field), "{field}: {}", answer.text());
    }
}

#[tokio::test]
async fn two_first_logins_at_once_make_one_person() {
    let (service, provider) = started(&[]).await;
    let logins = (0..6).map(|_| login(&service, &provider, person("ada", "ada@home.test")));
    let all = futures::future::join_all(logins).await;
    assert!(
        all.iter().all(|(answer, _)| answer.status == 303),
        "{:?}",
        all.iter().map(|one| one.0.text()).collect::<Vec<_>>()
    );
    let count = "SELECT count(*) FROM users WHERE email = 'ada@home.test'";
    let count: i64 = service.database.client().await.query_one(count, &[]).await.unwrap().get(0);
    assert_eq!(count, 1);
}
