//! Sealing against a real Postgres: data keys are made once whoever asks first, and a copy of the database opens nothing.

mod rotation;

use harness::Database;
use shared::bootstrap;
use shared::secrets::seal::data_key::DataKey;
use shared::secrets::seal::{Keyring, MasterKeys, SealError, SealedPlace, Sealer};
use shared::settings;
use uuid::Uuid;

pub fn sealer(keyring: &str) -> Sealer {
    let settings =
        settings::Sealing { gateway_master_key_file: None, gateway_master_key: Some(keyring.trim().to_owned()) };
    Sealer::new(MasterKeys::load(&settings).unwrap())
}

fn place(organisation: Uuid) -> SealedPlace {
    SealedPlace { organisation, table: "integrations", row: Uuid::from_u128(7), field: "sealed" }
}

async fn organisation(database: &Database) -> Uuid {
    let mut client = database.client().await;
    bootstrap::create_organisation(&mut client, "Sealed", "o@sealed.test", "pk_").await.unwrap().organisation_id
}

#[tokio::test]
async fn many_who_seal_first_at_once_make_one_data_key() {
    let database = Database::fresh().await;
    let id = organisation(&database).await;
    let keyring = Keyring::generate("m").unwrap();
    let tasks: Vec<_> = (0..12_u8)
        .map(|n| {
            let (url, keyring) = (database.url(), keyring.clone());
            tokio::spawn(async move {
                let (mut client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
                tokio::spawn(connection);
                // Each as its own process, with nothing remembered.
                let sealer = sealer(&keyring);
                let tx = client.transaction().await.unwrap();
                let sealed = sealer.seal(&tx, &place(id), &[n]).await.unwrap();
                tx.commit().await.unwrap();
                sealed
            })
        })
        .collect();
    let (client, reader) = (database.client().await, sealer(&keyring));
    for (n, task) in tasks.into_iter().enumerate() {
        let sealed = task.await.unwrap();
        assert_eq!(reader.open(&client, &place(id), &sealed).await.unwrap().expose(), [n as u8]);
    }
    let count: i64 = client.query_one("SELECT count(*) FROM data_keys", &[]).await.unwrap().get(0);
    assert_eq!(count, 1);
}

#[tokio::test]
async fn each_organisation_has_a_key_of_its_own_and_another_master_key_opens_nothing() {
    let database = Database::fresh().await;
    let (one, two) = (organisation(&database).await, organisation(&database).await);
    let keyring = Keyring::generate("m").unwrap();
    let ours = sealer(&keyring);
    let mut client = database.client().await;
    let tx = client.transaction().await.unwrap();
    let sealed = ours.seal(&tx, &place(one), b"s3cret").await.unwrap();
    let other = ours.seal(&tx, &place(two), b"s3cret").await.unwrap();
    tx.commit().await.unwrap();
    assert_ne!(sealed.data_key_id().unwrap(), other.data_key_id().unwrap());
    // Even while both keys are known, a value stays with its organisation.
    assert!(matches!(ours.open(&client, &place(two), &sealed).await, Err(SealError::Refused)));

    let stranger = sealer(&Keyring::generate("m").unwrap());
    assert!(matches!(stranger.open(&client, &place(one), &sealed).await, Err(SealError::Refused)));
    let unnamed = sealer(&Keyring::generate("n").unwrap());
    assert!(matches!(unnamed.open(&client, &place(one), &sealed).await, Err(SealError::UnknownMasterKey(_))));
    let keyless = Sealer::new(
        MasterKeys::load(&settings::Sealing { gateway_master_key_file: None, gateway_master_key: None }).unwrap(),
    );
    let tx = client.transaction().await.unwrap();
    assert!(matches!(keyless.seal(&tx, &place(one), b"x").await, Err(SealError::NoMasterKey)));
    drop(tx);

    // A reader that holds the row, as a proxy does, needs no database.
    let sql = format!("SELECT {} FROM data_keys WHERE organisation_id = $1", DataKey::COLUMNS);
    let row = DataKey::from_row(&client.query_one(&sql, &[&one]).await.unwrap()).unwrap();
    assert_eq!(sealer(&keyring).open_with(&row, &place(one), &sealed).unwrap().expose(), b"s3cret");
    assert!(sealer(&keyring).open_with(&row, &place(one), &other).is_err());
}
