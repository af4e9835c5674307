//! What a proxy knows of prompts: changes as they are published, partials, and enough to go on without Postgres.

use super::{add_version, asked, author, content, create, greeting, label, messages, run, start, until_runs};
use bench::postgres::template;
use bench::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn what_is_published_labelled_or_corrected_is_run_from_then_on() {
    let stack = start().await;
    let prompt = create(&stack, &greeting("One")).await;
    until_runs(&stack, &prompt.slug).await;
    add_version(&stack, &prompt, "Two").await;
    assert_eq!(run(&stack, &prompt.slug, &json!({})).await.status, 200);
    assert_eq!(content(&stack), "One", "an update is not published");
    let says = async |reference: &str, expected: &str| {
        run(&stack, reference, &json!({})).await.status == 200 && content(&stack) == expected
    };
    for (version, expected) in [(2, "Two"), (1, "One"), (2, "Two")] {
        let body = json!({ "version": version });
        let published = author(&stack).put(&format!("/prompts/{}/makeDefault", prompt.slug), &body).await;
        assert_eq!(published.status, 200, "{}", published.text());
        stack.until("it is published, or taken back", async || says(&prompt.slug, expected).await).await;
    }
    let staging = format!("{}@staging", prompt.slug);
    label(&stack, &prompt, 1, "staging").await;
    stack.until("the label points to the first", async || says(&staging, "One").await).await;
    label(&stack, &prompt, 2, "staging").await;
    stack.until("the label has moved", async || says(&staging, "Two").await).await;
    let own = author(&stack).post("/labels", &json!({ "name": "own" })).await.json();
    let (own, owned) = (format!("/labels/{}", own["id"].as_str().unwrap()), format!("{}@own", prompt.slug));
    label(&stack, &prompt, 1, "own").await;
    stack.until("a label of one's own", async || says(&owned, "One").await).await;
    assert_eq!(author(&stack).delete(&own).await.status, 200);
    stack.until("it is gone with its label", async || run(&stack, &owned, &json!({})).await.status == 404).await;
    let path = format!("/prompts/{}", prompt.slug);
    assert_eq!(author(&stack).put(&path, &json!({ "virtual_key": "elsewhere" })).await.status, 200);
    stack.until("the correction holds", async || run(&stack, &prompt.slug, &json!({})).await.status == 400).await;
    assert_eq!(author(&stack).delete(&path).await.status, 200);
    stack.until("it is gone", async || run(&stack, &prompt.slug, &json!({})).await.status == 404).await;
    assert_eq!(run(&stack, &staging, &json!({})).await.status, 404);
}

#[tokio::test]
async fn partials_are_put_in_in_their_default_and_in_pinned_versions() {
    let stack = start().await;
    let made =
        author(&stack).post("/prompts/partials", &json!({ "name": "Tone", "string": "be {{how}}" })).await.json();
    let slug = made["slug"].as_str().unwrap();
    let update = author(&stack).put(&format!("/prompts/partials/{slug}"), &json!({ "string": "stay {{how}}" })).await;
    assert_eq!(update.status, 200, "{}", update.text());
    let prompt =
        create(&stack, &greeting(&format!("{{{{>{slug}}}}}, {{{{>{slug}@2}}}}, {{{{>{slug}@latest}}}}"))).await;
    until_runs(&stack, &prompt.slug).await;
    assert_eq!(run(&stack, &prompt.slug, &json!({ "variables": { "how": "kind" } })).await.status, 200);
    assert_eq!(content(&stack), "be kind, stay kind, stay kind");
    let publish = author(&stack).put(&format!("/prompts/partials/{slug}/makeDefault"), &json!({ "version": 2 })).await;
    assert_eq!(publish.status, 200, "{}", publish.text());
    stack
        .until("the partial is published", async || {
            run(&stack, &prompt.slug, &json!({ "variables": { "how": "kind" } })).await.status == 200
                && content(&stack) == "stay kind, stay kind, stay kind"
        })
        .await;
    let lost = create(&stack, &greeting("{{>pl-none}}")).await;
    stack.until("it is known", async || run(&stack, &lost.slug, &json!({})).await.status != 404).await;
    let answer = run(&stack, &lost.slug, &json!({})).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.text().contains("pl-none"), "{}", answer.text());
}

#[tokio::test]
async fn a_template_of_another_workspace_neither_reads_a_partial_nor_keeps_a_version_of_it_in_memory() {
    let stack = start().await;
    let made = author(&stack).post("/prompts/partials", &json!({ "name": "Tone", "string": "be kind" })).await.json();
    let slug = made["slug"].as_str().unwrap();
    let path = format!("/prompts/partials/{slug}");
    assert_eq!(author(&stack).put(&path, &json!({ "string": "our secret" })).await.status, 200);
    let body = json!({ "name": "Other", "slug": "other" });
    let sibling = stack.administrator().post("/admin/workspaces", &body).await.json();
    let scopes = ["prompts.create", "prompts.update", "prompts.render", "prompts.read", "completions.write"];
    let key = json!({ "name": "key", "scopes": scopes, "workspace_id": sibling["id"] });
    let key = stack.administrator().post("/api-keys/workspace/service", &key).await.json();
    let key = key["key"].as_str().unwrap();
    stack.until_known(key).await;
    let sibling = stack.anonymous().with_key(key);
    for pin in [String::new(), "@1".into(), "@2".into(), "@latest".into()] {
        let body = greeting(&format!("{{{{>{slug}{pin}}}}}"));
        let prompt = sibling.post("/prompts", &body).await.json();
        let prompt = prompt["slug"].as_str().unwrap();
        let run = format!("/prompts/{prompt}/completions");
        stack.until("it is known", async || sibling.post(&run, &json!({})).await.status != 404).await;
        for path in [run, format!("/prompts/{prompt}/render")] {
            let answer = sibling.post(&path, &json!({})).await;
            assert_eq!(answer.status, 400, "{path} {pin}: {}", answer.text());
            assert!(answer.text().contains(slug) && !answer.text().contains("secret"), "{}", answer.text());
        }
    }
    let rows = "SELECT string_agg(number::text, ' ' ORDER BY number) FROM partial_versions WHERE is_served";
    let database = stack.database.client().await;
    assert_eq!(database.query_one(rows, &[]).await.unwrap().get::<_, String>(0), "1", "only the default");
    create(&stack, &greeting(&format!("{{{{>{slug}@2}}}}"))).await;
    assert_eq!(database.query_one(rows, &[]).await.unwrap().get::<_, String>(0), "1 2");
}

