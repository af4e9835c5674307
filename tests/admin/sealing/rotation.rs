//! New keys for old secrets while the control plane is at work: nothing is lost, and the old keys open nothing.

use super::sealer;
use crate::configs;
use crate::integrations::account;
use crate::service::Service;
use serde_json::json;
use shared::key_rotation::{report, rotation};
use shared::secrets::seal::{Keyring, MasterKeys, SEALED, Sealer};
use std::path::Path;
use std::time::Duration;

fn from_file(path: &Path) -> Sealer {
    let settings =
        shared::settings::Sealing { gateway_master_key_file: Some(path.to_owned()), gateway_master_key: None };
    Sealer::new(MasterKeys::load(&settings).unwrap())
}

#[tokio::test]
async fn after_a_rotation_the_old_master_key_opens_nothing_and_the_new_one_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keyring");
    let (old, new) = (Keyring::generate("old").unwrap(), Keyring::generate("new").unwrap());
    std::fs::write(&path, &old).unwrap();
    let service = Service::start_with(&[&format!("--gateway-master-key-file={}", path.display())]).await;
    let client = service.administrator();
    account(&client, "before").await;
    let other = service.organisation().await;
    account(&service.client().with_key(&other.admin_key.key), "theirs").await;
    let mut database = service.database.client().await;
    let before = report::verify(&database, &sealer(&old)).await.unwrap();
    assert_eq!(before.values.as_ref().unwrap().opened, 2);
    assert!(before.is_sound(), "{before}");

    std::fs::write(&path, format!("{new}{old}")).unwrap();
    let both = from_file(&path);
    let halfway = report::status(&database, &both).await.unwrap();
    assert!(!halfway.is_sound() && halfway.to_string().contains("keys rotate"), "{halfway}");
    let mut told = Vec::new();
    assert_eq!(rotation::rewrap(&mut database, &both, &mut |step| told.push(step)).await.unwrap(), 2);
    assert_eq!(told, [rotation::Progress::Wrapped { keys: 2 }]);
    assert_eq!(rotation::rewrap(&mut database, &both, &mut |_| ()).await.unwrap(), 0, "a second run finds nothing");

    std::fs::write(&path, &new).unwrap();
    let after = report::verify(&database, &sealer(&new)).await.unwrap();
    assert_eq!(after.values.as_ref().unwrap().opened, 2);
    assert!(after.is_sound(), "{after}");
    let retired = report::verify(&database, &sealer(&old)).await.unwrap();
    assert_eq!((retired.values.as_ref().unwrap().opened, retired.values.as_ref().unwrap().broken), (0, 2));
    assert!(!retired.is_sound() && retired.to_string().contains("NOT IN THE KEYRING"), "{retired}");

    // The running service has the new key by itself, also for an organisation that had no data key yet.
    account(&client, "later").await;
    let third = service.organisation().await;
    account(&service.client().with_key(&third.admin_key.key), "new").await;
    assert_eq!(
        client.put("/integrations/before", &json!({ "configurations": { "openai_project": "p" } })).await.status,
        200
    );
    assert_eq!(report::verify(&database, &sealer(&new)).await.unwrap().values.unwrap().opened, 4);
}

#[tokio::test]
async fn data_keys_are_replaced_under_load_without_losing_a_value() {
    let keyring = Keyring::generate("m").unwrap();
    let service = Service::start_with(&[&format!("--gateway-master-key={}", keyring.trim())]).await;
    let client = service.administrator();
    for n in 0..20 {
        account(&client, &format!("account-{n}")).await;
    }
    let config = json!({ "provider": "openai", "api_key": "sk-in-a-config-1" });
    let config = configs::create(&client, "c", config).await;
    let auth = json!({ "oidc": { "issuer": "https://id.test", "client_id": "c", "client_secret": "oidc-secret-1" } });
    assert_eq!(client.put("/admin/organisation/auth-settings", &auth).await.status, 200);
    let old = sealer(&keyring);
    let mut database = service.database.client().await;
    const KEYS: &str = "SELECT id FROM data_keys";
    let first: uuid::Uuid = database.query_one(KEYS, &[]).await.unwrap().get(0);
    let writers = async {
        for n in 0..40 {
            let path = format!("/integrations/account-{}", n % 20);
            let answer = client.put(&path, &json!({ "key": format!("sk-replaced-{n}") })).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    };
    let rotations = async {
        for _ in 0..3 {
            rotation::replace_data_keys(&mut database, &old, Duration::ZERO, &mut |_| ()).await.unwrap();
        }
    };
    tokio::join!(writers, rotations);
    rotation::replace_data_keys(&mut database, &old, Duration::ZERO, &mut |_| ()).await.unwrap();
    let keys = database.query(KEYS, &[]).await.unwrap();
    assert_eq!(keys.len(), 1, "keys that nothing needs are forgotten");
    assert_ne!(keys[0].get::<_, uuid::Uuid>(0), first);
    let report = report::verify(&database, &sealer(&keyring)).await.unwrap();
    assert_eq!((report.values.as_ref().unwrap().opened, report.retired), (23, 0), "{report}");
    assert!(report.is_sound(), "{report}");
    let shown = client.get(&configs::path(&config)).await.json();
    assert_eq!(shown["data"]["config"]["api_key"], "sk*****g-1", "{shown}");
}

/// A sealed column that the rotation does not know would lose its key.
#[tokio::test]
async fn every_column_that_could_be_sealed_is_known_to_the_rotation() {
    const COLUMNS: &str = "SELECT table_name::text, column_name::text FROM information_schema.columns
        WHERE table_schema = 'public' AND data_type = 'bytea' AND column_name NOT LIKE '%hash' ORDER BY 1, 2";
    let service = Service::start().await;
    let rows = service.database.client().await.query(COLUMNS, &[]).await.unwrap();
    let mut found: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    // Keys are wrapped and not sealed; records of calls, tags of purges, lines of batches and figures are bytes of another
    // kind, and a certificate is for everybody.
    let others = ["batch_rows", "cache_purges", "data_keys", "rejected_records", "usage_slots"];
    found.retain(|(table, column)| !others.contains(&table.as_str()) && !column.ends_with("certificate"));
    let mut known: Vec<_> = SEALED.iter().map(|one| (one.table.to_owned(), one.column.to_owned())).collect();
    known.sort_unstable();
    assert_eq!(found, known);
}
