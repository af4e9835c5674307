//! First start and further tenants: one of everything, keys shown once and stored as hashes.

use harness::Database;
use shared::bootstrap::{self, BootstrapError};
use shared::identity::api_key::KeyHash;
use shared::identity::scopes;
use shared::model::{ApiKey, KeyKind};
use shared::settings;
use tokio_postgres::Client;
use uuid::Uuid;

fn settings(admin_key: Option<&str>) -> settings::Bootstrap {
    settings::Bootstrap {
        bootstrap_organisation: "Default".into(),
        bootstrap_owner_email: "owner@localhost".into(),
        bootstrap_admin_key: admin_key.map(Into::into),
    }
}

async fn key_by_hash(client: &Client, key: &str) -> Option<ApiKey> {
    let query = format!("SELECT {} FROM api_keys WHERE hash = $1", ApiKey::COLUMNS);
    let hash = KeyHash::from_key(key.as_bytes()).0.to_vec();
    let row = client.query_opt(&query, &[&hash]).await.unwrap()?;
    Some(ApiKey::from_row(&row).unwrap())
}

async fn count(client: &Client, table: &str) -> i64 {
    client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn the_first_start_makes_an_organisation_a_workspace_an_owner_and_an_admin_key() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    let made = bootstrap::run(&mut client, &settings(None), "pk_").await.unwrap().unwrap();
    assert!(made.is_generated && made.admin_key.key.starts_with("pk_"));
    let key = key_by_hash(&client, &made.admin_key.key).await.unwrap();
    assert_eq!(key.id.uuid(), made.admin_key.id);
    assert_eq!((key.kind, key.workspace_id, key.user_id), (KeyKind::OrganisationService, None, None));
    assert_eq!(key.scopes[..], scopes::all_for(KeyKind::OrganisationService));
    let row = client
        .query_one(
            "SELECT o.name, w.id, w.name, w.slug, u.id, u.email, u.role
             FROM organisations o JOIN workspaces w ON w.organisation_id = o.id AND w.is_default
             JOIN users u ON u.organisation_id = o.id WHERE o.id = $1",
            &[&made.organisation_id],
        )
        .await
        .unwrap();
    let texts = [row.get::<_, String>(0), row.get(2), row.get(5), row.get(6)];
    assert_eq!(texts, ["Default", "Shared Team Workspace", "owner@localhost", "owner"]);
    assert_eq!((row.get::<_, Uuid>(1), row.get::<_, Uuid>(4)), (made.workspace_id, made.owner_id));
    let slug: String = row.get(3);
    assert!(slug.starts_with("ws-shared-") && slug.len() == "ws-shared-e2a85b".len(), "{slug}");
}

#[tokio::test]
async fn a_second_start_makes_nothing() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    bootstrap::run(&mut client, &settings(None), "pk_").await.unwrap().unwrap();
    assert!(bootstrap::run(&mut client, &settings(None), "pk_").await.unwrap().is_none());
    for table in ["organisations", "workspaces", "users", "api_keys"] {
        assert_eq!(count(&client, table).await, 1, "{table}");
    }
}

#[tokio::test]
async fn first_starts_at_the_same_moment_make_one_organisation() {
    let database = Database::fresh().await;
    let mut starts = Vec::new();
    for _ in 0..4 {
        let mut client = database.client().await;
        starts.push(tokio::spawn(async move { bootstrap::run(&mut client, &settings(None), "pk_").await.unwrap() }));
    }
    let mut made = 0;
    for start in starts {
        made += usize::from(start.await.unwrap().is_some());
    }
    assert_eq!(made, 1);
    assert_eq!(count(&database.client().await, "organisations").await, 1);
}

#[tokio::test]
async fn a_given_key_is_used_and_no_table_holds_any_key() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    let given = "pk_3fA9zQ7LmX2vB8nK5tR1wY6cD4eG0hJ";
    let made = bootstrap::run(&mut client, &settings(Some(given)), "pk_").await.unwrap().unwrap();
    assert!(!made.is_generated && made.admin_key.key == given);
    let scopes = ["completions.write"];
    let issued = bootstrap::create_workspace_key(&client, made.workspace_id, "k", &scopes, "pk_").await.unwrap();
    for table in ["organisations", "workspaces", "users", "api_keys"] {
        for row in client.query(&format!("SELECT t::text FROM {table} t"), &[]).await.unwrap() {
            let text: String = row.get(0);
            assert!(!text.contains(&given[5..]) && !text.contains(&issued.key[5..]), "{table}");
        }
    }
}

#[tokio::test]
async fn settings_that_cannot_be_used_leave_the_store_empty() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    let weak = settings(Some("changeme"));
    let nobody = settings::Bootstrap { bootstrap_owner_email: "nobody".into(), ..settings(None) };
    for (settings, name) in [(weak, "BOOTSTRAP_ADMIN_KEY"), (nobody, "BOOTSTRAP_OWNER_EMAIL")] {
        let error = bootstrap::run(&mut client, &settings, "pk_").await.err().unwrap().to_string();
        assert!(error.starts_with(name) && !error.contains("changeme"), "{error}");
        assert_eq!(count(&client, "organisations").await, 0);
    }
    assert!(bootstrap::run(&mut client, &settings(None), "pk_").await.unwrap().is_some(), "a corrected start works");
}

#[tokio::test]
async fn a_second_organisation_stands_beside_the_first() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    let first = bootstrap::run(&mut client, &settings(None), "pk_").await.unwrap().unwrap();
    let second = bootstrap::create_organisation(&mut client, "Acme", "owner@localhost", "pk_").await.unwrap();
    assert_ne!(first.organisation_id, second.organisation_id);
    let key = key_by_hash(&client, &second.admin_key.key).await.unwrap();
    assert_eq!(key.organisation_id.uuid(), second.organisation_id);
    assert_eq!(bootstrap::first_workspace(&client).await.unwrap(), Some(first.workspace_id));
}

#[tokio::test]
async fn a_workspace_key_belongs_to_its_workspace_and_holds_only_scopes_of_its_kind() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    assert_eq!(bootstrap::first_workspace(&client).await.unwrap(), None);
    let tenant = bootstrap::create_organisation(&mut client, "Acme", "a@acme.example", "pk_").await.unwrap();
    let make = async |workspace, scope| {
        bootstrap::create_workspace_key(&client, workspace, "development", &[scope], "pk_").await
    };
    let issued = make(tenant.workspace_id, "completions.write").await.unwrap();
    let key = key_by_hash(&client, &issued.key).await.unwrap();
    assert_eq!((key.kind, key.workspace_id), (KeyKind::WorkspaceService, Some(tenant.workspace_id.into())));
    assert_eq!(
        (key.organisation_id.uuid(), key.scopes),
        (tenant.organisation_id, ["completions.write".to_owned()].into())
    );
    let refused = make(tenant.workspace_id, "organisation_users.create").await.err().unwrap();
    assert!(matches!(refused, BootstrapError::UnknownScope(_)), "{refused}");
    let nowhere = make(Uuid::new_v4(), "completions.write").await.err().unwrap();
    assert!(matches!(nowhere, BootstrapError::NoWorkspace), "{nowhere}");
    client.batch_execute("UPDATE workspaces SET is_default = false, status = 'archived'").await.unwrap();
    let archived = make(tenant.workspace_id, "completions.write").await.err().unwrap();
    assert!(matches!(archived, BootstrapError::NoWorkspace), "{archived}");
}
