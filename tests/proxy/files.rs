//! Files that the gateway keeps itself, through a running proxy: the whole life of one, what is refused, that nothing of a
//! refused upload stays, and that nobody sees another's.

use crate::families::{FORM_TYPE, application};
use harness::client::whole;
use harness::{Answer, Client, Stack};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc;

fn form(fields: &[(&str, &str)], file: Option<&[u8]>) -> Vec<u8> {
    let mut form = Vec::new();
    // As Node's client does it: the file comes first.
    if let Some(file) = file {
        form.extend_from_slice(
            b"--xYz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"rows.jsonl\"\r\n\r\n",
        );
        form.extend_from_slice(file);
        form.extend_from_slice(b"\r\n");
    }
    for (name, value) in fields {
        form.extend_from_slice(
            format!("--xYz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").as_bytes(),
        );
    }
    form.extend_from_slice(b"--xYz--\r\n");
    form
}

async fn send(client: &Client, form: Vec<u8>) -> Answer {
    whole(client.request(Method::POST, "/files").header("content-type", FORM_TYPE).body(form)).await
}

async fn upload(client: &Client, file: &[u8]) -> Value {
    let made = send(client, form(&[("purpose", "batch")], Some(file))).await;
    assert_eq!(made.status, 200, "{}", made.text());
    made.json()
}

fn id(file: &Value) -> &str {
    file["id"].as_str().unwrap()
}

async fn rows(stack: &Stack) -> i64 {
    stack.database.client().await.query_one("SELECT count(*) FROM managed_files", &[]).await.unwrap().get(0)
}

