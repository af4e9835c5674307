//! What applications do with secrets: stored ones, those of configs, and their own, in calls that succeed and calls that
//! fail. The provider must get each one; nobody else may.

use super::{assert_clean, secret};
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

pub async fn run(stack: &Stack, administrator: &Client) {
    let config = configs(administrator).await;
    let application = stack.anonymous().with_key(&stack.home.workspace_key);
    let stored = application.with("x-gateway-provider", "@called");
    let saved = application.with("x-gateway-config", &config);
    // The config was changed: until the proxy has heard of it, the credential is the one before.
    for (client, key) in [(&stored, secret(44)), (&saved, secret(60))] {
        let expected = format!("Bearer {key}");
        stack
            .until("the provider gets the latest credential", async || {
                stack.mock.reset();
                let answer = client.post("/chat/completions", &chat("Hello")).await;
                answer.status == 200 && stack.mock.requests().iter().all(|one| one.header("authorization") == expected)
            })
            .await;
    }
    stack.mock.reset();
    assert_eq!(stored.post("/chat/completions", &chat("Hello")).await.status, 200);
    assert_eq!(saved.post("/chat/completions", &chat("Hello")).await.status, 200);
    let arrived: Vec<String> = stack.mock.requests().iter().map(|one| one.header("authorization").to_owned()).collect();
    assert_eq!(arrived, [format!("Bearer {}", secret(44)), format!("Bearer {}", secret(60))]);

    let own = application.with("x-gateway-provider", "openai").with("authorization", format!("Bearer {}", secret(61)));
    let here = own.with("x-gateway-custom-host", stack.mock.url());
    let inline = |config: Value| application.with("x-gateway-config", config.to_string());
    let key = secret(62);
    let mock = stack.mock.url();
    for (what, client) in [
        ("stored", stored),
        ("saved", saved),
        ("own", here),
        ("inline", inline(json!({ "provider": "openai", "api_key": key, "custom_host": mock }))),
        ("wrong inline", inline(json!({ "provider": "openai", "api_key": key, "custom_host": 5, "retry": key }))),
        ("no JSON", application.with("x-gateway-config", format!("{{\"api_key\": \"{key}\""))),
        ("nobody there", own.with("x-gateway-custom-host", "http://127.0.0.1:1/v1")),
        ("forbidden host", own.with("x-gateway-custom-host", "http://169.254.169.254/v1")),
        ("unknown key", stack.anonymous().with_key(&secret(63)).with("x-gateway-provider", "openai")),
        ("no token", stack.anonymous().with("authorization", format!("Bearer {}.{}.x", secret(64), secret(65)))),
        ("metadata", own.with("x-gateway-metadata", format!("{{\"key\": {}", secret(66)))),
    ] {
        for fault in [
            json!({}),
            json!({ "status": 401 }),
            json!({ "status": 500 }),
            json!({ "reset": true }),
            json!({ "bad_json": true }),
        ] {
            let body = chat(&json!({ "mock": fault }).to_string());
            told(&format!("{what} {fault}"), &client.post("/chat/completions", &body).await);
            let relayed = client.post("/another/path", &body).await;
            // There the mock repeats what it got, as no provider would.
            if relayed.status != 200 {
                told(&format!("{what} relayed {fault}"), &relayed);
            }
        }
    }
    told("control plane", &stack.anonymous().with_key(&secret(67)).get("/integrations").await);
}

fn told(what: &str, answer: &Answer) {
    assert_clean(&format!("the answer to {what}"), &answer.text());
    assert_clean(&format!("the head of the answer to {what}"), &format!("{:?}", answer.headers));
}

/// Every way to see and change a config; gives the slug of one that calls the mock.
async fn configs(administrator: &Client) -> String {
    let listed = administrator.get("/configs").await.json();
    let slug = |name: &str| {
        let found = listed["data"].as_array().unwrap().iter().find(|one| one["name"] == name);
        found.unwrap_or_else(|| panic!("{listed}"))["slug"].as_str().unwrap().to_owned()
    };
    let (one, many) = (slug("one"), slug("many"));
    let mut config = administrator.get(&format!("/configs/{one}")).await.json()["data"]["config"].clone();
    config["api_key"] = secret(60).into();
    for body in [json!({ "config": config }), json!({ "config": { "provider": "groq", "api_key": "c4*****lue" } })] {
        told("a change of a config", &administrator.put(&format!("/configs/{one}"), &body).await);
    }
    for slug in [&one, &many] {
        let versions = administrator.get(&format!("/configs/{slug}/versions")).await;
        told("versions", &versions);
        told("a config", &administrator.get(&format!("/configs/{slug}")).await);
        let first = versions.json()["data"].as_array().unwrap().last().unwrap()["version_id"].clone();
        let first = first.as_str().unwrap();
        told("a difference", &administrator.get(&format!("/configs/{slug}/versions/diff?from={first}")).await);
    }
    one
}

/// Waits until the proxy's copy on disk has what was written last.
pub async fn until_on_disk(stack: &Stack) {
    let folder = stack.folder.path().join("snapshot");
    stack
        .until("the copy on disk holds the configs", async || {
            let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
            texts.into_iter().any(|text| text.contains("sealed:1:") && text.contains("integrations "))
        })
        .await;
}
