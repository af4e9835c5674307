//! The admin service inside the test: its real router on a real socket and a database of its own, without processes
//! to start. Tests of the process itself are in `process.rs`.

use crate::jobs::LOG_STORE;
use admin::audit::words;
use harness::{Client, Database};
use serde_json::Value;
use shared::bootstrap::{self, FirstKeys};
use shared::identity::api_key::{self, KeyHash};
use shared::identity::scopes;
use shared::model::KeyKind;
use shared::secrets::seal::Keyring;
use shared::{db, settings};
use std::collections::BTreeSet;
use std::ffi::OsString;
use tokio::sync::oneshot;
use uuid::Uuid;

pub struct Service {
    pub database: Database,
    /// Without a path.
    pub origin: String,
    pub home: FirstKeys,
    /// Dropping it stops the service.
    _stop: oneshot::Sender<()>,
}

impl Service {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// As an installation without a master key.
    pub async fn start_without_master_key() -> Self {
        let database = Database::fresh().await;
        let url = database.url();
        Self::launch(database, &url, &[]).await
    }

    /// `settings` are command-line flags, as `--scim-enabled=OFF`.
    pub async fn start_with(settings: &[&str]) -> Self {
        let database = Database::fresh().await;
        let url = database.url();
        Self::start_on(database, &url, settings).await
    }

    /// Reaches the database by way of another URL.
    pub async fn start_on(database: Database, url: &str, settings: &[&str]) -> Self {
        let key = format!("--gateway-master-key={}", Keyring::generate("test").unwrap().trim());
        let is_given = settings.iter().any(|setting| setting.starts_with("--gateway-master-key"));
        let key = (!is_given).then_some(key.as_str());
        Self::launch(database, url, &settings.iter().copied().chain(key).collect::<Vec<_>>()).await
    }

    async fn launch(database: Database, url: &str, settings: &[&str]) -> Self {
        let url = format!("--database-url={url}");
        let arguments = ["gateway-admin", &url, "--database-pool-size=4", LOG_STORE];
        let arguments = arguments.into_iter().chain(settings.iter().copied());
        let settings: admin::Settings = settings::load(arguments.map(OsString::from)).expect("the settings are valid");
        let mut client = database.client().await;
        let home = bootstrap::create_organisation(&mut client, "Home", "owner@home.test", "pk_").await.unwrap();
        let pool = db::pool(&settings.database).await.expect("the database answers");
        let app = admin::App::new(pool, &settings).expect("the settings make an app");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(admin::server::serve_on(listener, app, async {
            let _ = stopped.await;
        }));
        Self { database, origin, home, _stop: stop }
    }

    /// A client without credentials, relative to `/v1`.
    pub fn client(&self) -> Client {
        Client::new(&format!("{}/v1", self.origin))
    }

    /// A client of the admin key.
    pub fn administrator(&self) -> Client {
        self.client().with_key(&self.home.admin_key.key)
    }

    /// A key of this kind in the first organisation with exactly these scopes, whether its kind may have them or not.
    pub async fn key(&self, kind: KeyKind, scopes: &[&str]) -> Key {
        self.key_for(&self.home, self.home.workspace_id, self.home.owner_id, kind, scopes).await
    }

    /// The same for any organisation, workspace and person.
    pub async fn key_for(
        &self,
        organisation: &FirstKeys,
        workspace: Uuid,
        user: Uuid,
        kind: KeyKind,
        scopes: &[&str],
    ) -> Key {
        const INSERT: &str =
            "INSERT INTO api_keys (organisation_id, workspace_id, user_id, kind, name, hash, mask, scopes)
             VALUES ($1, $2, $3, $4, 'Test key', $5, $6, $7) RETURNING id";
        let key = api_key::generate("pk_");
        let workspace = (kind != KeyKind::OrganisationService).then_some(workspace);
        let user = (kind == KeyKind::WorkspaceUser).then_some(user);
        let (hash, mask) = (KeyHash::from_key(key.as_bytes()).0.to_vec(), api_key::mask(&key));
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
            [&organisation.organisation_id, &workspace, &user, &kind.as_str(), &hash, &mask, &scopes];
        let row = self.database.client().await.query_one(INSERT, &values).await.unwrap();
        Key { id: row.get(0), key }
    }