#[tokio::test]
async fn prompts_run_while_postgres_is_away_and_from_the_copy_on_disk() {
    let mut stack = start().await;
    let partial = author(&stack).post("/prompts/partials", &json!({ "name": "End", "string": "bye" })).await.json();
    let prompt = create(&stack, &greeting(&format!("One {{{{>{}@1}}}}", partial["slug"].as_str().unwrap()))).await;
    for n in ["Two", "Three", "Four"] {
        add_version(&stack, &prompt, n).await;
    }
    label(&stack, &prompt, 2, "staging").await;
    let [fetched, staged, unknown] = ["@3", "@staging", "@4"].map(|version| format!("{}{version}", prompt.slug));
    until_runs(&stack, &staged).await;
    until_runs(&stack, &fetched).await;
    let server = template::connect(&stack.database.url(), "postgres").await.unwrap();
    let name = stack.database.name().to_owned();
    let away = format!(
        "ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS false;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    );
    server.batch_execute(&away).await.unwrap();
    let failures = "gateway_snapshot_failures_total";
    stack.until("the proxy notices", async || stack.metric(failures).await > Some(0.0)).await;
    assert_eq!(run(&stack, &unknown, &json!({})).await.status, 503);
    for (reference, expected) in [(&prompt.slug, "One bye"), (&staged, "Two"), (&fetched, "Three")] {
        let answer = run(&stack, reference, &json!({})).await;
        assert_eq!(
            (answer.status.as_u16(), content(&stack).as_str()),
            (200, expected),
            "{reference}: {}",
            answer.text()
        );
    }
    let beyond = run(&stack, &format!("{}@5", prompt.slug), &json!({})).await;
    assert_eq!(beyond.status, 404, "nobody must be asked about a version that cannot be");
    stack.proxy.signal(Signal::TERM);
    stack.proxy.ended_within(Duration::from_secs(60)).await;
    stack.proxy = stack.start_another_proxy(&[]);
    let port = stack.proxy_port;
    stack.until("it listens", async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()).await;
    stack.until("the copy is read", async || run(&stack, &prompt.slug, &json!({})).await.status == 200).await;
    assert_eq!(content(&stack), "One bye");
    assert_eq!(run(&stack, &fetched, &json!({})).await.status, 503, "what was fetched is not in the copy");
    server.batch_execute(&format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS true")).await.unwrap();
    stack.until("Postgres is back", async || run(&stack, &fetched, &json!({})).await.status == 200).await;
}

#[tokio::test]
async fn only_versions_that_can_be_asked_for_without_a_number_are_held() {
    let stack = start().await;
    let prompt = create(&stack, &greeting("One")).await;
    for n in 2..=6 {
        add_version(&stack, &prompt, &format!("Version {n}")).await;
    }
    label(&stack, &prompt, 3, "staging").await;
    label(&stack, &prompt, 4, "production").await;
    until_runs(&stack, &format!("{}@production", prompt.slug)).await;
    let held = r#"gateway_snapshot_rows{table="served_prompt_versions"}"#;
    assert_eq!(stack.metric(held).await, Some(3.0));
    label(&stack, &prompt, 4, "staging").await;
    stack.until("the third is let go", async || stack.metric(held).await == Some(2.0)).await;
    let rows = "SELECT string_agg(number::text, ' ' ORDER BY number) FROM prompt_versions WHERE is_served";
    let database = stack.database.client().await;
    assert_eq!(database.query_one(rows, &[]).await.unwrap().get::<_, String>(0), "1 4");
    assert_eq!(author(&stack).delete(&format!("/prompts/{}", prompt.slug)).await.status, 200);
    stack.until("all are let go", async || stack.metric(held).await == Some(0.0)).await;
    let bytes = "SELECT coalesce(sum(bytes), 0)::bigint FROM served_prompt_bytes";
    assert_eq!(database.query_one(bytes, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn what_a_workspace_has_beyond_its_share_of_memory_is_fetched() {
    let stack = start().await;
    let small = create(&stack, &greeting("small")).await;
    let mut large = greeting("");
    large["string"] = messages(&"x".repeat(900_000)).into();
    let mut last = String::new();
    for _ in 0..40 {
        last = create(&stack, &large).await.slug;
    }
    until_runs(&stack, &last).await;
    let held = stack.metric(r#"gateway_snapshot_rows{table="served_prompt_versions"}"#).await.unwrap();
    assert!((30.0..40.0).contains(&held), "{held}");
    assert_eq!(run(&stack, &last, &json!({})).await.status, 200);
    assert_eq!(asked(&stack)["messages"][0]["content"].as_str().map(str::len), Some(900_000));
    assert_eq!(run(&stack, &small.slug, &Value::Null).await.status, 400, "null is no object");
    assert_eq!(run(&stack, &small.slug, &json!({})).await.status, 200);
}
