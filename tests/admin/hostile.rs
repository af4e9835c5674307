//! Names and filters that somebody might try: quotes, NUL, characters of four bytes, a megabyte. Whatever comes is
//! stored as it is or refused, in the documented shape; it is never the server that fails.

use crate::document::Document;
use crate::samples::{numbered, samples};
use crate::service::Service;
use futures::StreamExt as _;
use harness::client::whole;
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

fn texts() -> Vec<String> {
    let short = [
        "'; DROP TABLE labels; --",
        "\" OR 1=1 --",
        "$1 ? :x %s {0}",
        "100%_\\",
        "a\0b",
        "\0",
        "🦀𝕏🏴󠁧󠁢󠁳󠁣󠁴󠁿",
        "\u{202e}\u{feff}\u{fffd}\u{10ffff}",
        "\r\nx-injected: 1",
        "../../etc/passwd",
        " ",
    ];
    let long = ["x".repeat(60_000), "x".repeat(1 << 20), "🦀".repeat(1 << 18)];
    short.iter().map(|text| (*text).to_owned()).chain(long).collect()
}

/// What is longer never becomes a request: see the next test.
const MAX_QUERY: usize = 65_000;

fn name(text: &str) -> String {
    format!("{:?}…", text.chars().take(30).collect::<String>())
}

#[tokio::test]
async fn every_filter_of_every_list_survives_anything() {
    let service = Service::start().await;
    let document = Document::of(&service).await;
    let client = service.administrator();
    let lists = document.lists();
    assert!(lists.len() >= 6, "{lists:?}");
    let filters = lists.iter().flat_map(|(path, names)| names.iter().map(move |name| (path, name)));
    // Encoded once: a megabyte takes as long as many requests.
    let texts: Vec<(String, String)> = texts()
        .into_iter()
        .filter(|text| text.len() <= MAX_QUERY)
        .map(|text| (url::form_urlencoded::byte_serialize(text.as_bytes()).collect(), text))
        .filter(|(encoded, _): &(String, String)| encoded.len() <= MAX_QUERY)
        .collect();
    // Several at a time, so that the service and those who judge it use different cores.
    let walks = futures::stream::iter(filters).for_each_concurrent(8, async |(path, parameter)| {
        for (encoded, text) in &texts {
            let whole_path = format!("{path}?{parameter}={encoded}");
            let answer = whole(client.request(Method::GET, &whole_path)).await;
            let faults = document.faults(&Method::GET, path, &answer);
            assert!(answer.status.as_u16() < 500, "{path} {parameter} {}: {}", name(text), answer.text());
            assert!(faults.is_empty(), "{path} {parameter} {}: {faults:?}", name(text));
            let expected: &[u16] = if text.contains('\0') { &[400] } else { &[200, 400, 404] };
            assert!(expected.contains(&answer.status.as_u16()), "{path} {parameter} {}", name(text));
        }
    });
    walks.await;
}

/// An empty list would be taken for the answer to what was meant.
#[tokio::test]
async fn a_filter_with_a_value_that_it_cannot_have_is_refused_by_name() {
    let service = Service::start().await;
    let client = service.administrator();
    let filters = Document::of(&service).await.closed_filters();
    assert!(filters.len() >= 50, "{filters:?}");
    let mut passed = Vec::new();
    for (path, name) in filters {
        // Figures need a time, which a saved filter may say.
        let time = "time_of_generation_min=2026-01-01T00:00:00Z&time_of_generation_max=2026-01-02T00:00:00Z&";
        let counts = ["/analytics/graphs", "/analytics/groups", "/analytics/summary"];
        let required = if counts.iter().any(|one| path.starts_with(one)) { time } else { "" };
        let answer = client.get(&format!("{path}?{required}{name}=~~")).await;
        if answer.status != 400 || !answer.json()["error"]["param"].as_str().is_some_and(|param| param.contains(&name))
        {
            passed.push(format!("{path}?{name}: {} {}", answer.status, answer.text()));
        }
    }
    assert!(passed.is_empty(), "{}", passed.join("\n"));
}

/// Any text can be the value of these: parts of names and addresses, names that people, clients and providers give, ids of what may be
/// gone.
const OPEN_FILTERS: &[&str] = &[
    "-ai_model",
    "-ai_org",
    "-configs",
    "-error_code",
    "-prompt_slug",
    "-request_url",
    "-source",
    "-span_id",
    "-trace_id",
    "-virtual_keys",
    "ai_model",
    "ai_org",
    "ai_org_model",
    "collection_id",
    "configs",
    "email",
    "error_code",
    "exact_name",
    "id",
    "ids",
    "name",
    "name_format",
    "organisation_id",
    "prompt_slug",
    "request_url",
    "resource_id",
    "return_to",
    "scim_group_id",
    "search",
    "source",
    "span_id",
    "tags",
    "trace_id",
    "uri",
    "virtual_keys",
    "workspace_id",
    "workspace_slug",
];

