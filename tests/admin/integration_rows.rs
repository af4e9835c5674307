//! What the schema itself promises of integrations and providers, and that both services read the same rows.

use crate::service::Service;
use shared::model::{Integration, IntegrationModel, IntegrationWorkspace, Provider};
use uuid::Uuid;

#[tokio::test]
async fn a_new_workspace_gets_what_integrations_grant_to_all() {
    let service = Service::start().await;
    let client = service.database.client().await;
    let add = async |slug: &str, access: &str| -> Uuid {
        let sql = "INSERT INTO integrations (organisation_id, slug, name, ai_provider_id, global_workspace_access)
                   VALUES ($1, $2, $2, 'openai', $3::text::jsonb) RETURNING id";
        client.query_one(sql, &[&service.home.organisation_id, &slug, &access]).await.unwrap().get(0)
    };
    let granted =
        add("granted", r#"{"enabled": true, "usage_limits": {"credit_limit": 5}, "rate_limits": null}"#).await;
    let bare = add("bare", r#"{"enabled": true, "create_default_provider": false}"#).await;
    add("withheld", r#"{"enabled": false}"#).await;
    let other = service.organisation().await;
    let workspace = service.workspace("late").await;

    let sql = format!("SELECT {} FROM integration_workspaces ORDER BY usage_limits", IntegrationWorkspace::COLUMNS);
    let rows = client.query(&sql, &[]).await.unwrap();
    let grants: Vec<_> = rows.iter().map(|row| IntegrationWorkspace::from_row(row).unwrap()).collect();
    assert!(grants.iter().all(|one| one.enabled && one.workspace_id.uuid() == workspace), "{other:?} got something");
    assert_eq!(grants.iter().map(|one| one.integration_id.uuid()).collect::<Vec<_>>(), [granted, bare]);
    let limits = grants[0].limits.as_ref().unwrap();
    assert_eq!((limits.rates.len(), limits.budget.and_then(|budget| budget.credit_limit)), (0, Some(5.into())));
    assert_eq!(grants[1].limits, None);

    let sql = format!("SELECT {} FROM providers", Provider::COLUMNS);
    let rows = client.query(&sql, &[]).await.unwrap();
    let providers: Vec<_> = rows.iter().map(|row| Provider::from_row(row).unwrap()).collect();
    assert_eq!(providers.len(), 1);
    assert_eq!((providers[0].slug.as_str(), providers[0].integration_id.uuid()), ("granted", granted));
}

#[tokio::test]
async fn rows_of_one_organisation_cannot_point_into_another() {
    let service = Service::start().await;
    let other = service.organisation().await;
    let client = service.database.client().await;
    let add = "INSERT INTO integrations (organisation_id, workspace_id, slug, name, ai_provider_id)
               VALUES ($1, $2, 'a', 'a', 'openai') RETURNING id";
    let (ours, theirs) = (service.home.organisation_id, other.workspace_id);
    assert!(client.query_one(add, &[&ours, &Some(theirs)]).await.is_err());
    let integration: Uuid = client.query_one(add, &[&ours, &None::<Uuid>]).await.unwrap().get(0);
    for statement in [
        "INSERT INTO integration_workspaces (organisation_id, integration_id, workspace_id, enabled) VALUES ($1, $2, $3, true)",
        "INSERT INTO providers (organisation_id, integration_id, workspace_id, slug, name) VALUES ($1, $2, $3, 'p', 'p')",
    ] {
        for organisation in [ours, other.organisation_id] {
            assert!(client.execute(statement, &[&organisation, &integration, &theirs]).await.is_err(), "{statement}");
        }
    }
    let model =
        "INSERT INTO integration_models (organisation_id, integration_id, slug, enabled) VALUES ($1, $2, 'm', true)";
    assert!(client.execute(model, &[&other.organisation_id, &integration]).await.is_err());
    assert_eq!(client.execute(model, &[&ours, &integration]).await.unwrap(), 1);
    let sql = format!("SELECT {} FROM integration_models", IntegrationModel::COLUMNS);
    let model = IntegrationModel::from_row(&client.query_one(&sql, &[]).await.unwrap()).unwrap();
    let sql = format!("SELECT {} FROM integrations", Integration::COLUMNS);
    let integration = Integration::from_row(&client.query_one(&sql, &[]).await.unwrap()).unwrap();
    assert_eq!((model.integration_id, integration.sealed), (integration.id, None));
}
