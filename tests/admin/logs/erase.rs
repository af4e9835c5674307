//! Erasing: nothing of the person or the trace remains in rows, bodies or feedback; everybody else's stays, and the trail
//! says that it was done.

use super::{at, ids, store};
use crate::jobs::{LOG_STORE, admin_on, run};
use crate::log_exports;
use crate::service::Service;
use harness::{Client, Process};
use serde_json::{Value, json};
use shared::log_store;
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

fn call(user: &str, trace: &str) -> Value {
    json!({
        "request": { "url": "/v1/chat/completions", "provider": "openai", "body": { "said": user } },
        "response": { "body": {} },
        "metadata": { "trace_id": trace, "user": user, "span_name": user },
    })
}

async fn rows(service: &Service, sql: &str) -> Vec<Value> {
    let rows = service.database.client().await.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn object(path: &str) -> PathBuf {
    PathBuf::from(LOG_STORE.split_once("file://").unwrap().1).join(path)
}

/// Two people, three traces, one of them shared; gives the places of their bodies, by person.
async fn prepared(service: &Service) -> (Client, Vec<PathBuf>, Vec<PathBuf>) {
    let client = service.workspace_client(service.home.workspace_id).await;
    let sent = json!([call("ada", "a"), call("ada", "shared"), call("bob", "shared"), call("bob", "b")]);
    assert_eq!(client.post("/logs", &sent).await.status, 200);
    let feedback = json!([
        { "trace_id": "a", "value": 1 }, { "trace_id": "b", "value": 2 },
        { "trace_id": "never logged", "value": 3, "metadata": { "_user": "ada" } },
    ]);
    assert_eq!(client.post("/feedback", &feedback).await.status, 200);
    let other = service.organisation().await;
    let columns = json!({
        "organisation_id": other.organisation_id, "workspace_id": other.workspace_id, "trace_id": "a",
        "metadata": { "_user": "ada" },
    });
    store(service, at(1), columns).await;
    let places = async |user: &str| {
        let sql = format!(
            "SELECT to_jsonb(body_key) FROM request_logs WHERE metadata ->> '_user' = '{user}' AND body_key IS NOT NULL"
        );
        rows(service, &sql).await.iter().map(|path| object(path.as_str().unwrap())).collect::<Vec<_>>()
    };
    let (adas, bobs) = (places("ada").await, places("bob").await);
    assert!((adas.len(), bobs.len()) == (2, 2) && adas.iter().chain(&bobs).all(|path| path.exists()));
    (client, adas, bobs)
}

/// What could not be stored of the same people and traces, here and in another organisation.
#[tokio::test]
async fn records_that_were_rejected_are_erased_with_their_person_or_trace() {
    const PUT: &str = "INSERT INTO rejected_records (segment, record, reason, organisation_id, trace_id, user_name)
        VALUES ('s', '', 'r', $1, $2, $3)";
    const LEFT: &str = "SELECT to_jsonb(coalesce(user_name, '-') || ' ' || trace_id) FROM rejected_records
        ORDER BY user_name, trace_id, organisation_id";
    let service = Service::start().await;
    let (home, other) = (service.home.organisation_id, service.organisation().await.organisation_id);
    let database = service.database.client().await;
    for (organisation, trace, user) in [
        (home, "a", Some("ada")),
        (home, "b", Some("bob")),
        (home, "b", None),
        (home, "c", Some("bob")),
        (other, "b", Some("ada")),
    ] {
        database.execute(PUT, &[&organisation, &trace, &user]).await.unwrap();
    }
    erased(&service, json!({ "user": "ada", "mode": "delete" })).await;
    assert_eq!(rows(&service, LEFT).await, ["ada b", "bob b", "bob c", "- b"]);
    erased(&service, json!({ "trace_id": "b", "mode": "delete" })).await;
    assert_eq!(rows(&service, LEFT).await, ["ada b", "bob c"]);

    // What nobody could read, as far as it says anything of them.
    const UNREAD: &str = "INSERT INTO rejected_records (segment, record, reason, organisation_id, trace_id)
        VALUES ($1, $2, 'r', $3, 't')";
    const NAMES: &str = "SELECT to_jsonb(segment) FROM rejected_records WHERE segment <> 's' ORDER BY segment";
    let bytes = |of: Uuid| [b"\x93 of ", &of.as_bytes()[..], b" and more"].concat();
    for (segment, record, organisation) in [
        ("1 names her", br#"{"_user":"ada","#.to_vec(), Some(home)),
        ("2 names him", br#"{"_user":"bob","#.to_vec(), Some(home)),
        ("3 names her elsewhere", br#"{"_user":"ada","#.to_vec(), Some(other)),
        ("4 of nobody, with ours", bytes(home), None),
        ("5 of nobody, with theirs", bytes(other), None),
    ] {
        database.execute(UNREAD, &[&segment, &record, &organisation]).await.unwrap();
    }
    erased(&service, json!({ "user": "ada", "mode": "delete" })).await;
    assert_eq!(rows(&service, NAMES).await, ["2 names him", "3 names her elsewhere", "5 of nobody, with theirs"]);
}

async fn erased(service: &Service, body: Value) -> Value {
    let answer = service.administrator().post("/logs/erase", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[tokio::test]
async fn a_deleted_person_leaves_nothing_and_others_stay() {
    let service = Service::start().await;
    let (client, adas, bobs) = prepared(&service).await;
    let answer = erased(&service, json!({ "user": "ada", "mode": "delete" })).await;
    let expected =
        json!({ "status": "success", "object": "log-erasure", "logs": 2, "bodies": 2, "feedback": 2, "exports": 0 });
    assert_eq!(answer, expected);
    assert!(!adas.iter().any(|path| path.exists()) && bobs.iter().all(|path| path.exists()));
    assert_eq!(ids(&client, "").await.len(), 2);
    let home = service.home.organisation_id;
    let left =
        format!("SELECT to_jsonb(r) FROM request_logs r WHERE organisation_id = '{home}' AND r::text ~ '\\yada\\y'");
    assert!(rows(&service, &left).await.is_empty());
    let feedback = rows(&service, "SELECT to_jsonb(trace_id) FROM feedback").await;
    assert_eq!(feedback, [json!("b")]);
    assert_eq!(
        rows(&service, "SELECT to_jsonb(r) FROM request_logs r WHERE r::text ~ '\\yada\\y'").await.len(),
        1,
        "another tenant's"
    );
    let trail = service.trail(home).await;
    let (last, record) = (trail.len(), &trail[trail.len() - 1]);
    assert_eq!((&record["resource_type"], &record["action"]), (&json!("logs"), &json!("delete")), "{record}");
    assert_eq!((&record["resource_id"], &record["after"]["logs"]), (&json!("ada"), &json!(2)), "{record}");
    let again = erased(&service, json!({ "user": "ada", "mode": "delete" })).await;
    assert_eq!(again["logs"], 0);
    assert_eq!(service.trail(home).await.len(), last + 1, "each time is recorded");
}

#[tokio::test]
async fn an_anonymised_person_is_counted_and_no_longer_known() {
    let service = Service::start().await;
    let (client, adas, bobs) = prepared(&service).await;
    let answer = erased(&service, json!({ "user": "ada", "mode": "anonymise" })).await;
    assert_eq!((&answer["logs"], &answer["bodies"], &answer["feedback"]), (&json!(2), &json!(2), &json!(2)));
    assert!(!adas.iter().any(|path| path.exists()) && bobs.iter().all(|path| path.exists()));
    assert_eq!(ids(&client, "").await.len(), 4, "all are still counted");
    assert_eq!(ids(&client, "trace_id=a").await, [""; 0]);
    assert_eq!(ids(&client, "trace_id=shared").await.len(), 1, "bob's");
    let home = service.home.organisation_id;
    // As a word: the digits of an id may spell it too.
    let left = format!(
        "SELECT to_jsonb(t) FROM (SELECT r::text AS t FROM request_logs r WHERE organisation_id = '{home}'
         UNION ALL SELECT f::text FROM feedback f) all_rows WHERE t ~ '\\yada\\y'"
    );
    assert!(rows(&service, &left).await.is_empty());
    let traces = "SELECT to_jsonb(trace_id) FROM request_logs WHERE metadata = '{}' ORDER BY 1";
    let (traces, feedback) =
        (rows(&service, traces).await, rows(&service, "SELECT to_jsonb(trace_id) FROM feedback WHERE value = 1").await);
    assert!(traces.len() == 2 && traces[0] != traces[1] && traces.contains(&feedback[0]), "{traces:?} {feedback:?}");
}

#[tokio::test]
async fn a_trace_is_erased_whoever_took_part_in_it() {
    let service = Service::start().await;
    let (client, ..) = prepared(&service).await;
    let answer = erased(&service, json!({ "trace_id": "shared", "mode": "delete" })).await;
    assert_eq!((&answer["logs"], &answer["bodies"], &answer["feedback"]), (&json!(2), &json!(2), &json!(0)));
    assert_eq!(ids(&client, "").await.len(), 2);
    for (body, field) in [
        (json!({ "mode": "delete" }), Value::Null),
        (json!({ "user": "ada", "trace_id": "a", "mode": "delete" }), Value::Null),
        (json!({ "user": "ada" }), json!("mode")),
        (json!({ "user": "ada", "mode": "forget" }), json!("mode")),
        (json!({ "user": 7, "mode": "delete" }), json!("user")),
    ] {
        let refused = service.administrator().post("/logs/erase", &body).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["error"]["param"]), (400, &field), "{body}");
    }
    assert_eq!(client.post("/logs/erase", &json!({ "user": "ada", "mode": "delete" })).await.status, 403);
    assert_eq!(ids(&client, "").await.len(), 2);
}

#[tokio::test]
async fn the_command_erases_as_the_interface_does() {
    let service = Service::start().await;
    let (client, adas, _) = prepared(&service).await;
    let folder = tempfile::tempdir().unwrap();
    let home = service.home.organisation_id.to_string();
    let environment = [
        ("DATABASE_URL".to_owned(), service.database.url()),
        ("LOG_STORE_URL".to_owned(), LOG_STORE.split_once('=').unwrap().1.to_owned()),
    ];
    let arguments = ["logs", "erase", "--organisation", &home, "--user", "ada", "--mode", "delete"];
    let mut process = Process::start("gateway-admin", &arguments, &environment, folder.path());
    let status = process.ended_within(Duration::from_secs(30)).await;
    assert!(
        status.success() && process.log().contains("2 logs, 2 bodies, 2 feedbacks, the files of 0 exports"),
        "{}",
        process.log()
    );
    assert!(!adas.iter().any(|path| path.exists()));
    assert_eq!(ids(&client, "").await.len(), 2);
    let trail = service.trail(service.home.organisation_id).await;
    assert_eq!((&trail[0]["user_type"], &trail[0]["resource_id"]), (&json!("system"), &json!("ada")), "{trail:?}");
    let nobody =
        ["logs", "erase", "--organisation", "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11", "--trace", "a", "--mode", "delete"];
    let mut process = Process::start("gateway-admin", &nobody, &environment, folder.path());
    assert!(!process.ended_within(Duration::from_secs(30)).await.success());
}

#[tokio::test]
async fn what_arrives_after_it_was_erased_is_erased_too() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    let (client, adas, _) = prepared(&service).await;
    erased(&service, json!({ "user": "ada", "mode": "delete" })).await;
    run(&app, "erase_late").await;
    // A proxy stores what it kept on disk: a call of before, one of afterwards, and a body whose row is gone.
    let ada = json!({ "metadata": { "_user": "ada" }, "trace_id": "late" });
    store(&service, at(3600), ada.clone()).await;
    store(&service, at(-60), ada).await;
    std::fs::write(&adas[0], "late").unwrap();
    let database = service.database.client().await;
    let sooner = "UPDATE log_erasures SET next_at = now(); UPDATE erased_bodies SET next_at = now()";
    database.batch_execute(sooner).await.unwrap();
    assert_eq!(run(&app, "erase_late").await, 1);
    assert_eq!(ids(&client, "trace_id=late").await.len(), 1, "the call of afterwards stays");
    assert!(!adas[0].exists());
    let theirs = rows(&service, "SELECT to_jsonb(r) FROM request_logs r WHERE r::text ~ '\\yada\\y'").await;
    assert_eq!(theirs.len(), 2, "another tenant's stays");
    database.batch_execute("UPDATE log_erasures SET asked_at = now() - interval '31 days'").await.unwrap();
    run(&app, "erase_late").await;
    run(&app, "erase_late").await;
    assert!(rows(&service, "SELECT to_jsonb(e) FROM log_erasures e").await.is_empty());
}

#[tokio::test]
async fn files_of_exports_that_may_hold_what_was_erased_are_gone() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    let (client, ..) = prepared(&service).await;
    let other = service.workspace_client(service.workspace("Other").await).await;
    let mut exports = Vec::new();
    for client in [&client, &other] {
        let wanted = json!({ "filters": {}, "requested_data": ["id", "trace_id"] });
        let id = log_exports::draft(client, wanted).await;
        log_exports::start(client, &id).await;
        exports.push(id);
    }
    run(&app, "export_logs").await;
    let answer = erased(&service, json!({ "user": "ada", "mode": "anonymise" })).await;
    assert_eq!(answer["exports"], 1);
    let (mine, others) =
        (log_exports::shown(&client, &exports[0]).await, log_exports::shown(&other, &exports[1]).await);
    assert_eq!((&mine["status"], &others["status"]), (&json!("stopped"), &json!("success")), "{mine} {others}");
    assert_eq!(client.get(&format!("/logs/exports/{}/download", exports[0])).await.status, 400);
    assert_eq!(run(&app, "delete_objects").await, 1, "the folder of its files");
    log_exports::start(&client, &exports[0]).await;
    run(&app, "export_logs").await;
    assert_eq!(log_exports::shown(&client, &exports[0]).await["status"], "success");
}

#[tokio::test]
async fn calls_of_one_pack_are_taken_out_of_it_and_the_others_stay_where_they_are() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    let (home, time) = (&service.home, at(60));
    let path = log_store::pack_path(home.organisation_id, home.workspace_id, time, Uuid::new_v4());
    let (mut pack, mut logs) = (Vec::new(), Vec::new());
    for (n, user) in ["ada", "bob", "ada", "bob"].into_iter().enumerate() {
        let body = json!({ "request": { "body": { "said": format!("{user} {n}") } } });
        let start = pack.len() as u64;
        pack.extend_from_slice(&log_store::pack(body.to_string().as_bytes()).unwrap());
        let key = log_store::packed_key(&path, &(start..pack.len() as u64));
        let columns = json!({ "metadata": { "_user": user }, "trace_id": format!("p-{n}"), "body_key": key });
        logs.push((user, store(&service, time, columns).await, format!("{user} {n}")));
    }
    app.log_store.put(&path, pack.into()).await.unwrap();
    let client = service.administrator();
    let said = async |id: &Uuid| client.get(&format!("/logs/{id}")).await.json()["request"]["body"]["said"].clone();
    for (_, id, text) in &logs {
        assert_eq!(said(id).await, json!(text));
    }
    let answer = erased(&service, json!({ "user": "ada", "mode": "delete" })).await;
    assert_eq!((&answer["logs"], &answer["bodies"]), (&json!(2), &json!(2)));
    let left = app.log_store.get(&path, 1 << 20).await.unwrap().unwrap();
    let left = String::from_utf8(log_store::unpack(&left, 1 << 20).unwrap()).unwrap();
    assert!(!left.contains("ada") && left.contains("bob 1") && left.contains("bob 3"), "{left}");
    for (_, id, text) in logs.iter().filter(|(user, ..)| *user == "bob") {
        assert_eq!(said(id).await, json!(text), "read by the range that its row always had");
    }
}