/// Whatever the document says of its values: a filter refuses what it cannot have, or is one of those that can have anything.
#[tokio::test]
async fn a_filter_that_takes_any_text_is_known_to_be_one() {
    let service = Service::start().await;
    let client = service.administrator();
    let mut passed = BTreeSet::new();
    for (path, name) in Document::of(&service).await.open_filters() {
        let answer = client.get(&format!("{path}?{name}=~~")).await;
        if ![400, 404].contains(&answer.status.as_u16()) {
            passed.insert(name);
        }
    }
    let strange: Vec<&String> = passed.iter().filter(|name| !OPEN_FILTERS.contains(&name.as_str())).collect();
    assert!(strange.is_empty() && passed.contains("search"), "{strange:?} of {passed:?}");
}

/// A megabyte is longer than a request's head may be. It is refused below the service, which never sees it.
#[tokio::test]
async fn a_query_of_a_megabyte_is_refused_and_the_service_goes_on() {
    let service = Service::start().await;
    let address = service.origin.strip_prefix("http://").unwrap();
    let mut sender = TcpStream::connect(address).await.unwrap();
    let head = format!("GET /v1/labels?search={} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(1 << 20));
    // It may hang up before all of it was sent.
    let _ = sender.write_all(head.as_bytes()).await;
    let mut answer = vec![0; 12];
    if sender.read_exact(&mut answer).await.is_ok() {
        let status = String::from_utf8_lossy(&answer[9..]).into_owned();
        assert!(["400", "414", "431"].contains(&status.as_str()), "{status}");
    }
    assert_eq!(service.administrator().get("/labels").await.status, 200);
}

#[tokio::test]
async fn every_text_of_every_body_survives_anything() {
    let service = Service::start().await;
    let document = Document::of(&service).await;
    let client = service.administrator();
    for (n, sample) in samples().iter().enumerate() {
        sample.prepare(&service).await;
        let mut base = numbered(&sample.body, n);
        if sample.is_in_workspace {
            base["workspace_id"] = json!(service.home.workspace_id);
        }
        let fields: Vec<String> = base.as_object().unwrap().keys().cloned().collect();
        for field in fields.iter().filter(|field| base[field.as_str()].is_string()) {
            for text in texts() {
                let mut body = base.clone();
                body[field] = Value::from(text.as_str());
                let path = sample.create_path();
                let answer = client.post(path, &body).await;
                let faults = document.faults(&Method::POST, path, &answer);
                assert!(answer.status.as_u16() < 500, "{path} {field} {}: {}", name(&text), answer.text());
                assert!(faults.is_empty(), "{path} {field} {}: {faults:?}", name(&text));
                // A template may be as long as that.
                if text.contains('\0') || text.len() > 4096 && field != "string" {
                    let status = answer.status.as_u16();
                    assert!(matches!(status, 400 | 404 | 413), "{path} {field} {}: {status}", name(&text));
                }
                if answer.status == 200 {
                    let id = answer.json()["id"].as_str().unwrap().to_owned();
                    let stored = client.get(&format!("{}/{id}", sample.path)).await.json();
                    // A key goes in and does not come out.
                    let is_same = |stored: &Value| *stored == body[field] || field == "key";
                    assert!(stored.get(field).is_none_or(is_same), "{path} {field}: {stored}");
                }
            }
        }
    }
}

#[tokio::test]
async fn every_name_in_a_path_survives_anything() {
    let service = Service::start().await;
    let document = Document::of(&service).await;
    let client = service.administrator();
    for sample in samples() {
        for text in texts().into_iter().filter(|text| text.len() < 4096) {
            let encoded: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
            let path = format!("{}/{}", sample.path, encoded.replace('+', "%20"));
            for method in [Method::GET, Method::DELETE] {
                let answer = whole(client.request(method.clone(), &path)).await;
                let faults = document.faults(&method, &path, &answer);
                assert!(matches!(answer.status.as_u16(), 400 | 404), "{method} {path}: {}", answer.text());
                assert!(faults.is_empty(), "{method} {path}: {faults:?}");
            }
        }
    }
}