    /// A client of a key of the first organisation's workspace with every scope that its kind can have.
    pub async fn workspace_client(&self, workspace: Uuid) -> Client {
        let scopes = scopes::all_for(KeyKind::WorkspaceService);
        let key = self.key_for(&self.home, workspace, self.home.owner_id, KeyKind::WorkspaceService, &scopes).await;
        self.client().with_key(&key.key)
    }

    /// A client of a person's key with every scope that such keys can have.
    pub async fn person_client(&self, workspace: Uuid, user: Uuid) -> Client {
        let scopes = scopes::all_for(KeyKind::WorkspaceUser);
        let key = self.key_for(&self.home, workspace, user, KeyKind::WorkspaceUser, &scopes).await;
        self.client().with_key(&key.key)
    }

    /// One more tenant.
    pub async fn organisation(&self) -> FirstKeys {
        let mut client = self.database.client().await;
        bootstrap::create_organisation(&mut client, "Other", "owner@other.test", "pk_").await.unwrap()
    }

    /// One more workspace of the first organisation.
    pub async fn workspace(&self, name: &str) -> Uuid {
        const INSERT: &str = "INSERT INTO workspaces (organisation_id, slug, name) VALUES ($1, $2, $2) RETURNING id";
        let row = self.database.client().await.query_one(INSERT, &[&self.home.organisation_id, &name]).await.unwrap();
        row.get(0)
    }

    /// A person of the first organisation, and their role in its default workspace.
    pub async fn person(&self, organisation_role: &str, role: Option<&str>) -> Uuid {
        const USER: &str = "INSERT INTO users (organisation_id, email, role) VALUES ($1, $2, $3) RETURNING id";
        const MEMBER: &str =
            "INSERT INTO workspace_members (organisation_id, workspace_id, user_id, role) VALUES ($1, $2, $3, $4)";
        let client = self.database.client().await;
        let email = format!("{}@home.test", Uuid::new_v4().simple());
        let organisation = self.home.organisation_id;
        let user: Uuid = client.query_one(USER, &[&organisation, &email, &organisation_role]).await.unwrap().get(0);
        if let Some(role) = role {
            client.execute(MEMBER, &[&organisation, &self.home.workspace_id, &user, &role]).await.unwrap();
        }
        user
    }

    /// The audit trail of an organisation, oldest first.
    pub async fn trail(&self, organisation: Uuid) -> Vec<Value> {
        const TRAIL: &str = "SELECT to_jsonb(a) FROM audit_logs a WHERE organisation_id = $1 ORDER BY created_at, id";
        let rows = self.database.client().await.query(TRAIL, &[&organisation]).await.unwrap();
        let rows: Vec<Value> = rows.iter().map(|row| row.get(0)).collect();
        for row in &rows {
            let has = |field: &str, words: BTreeSet<&str>| words.contains(row[field].as_str().unwrap_or_default());
            assert!(
                has("resource_type", words::resource_types()) && has("action", words::actions()),
                "no words: {row}"
            );
        }
        rows
    }

    /// What the proxies count: all of a table that has a budget has used so many cents or tokens in its present period.
    pub async fn spend(&self, table: &str, amount: &str) {
        let (scope, id, budget) = match table {
            "api_keys" => ("api_key", "id::text", "usage_limits"),
            "workspaces" => ("workspace", "id::text", "usage_limits -> 0"),
            "providers" => ("provider", "workspace_id || '/' || slug", "usage_limits"),
            _ => ("integration", "integration_id || '/' || workspace_id", "usage_limits"),
        };
        self.sql(&format!(
            "INSERT INTO usage_counters (organisation_id, scope, scope_id, unit, period, starts_at, value)
             SELECT organisation_id, '{scope}', {id}, {budget} ->> 'type', 'total',
                    ({budget} ->> 'last_reset_at')::timestamptz, {amount}
             FROM {table} WHERE usage_limits IS NOT NULL
             ON CONFLICT (organisation_id, scope, scope_id, unit, period, starts_at) DO UPDATE SET value = excluded.value"
        ))
        .await;
    }

    pub async fn sql(&self, statement: &str) {
        self.database.client().await.batch_execute(statement).await.unwrap();
    }
}

pub struct Key {
    pub id: Uuid,
    pub key: String,
}