/// Folders whose objects are to be deleted.
/// Folders that are noted to go, and how many of them hold a file that is there.
async fn deletions(stack: &Stack) -> (i64, i64) {
    let noted = "SELECT count(*),
            count(*) FILTER (WHERE EXISTS (SELECT FROM managed_files f WHERE strpos(d.folder, f.id::text) > 0))
        FROM object_deletions d";
    let row = stack.database.client().await.query_one(noted, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn a_file_is_uploaded_listed_read_and_deleted() {
    let stack = Stack::start().await;
    let client = application(&stack);
    // More than a part, with line breaks and beginnings of the delimiter at odd places.
    let content: Vec<u8> = b"\r\n--xY\r\n-\r".iter().copied().cycle().take((9 << 20) + 7).collect();
    let made = upload(&client, &content).await;
    assert!(id(&made).starts_with("gwf-"), "{made}");
    assert_eq!(
        [
            &made["object"],
            &made["purpose"],
            &made["filename"],
            &made["bytes"],
            &made["status"],
            &made["status_details"]
        ],
        [
            &json!("file"),
            &json!("batch"),
            &json!("rows.jsonl"),
            &json!(content.len()),
            &json!("processed"),
            &Value::Null
        ]
    );
    assert_eq!(client.get(&format!("/files/{}", id(&made))).await.json(), made);
    let whole_file = client.get(&format!("/files/{}/content", id(&made))).await;
    assert_eq!((whole_file.status.as_u16(), whole_file.body == content), (200, true));
    assert_eq!(whole_file.header("content-disposition"), "attachment; filename=\"rows.jsonl\"");
    let place = format!("/files/{}/content", id(&made));
    for (range, expected) in [
        ("bytes=8388600-8388620", &content[8_388_600..=8_388_620]),
        ("bytes=-5", &content[content.len() - 5..]),
        ("bytes=0-0", &content[..1]),
    ] {
        let part = whole(client.request(Method::GET, &place).header("range", range)).await;
        assert_eq!((part.status.as_u16(), &part.body[..]), (206, expected), "{range}");
    }
    let outside = whole(client.request(Method::GET, &place).header("range", "bytes=99999999-")).await;
    assert_eq!(outside.status, 416, "{}", outside.text());
    let gone = client.delete(&format!("/files/{}", id(&made))).await;
    assert_eq!(gone.json(), json!({ "object": "file", "id": id(&made), "deleted": true }));
    for path in [format!("/files/{}", id(&made)), place] {
        assert_eq!(client.get(&path).await.status, 404, "{path}");
    }
    assert_eq!(client.delete(&format!("/files/{}", id(&made))).await.status, 404);
    assert!(stack.mock.requests().is_empty(), "no provider was asked");
}

#[tokio::test]
async fn lists_have_an_order_pages_and_a_purpose() {
    let stack = Stack::start().await;
    let client = application(&stack);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(id(&upload(&client, b"{}").await).to_owned());
    }
    let other = send(&client, form(&[("purpose", "fine-tune")], Some(b"{}"))).await.json();
    let of = |list: &Value| list["data"].as_array().unwrap().iter().map(|file| id(file).to_owned()).collect::<Vec<_>>();
    let list = client.get("/files?purpose=batch&order=asc").await.json();
    assert_eq!((of(&list), &list["has_more"]), (ids.clone(), &json!(false)));
    let newest = client.get("/files?limit=1").await.json();
    assert_eq!((of(&newest), &newest["has_more"]), (vec![id(&other).to_owned()], &json!(true)));
    let page = client.get(&format!("/files?order=asc&limit=1&after={}", ids[0])).await.json();
    assert_eq!(
        (of(&page), &page["first_id"], &page["last_id"]),
        (vec![ids[1].clone()], &json!(ids[1]), &json!(ids[1]))
    );
    for bad in ["limit=0", "limit=10001", "after=file-1", "order=sideways"] {
        assert_eq!(client.get(&format!("/files?{bad}")).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn what_is_no_upload_is_refused_and_leaves_nothing_that_stays() {
    // Without an admin, whose job would delete what is noted.
    let stack = Stack::builder()
        .without_admin()
        .proxy("FILES_MAX_BYTES", "1000")
        .proxy("FILES_WORKSPACE_BYTES", "1500")
        .start()
        .await;
    let client = application(&stack);
    let batch = ("purpose", "batch");
    let mut cut_off = form(&[batch], Some(b"{}"));
    cut_off.truncate(cut_off.len() - 10);
    let mut refused_uploads = 0;
    for (sent, status, param) in [
        (form(&[], Some(b"{}")), 400, json!("purpose")),
        (form(&[("purpose", "vision")], Some(b"{}")), 400, json!("purpose")),
        (form(&[batch], None), 400, json!("file")),
        (form(&[batch], Some(b"")), 400, json!("file")),
        (form(&[batch], Some(&[b'x'; 1001])), 413, json!("file")),
        (form(&[batch, ("expires_after[seconds]", "1")], Some(b"{}")), 400, json!("expires_after")),
        (cut_off, 400, Value::Null),
        (Vec::new(), 400, Value::Null),
    ] {
        let refused = send(&client, sent).await;
        assert_eq!(refused.status.as_u16(), status, "{}", refused.text());
        refused_uploads += 1;
        assert_eq!(refused.json()["error"]["param"], param, "{}", refused.text());
    }
    assert_eq!(client.post("/files", &json!({})).await.json()["error"]["code"], "invalid_content_type");
    upload(&client, &[b'x'; 1000]).await;
    refused_uploads += 1;
    let full = send(&client, form(&[batch], Some(&[b'x'; 501]))).await;
    assert_eq!((full.status.as_u16(), full.json()["error"]["param"].clone()), (400, json!("file")), "{}", full.text());
    upload(&client, &[b'x'; 500]).await;
    assert_eq!(rows(&stack).await, 2, "of what was refused no row is left");
    // A client sends an upload again whose connection was closed under it: then more than one folder is noted.
    let (noted, of_files) = deletions(&stack).await;
    assert!(noted >= refused_uploads, "and its bytes are noted to go: {noted} of {refused_uploads}");
    assert_eq!(of_files, 0, "of what was stored nothing is");
}

/// Their length is not announced, so that it counts as it comes.
#[tokio::test]
async fn uploads_under_way_count_in_the_quota() {
    let stack = Stack::builder()
        .without_admin()
        .proxy("FILES_MAX_BYTES", "1000")
        .proxy("FILES_WORKSPACE_BYTES", "1500")
        .start()
        .await;
    let client = application(&stack);
    let whole_form = form(&[("purpose", "batch")], Some(&[b'x'; 900]));
    let begin = |sender: &mpsc::UnboundedSender<Vec<u8>>| sender.send(whole_form[..700].to_vec()).unwrap();
    let in_pieces = || {
        let (sender, pieces) = mpsc::unbounded_channel::<Vec<u8>>();
        let pieces = futures::stream::unfold(pieces, async |mut pieces| {
            Some((Ok::<_, std::io::Error>(pieces.recv().await?), pieces))
        });
        let request = client.request(Method::POST, "/files").header("content-type", FORM_TYPE);
        (sender, tokio::spawn(whole(request.body(reqwest::Body::wrap_stream(pieces)))))
    };
    let (first, first_answer) = in_pieces();
    begin(&first);
    let held = "SELECT count(*) FROM managed_files WHERE status = 'uploading' AND bytes >= 500";
    let database = stack.database.client().await;
    stack.until("the first counts", async || database.query_one(held, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    let (second, second_answer) = in_pieces();
    begin(&second);
    let refused = second_answer.await.unwrap();
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["error"]["param"]),
        (400, &json!("file")),
        "{}",
        refused.text()
    );
    first.send(whole_form[700..].to_vec()).unwrap();
    drop(first);
    let stored = first_answer.await.unwrap();
    assert_eq!((stored.status.as_u16(), &stored.json()["bytes"]), (200, &json!(900)), "{}", stored.text());
    assert_eq!(rows(&stack).await, 1);
    // What the first held beyond its end is there for others.
    upload(&client, &[b'x'; 600]).await;
    assert_eq!(send(&client, form(&[("purpose", "batch")], Some(b"x"))).await.status, 400);
}

#[tokio::test]
async fn files_are_of_one_workspace_and_need_its_scope() {
    let stack = Stack::start().await;
    let mine = application(&stack);
    let file = upload(&mine, b"{\"secret\":1}").await;
    let other = stack.organisation().await;
    let theirs = stack.anonymous().with_key(&other.workspace_key);
    let place = format!("/files/{}", id(&file));
    for (method, path) in
        [(Method::GET, place.clone()), (Method::GET, format!("{place}/content")), (Method::DELETE, place.clone())]
    {
        let refused = whole(theirs.request(method.clone(), &path)).await;
        assert_eq!(refused.status, 404, "{method} {path}: {}", refused.text());
        assert!(!refused.text().contains("secret"), "{}", refused.text());
    }
    assert_eq!(theirs.get("/files").await.json()["data"], json!([]));
    let narrow = stack.anonymous().with_key(&stack.key(&["models.list"]).await);
    assert_eq!(narrow.get("/files").await.status, 403);
    assert_eq!(stack.anonymous().get("/files").await.status, 401);
    assert_eq!(mine.get(&place).await.json(), file);
}

#[tokio::test]
async fn the_store_is_meant_unless_a_provider_is_named() {
    let stack = Stack::start().await;
    let file = upload(&application(&stack), b"{}").await;
    let place = format!("/files/{}", id(&file));
    let named = stack.anonymous().with("authorization", format!("Bearer {}", stack.home.workspace_key));
    assert_eq!(named.with("x-gateway-provider", "gateway").get(&place).await.json(), file);
    assert_eq!(stack.client().get(&place).await.json(), file, "an id of ours is ours, whoever is named");
    assert!(stack.mock.requests().is_empty());
    stack.client().get("/files/file-1").await;
    assert_eq!(stack.mock.requests().len(), 1, "what a named provider has is the provider's");
    let client = application(&stack);
    for (method, path, status) in
        [(Method::PUT, &*place, 405), (Method::POST, &*place, 405), (Method::GET, "/files/file-1", 404)]
    {
        assert_eq!(whole(client.request(method.clone(), path)).await.status.as_u16(), status, "{method} {path}");
    }
}
