//! Who sees which logs: tenants never each other's, workspaces their own, people what their role and the data visibility
//! settings let them see.

use super::{at, ids, store};
use crate::service::Service;
use harness::Client;
use serde_json::json;
use shared::model::KeyKind;

async fn person(service: &Service, role: &str) -> (uuid::Uuid, Client) {
    let user = service.person("member", Some(role)).await;
    (user, service.person_client(service.home.workspace_id, user).await)
}

#[tokio::test]
async fn tenants_and_workspaces_never_see_each_others_logs() {
    let service = Service::start().await;
    let (other, elsewhere) = (service.organisation().await, service.workspace("elsewhere").await);
    let own = store(&service, at(3), json!({})).await.to_string();
    let neighbours = store(&service, at(2), json!({ "workspace_id": elsewhere })).await.to_string();
    let foreign_columns = json!({ "organisation_id": other.organisation_id, "workspace_id": other.workspace_id });
    let foreign = store(&service, at(1), foreign_columns).await.to_string();
    let admin = service.administrator();
    let workspace = service.workspace_client(service.home.workspace_id).await;
    let neighbour = service.workspace_client(elsewhere).await;
    let stranger = service.client().with_key(&other.admin_key.key);
    let only = |id: &str| vec![id.to_owned()];
    for (client, query, expected) in [
        (&admin, String::new(), vec![neighbours.clone(), own.clone()]),
        (&admin, "workspace_slug=*".into(), vec![neighbours.clone(), own.clone()]),
        (&admin, "workspace_slug=elsewhere".into(), only(&neighbours)),
        (
            &admin,
            format!("workspace_slug=elsewhere,{}", service.home.workspace_id),
            vec![neighbours.clone(), own.clone()],
        ),
        (&admin, format!("workspace_slug=*&search={foreign}"), vec![]),
        (&workspace, String::new(), only(&own)),
        (&workspace, "workspace_slug=*".into(), only(&own)),
        (&workspace, "workspace_slug=elsewhere".into(), only(&own)),
        (&neighbour, String::new(), only(&neighbours)),
        (&stranger, "workspace_slug=*".into(), only(&foreign)),
    ] {
        assert_eq!(ids(client, &query).await, expected, "{query}");
    }
    for name in [other.workspace_id.to_string(), "nowhere".into(), "elsewhere,nowhere".into(), ",".into()] {
        assert_eq!(admin.get(&format!("/logs?workspace_slug={name}")).await.status, 404, "{name}");
    }
    for (client, seen, hidden) in [
        (&admin, vec![&own, &neighbours], vec![&foreign]),
        (&workspace, vec![&own], vec![&neighbours, &foreign]),
        (&neighbour, vec![&neighbours], vec![&own, &foreign]),
        (&stranger, vec![&foreign], vec![&own, &neighbours]),
    ] {
        for (ids, status) in [(seen, 200), (hidden, 404)] {
            for id in ids {
                assert_eq!(client.get(&format!("/logs/{id}")).await.status, status);
            }
        }
    }
    service.sql("UPDATE workspaces SET status = 'archived' WHERE slug = 'elsewhere'").await;
    assert_eq!(ids(&admin, "workspace_slug=elsewhere").await, only(&neighbours), "logs outlive their workspace");
}

#[tokio::test]
async fn people_see_only_what_came_through_their_own_keys_where_the_settings_say_so() {
    let service = Service::start().await;
    let ((member, as_member), (manager, as_manager)) =
        (person(&service, "member").await, person(&service, "manager").await);
    let own = store(&service, at(2), json!({ "user_id": member })).await.to_string();
    let others = store(&service, at(1), json!({ "user_id": manager })).await.to_string();
    let all = vec![others.clone(), own.clone()];
    assert_eq!((ids(&as_member, "").await, ids(&as_manager, "").await), (all.clone(), all.clone()));
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewAllData": false}'"#).await;
    assert_eq!((ids(&as_member, "").await, ids(&as_manager, "").await), (vec![own.clone()], all.clone()));
    assert_eq!(as_member.get(&format!("/logs/{own}")).await.status, 200);
    assert_eq!(as_member.get(&format!("/logs/{others}")).await.status, 404);
    service.sql(r#"UPDATE organisations SET security_settings = '{"managersViewAllData": false}'"#).await;
    assert_eq!((ids(&as_member, "").await, ids(&as_manager, "").await), (all, vec![others]));
}

#[tokio::test]
async fn a_role_that_may_not_see_logs_reaches_none_by_the_scopes_of_an_application() {
    let service = Service::start().await;
    let (_, client) = person(&service, "member").await;
    let id = store(&service, at(1), json!({ "metadata": { "_user": "ada" } })).await;
    let path = format!("/logs/{id}");
    assert_eq!(client.get(&path).await.json()["metrics"]["metadata"], json!({ "_user": "ada" }));
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewLogMetadata": false}'"#).await;
    let log = client.get(&path).await.json();
    assert_eq!((&log["metrics"]["metadata"], &log["metrics"]["metadata.value"]), (&json!({}), &json!([])));
    assert_eq!(client.get("/logs?metadata=%7B%22_user%22%3A%22ada%22%7D").await.status, 403);
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewLogs": false}'"#).await;
    assert_eq!(client.get("/logs").await.status, 403);
    assert_eq!(client.get(&path).await.status, 403, "completions.write is a scope of this operation");
    let key = service.key(KeyKind::WorkspaceService, &["completions.write"]).await;
    let application = service.client().with_key(&key.key);
    assert_eq!(application.get(&path).await.status, 200, "service keys are bound by their scopes alone");
}
