//! Requests that ask the same in other words, over HTTP: which share an answer, which never do, and what becomes of a request
//! whose embedder is away.

use crate::journal::calls::rows;
use crate::limits::limited_key;
use crate::routing::{asked, client, target};
use bench::mock::{self, Mock};
use harness::{Answer, Client, Stack, chat, embedder_folder};
use rust_decimal::Decimal;
use serde_json::{Value, json};

pub const ASKED: &str = "How do I cancel my subscription?";
pub const REWORDED: &str = "How can I cancel my subscription?";
pub const NEAR_MISS: &str = "How do I not cancel my subscription?";

async fn local() -> Stack {
    Stack::builder()
        .proxy("SEMANTIC_CACHE_EMBEDDING_PROVIDER", "local")
        .proxy("SEMANTIC_CACHE_EMBEDDER_DIR", embedder_folder().to_str().unwrap())
        .start()
        .await
}

pub fn semantic(stack: &Stack) -> Client {
    client(stack, &target(stack, json!({ "cache": { "mode": "semantic" } })))
}

pub async fn ask(client: &Client, body: &Value) -> Answer {
    let answer = client.post("/chat/completions", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

pub fn status(answer: &Answer) -> &str {
    answer.header("x-gateway-cache-status")
}

#[tokio::test]
async fn a_question_in_other_words_has_the_same_answer_and_a_near_miss_has_not() {
    let stack = local().await;
    let client = semantic(&stack);
    let first = ask(&client, &chat(ASKED)).await;
    assert_eq!(status(&first), "SEMANTIC MISS");
    let same = ask(&client, &chat(ASKED)).await;
    assert_eq!(status(&same), "HIT");
    let reworded = ask(&client, &chat(REWORDED)).await;
    assert_eq!(status(&reworded), "SEMANTIC HIT");
    assert_eq!((&same.json()["id"], &reworded.json()["id"]), (&first.json()["id"], &first.json()["id"]));
    let mut streamed = chat(REWORDED);
    streamed["stream"] = json!(true);
    let streamed = ask(&client, &streamed).await;
    assert_eq!(status(&streamed), "SEMANTIC HIT");
    assert!(streamed.text().starts_with("data: ") && streamed.text().contains("[DONE]"), "{}", streamed.text());
    assert_eq!(asked(&stack), 1);
    for other in [NEAR_MISS, "How do I cancel my 2 subscriptions?", "How do I cancel my Netflix subscription?"] {
        assert_eq!(status(&ask(&client, &chat(other)).await), "SEMANTIC MISS", "{other}");
    }
    assert_eq!(asked(&stack), 4);
    let counted = stack.metric(r#"gateway_cache_lookups_total{status="SEMANTIC HIT"}"#).await;
    assert_eq!(counted, Some(2.0));
}

#[tokio::test]
async fn what_differs_in_anything_but_the_words_never_meets() {
    let stack = local().await;
    let client = semantic(&stack);
    let system = json!({ "role": "system", "content": "Be brief." });
    let tool = json!({ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } });
    ask(&client, &chat(ASKED)).await;
    let mut bodies = vec![];
    for (name, value) in [
        ("model", json!("gpt-4o")),
        ("temperature", json!(0.5)),
        ("max_tokens", json!(10)),
        ("user", json!("u")),
        ("tools", json!([tool])),
        ("messages", json!([system, { "role": "user", "content": REWORDED }])),
        ("messages", json!([{ "role": "user", "content": REWORDED, "name": "ann" }])),
    ] {
        let mut body = chat(REWORDED);
        body[name] = value;
        bodies.push(body);
    }
    for body in bodies {
        assert_eq!(status(&ask(&client, &body).await), "SEMANTIC MISS", "{body}");
    }
    for (name, value) in [("x-gateway-cache-namespace", "other"), ("x-gateway-metadata", r#"{"team":"other"}"#)] {
        let answer = ask(&client.with(name, value), &chat(REWORDED)).await;
        assert_eq!(status(&answer), "SEMANTIC MISS", "{name}");
    }
    let config = target(&stack, json!({ "cache": { "mode": "semantic" } })).to_string();
    for other in [stack.organisation().await, stack.organisation().await] {
        let client = stack.anonymous().with_key(&other.workspace_key).with("x-gateway-config", &config);
        assert_eq!(status(&ask(&client, &chat(REWORDED)).await), "SEMANTIC MISS", "another tenant");
    }
    assert_eq!(status(&ask(&client, &chat(REWORDED)).await), "SEMANTIC HIT", "and the first one is still there");
}

/// The same body under all combinations of tenants and namespaces: each combination meets itself alone. Two of the tenants
/// are workspaces of one organisation.
#[tokio::test]
async fn tenants_and_namespaces_never_share_an_answer() {
    let stack = local().await;
    let config = target(&stack, json!({ "cache": "semantic" })).to_string();
    let others = [stack.organisation().await, stack.organisation().await];
    let sibling = sibling_key(&stack).await;
    let keys = [&stack.home.workspace_key, &sibling, &others[0].workspace_key, &others[1].workspace_key];
    let clients: Vec<Client> = keys
        .iter()
        .flat_map(|key| {
            let plain = stack.anonymous().with_key(key).with("x-gateway-config", &config);
            let named = ["a", "b"].map(|name| plain.with("x-gateway-cache-namespace", name));
            [plain].into_iter().chain(named)
        })
        .collect();
    let mut ids = Vec::new();
    for client in &clients {
        let answer = ask(client, &chat(ASKED)).await;
        assert_eq!(status(&answer), "SEMANTIC MISS");
        ids.push(answer.json()["id"].clone());
    }
    for (client, id) in clients.iter().zip(&ids) {
        let answer = ask(client, &chat(REWORDED)).await;
        assert_eq!((status(&answer), &answer.json()["id"]), ("SEMANTIC HIT", id));
    }
}

/// Of a second workspace of the same organisation, when the proxy knows it.
async fn sibling_key(stack: &Stack) -> String {
    let made = stack.home.create("/admin/workspaces", json!({ "name": "Next door" })).await;
    let key = json!({ "name": "sibling", "workspace_id": made["id"], "scopes": ["completions.write"] });
    let key = stack.home.create("/api-keys/workspace/service", key).await["key"].as_str().unwrap().to_owned();
    stack.until_known(&key).await;
    key
}

#[tokio::test]
async fn a_request_may_name_its_own_threshold() {
    let stack = local().await;
    ask(&semantic(&stack), &chat(ASKED)).await;
    let strict = client(&stack, &target(&stack, json!({ "cache": { "mode": "semantic", "similarity": 1.0 } })));
    assert_eq!(status(&ask(&strict, &chat(REWORDED)).await), "SEMANTIC MISS");
    let loose = r#"{"mode":"semantic","similarity":0.5}"#;
    let shorter = chat("How do I cancel the subscription?");
    let asked = ask(&strict.with("x-gateway-cache", loose), &shorter).await;
    assert_eq!(status(&asked), "SEMANTIC MISS", "what the config asks for is the least");
    for wrong in ["1.1", "-0.1", "\"high\""] {
        let header = format!(r#"{{"mode":"semantic","similarity":{wrong}}}"#);
        let answer = strict.with("x-gateway-cache", header).post("/chat/completions", &chat(ASKED)).await;
        assert_eq!(answer.status, 400, "{wrong}");
    }
    // As every number of an inline config, the nearest that is allowed.
    let config = target(&stack, json!({ "cache": { "mode": "semantic", "similarity": 7 } }));
    assert_eq!(status(&ask(&client(&stack, &config), &chat(REWORDED)).await), "HIT", "it was kept above");
}

#[tokio::test]
async fn a_refresh_replaces_answers_to_near_questions() {
    let stack = local().await;
    let client = semantic(&stack);
    let first = ask(&client, &chat(ASKED)).await;
    let refreshed = ask(&client.with("x-gateway-cache-force-refresh", "true"), &chat(REWORDED)).await;
    assert_eq!(status(&refreshed), "REFRESH");
    assert_ne!(first.json()["id"], refreshed.json()["id"]);
    for text in [ASKED, REWORDED] {
        let answer = ask(&client, &chat(text)).await;
        assert_eq!((status(&answer), &answer.json()["id"]), ("HIT", &refreshed.json()["id"]), "{text}");
    }
}

#[tokio::test]
async fn what_words_do_not_describe_is_looked_up_exactly() {
    let stack = local().await;
    let client = semantic(&stack);
    let said = |text: &str| json!({ "role": "user", "content": text });
    let image = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } });
    for (path, body) in [
        ("/chat/completions", json!({ "model": "m", "messages": vec![said(ASKED); 5] })),
        ("/chat/completions", json!({ "model": "m", "messages": [{ "role": "user", "content": [image] }] })),
        ("/embeddings", json!({ "model": "m", "input": ASKED })),
        ("/messages", json!({ "model": "m", "max_tokens": 5, "messages": [said(ASKED)] })),
    ] {
        for expected in ["MISS", "HIT"] {
            let answer = client.post(path, &body).await;
            assert_eq!(answer.status, 200, "{path} {}", answer.text());
            assert_eq!(status(&answer), expected, "{path} {body}");
        }
    }
    for (prompt, expected) in [(ASKED, "SEMANTIC MISS"), (REWORDED, "SEMANTIC HIT"), (NEAR_MISS, "SEMANTIC MISS")] {
        let answer = client.post("/completions", &json!({ "model": "m", "prompt": prompt })).await;
        assert_eq!(status(&answer), expected, "{prompt}");
    }
}

#[tokio::test]
async fn without_an_embedder_semantic_is_exact() {
    let stack = Stack::start().await;
    let client = semantic(&stack);
    for (text, expected) in [(ASKED, "MISS"), (REWORDED, "MISS"), (ASKED, "HIT")] {
        assert_eq!(status(&ask(&client, &chat(text)).await), expected, "{text}");
    }
}

/// A stack whose embedder is a second mock.
async fn remote(embedder: &Mock, wait_ms: &str) -> Stack {
    remote_paid_by(embedder, wait_ms, "workspace").await
}

async fn remote_paid_by(embedder: &Mock, wait_ms: &str, payer: &str) -> Stack {
    Stack::builder()
        .proxy("LIMITS_WAIT_MS", "20000")
        .proxy("SEMANTIC_CACHE_PAID_BY", payer)
        .proxy("SEMANTIC_CACHE_EMBEDDING_PROVIDER", "openai")
        .proxy("SEMANTIC_CACHE_EMBEDDINGS_URL", format!("{}/embeddings", embedder.url()))
        .proxy("SEMANTIC_CACHE_EMBEDDING_API_KEY", "sk-embedder")
        .proxy("SEMANTIC_CACHE_WAIT_MS", wait_ms)
        .start()
        .await
}

fn vector(values: &[f32]) -> String {
    json!({ "data": [{ "embedding": values }], "usage": { "prompt_tokens": 7, "total_tokens": 7 } }).to_string()
}

#[tokio::test]
async fn an_embedder_over_http_is_asked_with_its_key_and_its_calls_are_logged_as_internal() {
    let embedder = Mock::start(mock::Options::default());
    let stack = remote(&embedder, "10000").await;
    let client = semantic(&stack).with("x-gateway-trace-id", "trace-semantic");
    embedder.script(json!([{ "body": vector(&[1.0, 0.0, 0.0]), "times": 2 }])).unwrap();
    assert_eq!(status(&ask(&client, &chat(ASKED)).await), "SEMANTIC MISS");
    assert_eq!(status(&ask(&client, &chat("Please tell me how I end my plan")).await), "SEMANTIC HIT");
    assert_eq!(asked(&stack), 1);
    let heard = &embedder.requests()[0];
    assert_eq!(heard.headers.get("authorization").map(|value| value.as_bytes()), Some(&b"Bearer sk-embedder"[..]));
    let rows = rows(&stack, 4).await;
    let internal: Vec<_> =
        rows.iter().filter(|row| row.get::<_, Value>("metadata")["_internal"] == "semantic_cache").collect();
    assert_eq!(internal.len(), 2);
    for row in internal {
        assert_eq!(row.get::<_, Option<&str>>("ai_org"), Some("openai"));
        assert_eq!(row.get::<_, Option<&str>>("ai_model"), Some("text-embedding-3-small"));
        assert_eq!(row.get::<_, &str>("trace_id"), "trace-semantic");
        assert_eq!(row.get::<_, i64>("req_units"), 7);
        assert!(row.get::<_, Option<Decimal>>("cost").is_some_and(|cost| cost > Decimal::ZERO));
    }
}

#[tokio::test]
async fn an_embedder_that_hangs_or_answers_rubbish_is_a_miss() {
    let embedder = Mock::start(mock::Options::default());
    let stack = remote(&embedder, "10000").await;
    let client = semantic(&stack);
    for fault in [
        json!({ "status": 500 }),
        json!({ "bad_json": true }),
        json!({ "body": vector(&[]) }),
        json!({ "body": json!({ "data": [{ "embedding": ["a"] }] }).to_string() }),
        json!({ "no_answer": true, "reset": true }),
    ] {
        // Twice the same fault: a connection that was reused is tried anew. Each stack of failures rests after five.
        embedder.reset();
        embedder.script(json!([fault, fault])).unwrap();
        let text = format!("Question about {}", fault.to_string().len());
        assert_eq!(status(&ask(&client, &chat(&text)).await), "SEMANTIC MISS", "{fault}");
        assert_eq!(status(&ask(&client, &chat(&text)).await), "HIT", "{fault}: its answer is kept all the same");
    }
    let stack = remote(&embedder, "100").await;
    embedder.reset();
    embedder.script(json!([{ "stall_after_bytes": 5, "times": 100 }])).unwrap();
    let client = semantic(&stack);
    for number in 0..7 {
        assert_eq!(status(&ask(&client, &chat(&format!("{ASKED} {number}"))).await), "SEMANTIC MISS");
    }
    assert_eq!(embedder.requests().len(), 5, "then it is left alone for a while");
}

/// A client with a budget of its own whose answers are kept.
async fn with_budget(stack: &Stack, budget: Value) -> Client {
    let (key, _) = limited_key(stack, json!({ "usage_limits": budget })).await;
    let config = target(stack, json!({ "cache": { "mode": "semantic" } }));
    stack.anonymous().with_key(&key).with("x-gateway-config", config.to_string())
}

/// What the budget has counted once it is what all rows but those of the operator say, and the rows of embeddings.
async fn settled(stack: &Stack, unit: &str, count: usize) -> (Decimal, Vec<tokio_postgres::Row>) {
    const SUMS: &str = "SELECT coalesce((SELECT sum(value) FROM usage_counters WHERE scope = 'api_key' AND unit = $1
                AND period = 'total' AND starts_at > '-infinity'), 0),
            coalesce(sum(CASE $1 WHEN 'cost' THEN cost ELSE req_units + res_units END)
                FILTER (WHERE metadata ->> '_paid_by' IS NULL), 0)
        FROM request_logs WHERE api_key_id = (SELECT id FROM api_keys WHERE name = 'limited')";
    let database = stack.database.client().await;
    let rows = rows(stack, count).await;
    let is_settled = async || {
        let row = database.query_one(SUMS, &[&unit]).await.unwrap();
        row.get::<_, Decimal>(0) == row.get::<_, Decimal>(1)
    };
    stack.until("what was spent is what is counted", is_settled).await;
    let counted = database.query_one(SUMS, &[&unit]).await.unwrap().get(0);
    let is_internal = |row: &tokio_postgres::Row| {
        row.get::<_, Option<Value>>("metadata").unwrap_or_default()["_internal"] == "semantic_cache"
    };
    (counted, rows.into_iter().filter(is_internal).collect())
}

