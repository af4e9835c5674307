//! The admin service inside the test: its real router on a real socket and a database of its own, without processes
//! to start. Tests of the process itself are in `process.rs`.

use harness::{Client, Database};
use shared::api_key::KeyHash;
use shared::bootstrap::{self, FirstKeys};
use shared::model::KeyKind;
use shared::{api_key, conf, db};
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

    /// `settings` are command-line flags, as `--scim-enabled=OFF`.
    pub async fn start_with(settings: &[&str]) -> Self {
        let database = Database::fresh().await;
        let url = database.url();
        Self::start_on(database, &url, settings).await
    }

    /// Reaches the database by way of another URL.
    pub async fn start_on(database: Database, url: &str, settings: &[&str]) -> Self {
        let url = format!("--database-url={url}");
        let arguments = ["gateway-admin", &url, "--database-pool-size=4"].into_iter().chain(settings.iter().copied());
        let settings: admin::Settings = conf::load(arguments.map(OsString::from)).expect("the settings are valid");
        let mut client = database.client().await;
        let home = bootstrap::create_organisation(&mut client, "Home", "owner@home.test", "pk_").await.unwrap();
        let pool = db::pool(&settings.database).await.expect("the database answers");
        let app = admin::App::new(pool, &settings).expect("the settings make an app");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(admin::serve::serve_on(listener, app, async {
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
        const INSERT: &str =
            "INSERT INTO api_keys (organisation_id, workspace_id, user_id, kind, name, hash, mask, scopes)
             VALUES ($1, $2, $3, $4, 'Test key', $5, $6, $7) RETURNING id";
        let key = api_key::generate("pk_");
        let workspace = (kind != KeyKind::OrganisationService).then_some(self.home.workspace_id);
        let user = (kind == KeyKind::WorkspaceUser).then_some(self.home.owner_id);
        let (hash, mask) = (KeyHash::of(key.as_bytes()).0.to_vec(), api_key::mask(&key));
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
            [&self.home.organisation_id, &workspace, &user, &kind.as_str(), &hash, &mask, &scopes];
        let row = self.database.client().await.query_one(INSERT, &values).await.unwrap();
        Key { id: row.get(0), key }
    }

    pub async fn sql(&self, statement: &str) {
        self.database.client().await.batch_execute(statement).await.unwrap();
    }
}

pub struct Key {
    pub id: Uuid,
    pub key: String,
}