fn cost(row: &tokio_postgres::Row) -> Decimal {
    row.get::<_, Option<Decimal>>("cost").unwrap_or_default()
}

#[tokio::test]
async fn a_vector_is_charged_to_the_budgets_of_whoever_asked_or_to_none_where_the_operator_pays() {
    for (payer, is_charged) in [("workspace", true), ("operator", false)] {
        let embedder = Mock::start(mock::Options::default());
        let stack = remote_paid_by(&embedder, "10000", payer).await;
        let client = with_budget(&stack, json!({ "credit_limit": 100 })).await;
        embedder.script(json!([{ "body": vector(&[1.0, 0.0, 0.0]), "times": 2 }])).unwrap();
        assert_eq!(status(&ask(&client, &chat(ASKED)).await), "SEMANTIC MISS");
        assert_eq!(status(&ask(&client, &chat("Please tell me how I end my plan")).await), "SEMANTIC HIT");
        let (counted, internal) = settled(&stack, "cost", 4).await;
        let vectors: Decimal = internal.iter().map(cost).sum();
        assert!(internal.len() == 2 && vectors > Decimal::ZERO, "{payer}: {vectors}");
        let answered: Decimal = rows(&stack, 4).await.iter().map(cost).sum::<Decimal>() - vectors;
        assert_eq!(counted, if is_charged { answered + vectors } else { answered }, "{payer}");
        let marked = internal.iter().filter(|row| row.get::<_, Value>("metadata")["_paid_by"] == "operator").count();
        assert_eq!(marked, if is_charged { 0 } else { 2 }, "{payer}");
    }
}

#[tokio::test]
async fn a_call_for_a_vector_that_is_cut_is_noted_with_an_estimate_and_charged() {
    let embedder = Mock::start(mock::Options::default());
    let stack = remote(&embedder, "200").await;
    let client = with_budget(&stack, json!({ "type": "tokens", "credit_limit": 100_000 })).await;
    embedder.script(json!([{ "stall_after_bytes": 5, "times": 100 }])).unwrap();
    assert_eq!(status(&ask(&client, &chat(ASKED)).await), "SEMANTIC MISS");
    let (_, internal) = settled(&stack, "tokens", 2).await;
    assert_eq!(internal.len(), 1);
    assert_eq!(internal[0].get::<_, i32>("response_status_code"), 499);
    assert!(internal[0].get::<_, bool>("usage_estimated") && internal[0].get::<_, i64>("req_units") > 0);
    assert!(cost(&internal[0]) > Decimal::ZERO);
}

#[tokio::test]
async fn without_a_budget_for_its_vector_a_question_is_looked_up_exactly() {
    let embedder = Mock::start(mock::Options::default());
    let stack = remote(&embedder, "10000").await;
    let mut body = chat(ASKED);
    body["max_tokens"] = json!(50);
    // A strict budget promises the answer its bytes and its maximum; what is left is less than the bytes of the question.
    let bound = body.to_string().len() as u64 + 50;
    let client = with_budget(&stack, json!({ "type": "tokens", "credit_limit": bound + 10, "strict": true })).await;
    assert_eq!(status(&ask(&client, &body).await), "MISS");
    assert!(embedder.requests().is_empty(), "nobody was asked for a vector");
}

#[tokio::test]
async fn a_strict_budget_promises_a_vector_and_takes_back_what_was_not_used() {
    let embedder = Mock::start(mock::Options::default());
    let stack = remote(&embedder, "10000").await;
    let client = with_budget(&stack, json!({ "type": "tokens", "credit_limit": 10_000, "strict": true })).await;
    let mut body = chat(ASKED);
    body["max_tokens"] = json!(50);
    embedder.script(json!([{ "body": vector(&[1.0, 0.0, 0.0]) }, { "no_answer": true, "times": 4 }])).unwrap();
    assert_eq!(status(&ask(&client, &body).await), "SEMANTIC MISS");
    body["messages"][0]["content"] = json!("Please tell me how I end my plan");
    assert_eq!(status(&ask(&client, &body).await), "SEMANTIC MISS", "nobody answered");
    settled(&stack, "tokens", 4).await;
    const OPEN: &str = "SELECT count(*) FROM limit_intents";
    let database = stack.database.client().await;
    let none_open = async || database.query_one(OPEN, &[]).await.unwrap().get::<_, i64>(0) == 0;
    stack.until("no promise is left", none_open).await;
}
