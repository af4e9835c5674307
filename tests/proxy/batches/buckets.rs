//! Batches of Bedrock and Vertex, whose files are in buckets: rows are put there in the provider's form, a job is made over them and
//! watched, and its answers are read from the bucket; for the gateway's own batches, and for whoever names the provider.

use super::{CHAT, asked, begin, ended, id, jsonl, results, row, send, upload};
use crate::families::application;
use harness::{Client, Stack};
use serde_json::{Map, Value, json};

const BROKEN: &str = r#"{"mock":{"status":500}}"#;
const ANSWER: &str = r#"{"mock":{"reply":"from the bucket"}}"#;

/// A provider with its files in a bucket.
struct Cloud {
    model: &'static str,
    /// Headers that name it, but for the address.
    headers: &'static [(&'static str, &'static str)],
    /// What its batches need beyond OpenAI's fields.
    options: Value,
    /// The method and the path of each question in their order, as far as they are always the same; the third is asked until
    /// the job is over.
    places: [(&'static str, &'static str); 4],
}

/// Requests to it are signed.
fn bedrock() -> Cloud {
    Cloud {
        model: "anthropic.claude-3-haiku-20240307-v1:0",
        headers: &[
            ("x-gateway-provider", "bedrock"),
            ("x-gateway-aws-region", "us-east-1"),
            ("x-gateway-aws-access-key-id", "AKIABATCHES"),
            ("x-gateway-aws-secret-access-key", "a secret of the account"),
            ("x-gateway-aws-s3-bucket", "mock-bucket-1"),
        ],
        options: json!({ "role_arn": "arn:aws:iam::123456789012:role/batches" }),
        places: [
            ("PUT", "/mock-bucket-1/"),
            ("POST", "/model-invocation-job"),
            (
                "GET",
                "/model-invocation-job/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Amodel-invocation-job%2Fjob",
            ),
            ("GET", "/mock-bucket-1/"),
        ],
    }
}

fn vertex() -> Cloud {
    Cloud {
        model: "gemini-2.5-flash",
        headers: &[
            ("x-gateway-provider", "vertex-ai"),
            ("authorization", "Bearer ya29.mock"),
            ("x-gateway-vertex-project-id", "p"),
            ("x-gateway-vertex-region", "us-central1"),
            ("x-gateway-vertex-storage-bucket-name", "mock-bucket-2"),
        ],
        options: json!({}),
        places: [
            ("POST", "/upload/storage/v1/b/mock-bucket-2/o"),
            ("POST", "/v1/projects/p/locations/us-central1/batchPredictionJobs"),
            ("GET", "/v1/projects/p/locations/us-central1/batchPredictionJobs/"),
            ("GET", "/storage/v1/b/mock-bucket-2/o/"),
        ],
    }
}

impl Cloud {
    fn rows(&self) -> [Value; 3] {
        [row("a", self.model, ANSWER), row("b", self.model, BROKEN), row("c", self.model, ANSWER)]
    }

    fn gateway_options(&self, stack: &Stack) -> Value {
        let mut options: Map<String, Value> =
            self.headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        options.insert("x-gateway-custom-host".into(), stack.mock.origin().into());
        options.into()
    }

    fn client(&self, stack: &Stack) -> Client {
        let client = application(stack).with("x-gateway-custom-host", stack.mock.origin());
        self.headers.iter().fold(client, |client, (name, value)| client.with(name, *value))
    }

    /// Every question was asked at its place; lists, by which a lost batch is found, and what is deleted afterwards aside.
    fn check_places(&self, stack: &Stack) {
        let requests = stack.mock.requests();
        let is_list = |path: &str| path.ends_with("/batchPredictionJobs");
        let asked: Vec<(&str, &str)> = requests
            .iter()
            .map(|one| (one.method.as_str(), one.path.as_str()))
            .filter(|(method, path)| !(*method == "GET" && is_list(path)) && *method != "DELETE")
            .collect();
        let [file, job, looks, output] = self.places;
        let is_at =
            |(method, path): &(&str, &str), place: (&str, &str)| *method == place.0 && path.starts_with(place.1);
        assert!(asked.len() >= 4 && is_at(&asked[0], file) && is_at(&asked[1], job), "{asked:?}");
        assert!(is_at(asked.last().unwrap(), output), "{asked:?}");
        assert!(asked[2..asked.len() - 1].iter().all(|one| is_at(one, looks)), "{asked:?}");
    }
}

#[tokio::test]
async fn rows_of_a_managed_batch_are_run_out_of_a_bucket() {
    for cloud in [bedrock(), vertex()] {
        let stack = Stack::start().await;
        let more = json!({ "gateway_options": cloud.gateway_options(&stack), "provider_options": cloud.options });
        let batch = begin(&stack, &cloud.rows(), "24h", more).await;
        assert!(!batch.to_string().contains("a secret of the account"), "{batch}");
        let over = ended(&stack, &batch).await;
        assert_eq!(over["status"], "completed", "{over}");
        assert_eq!(over["request_counts"], json!({ "total": 3, "completed": 2, "failed": 1 }), "{over}");
        assert!(over["cost"].as_f64() > Some(0.0), "{over}");
        let good = results(&stack, &over["output_file_id"]).await;
        assert_eq!(good.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        for (_, line) in &good {
            let body = &line["response"]["body"];
            assert_eq!(body["choices"][0]["message"]["content"], "from the bucket", "{line}");
            assert!(body["usage"]["total_tokens"].as_u64() > Some(0), "{line}");
        }
        let bad = results(&stack, &over["error_file_id"]).await;
        assert_eq!((bad.len(), bad[0].0.as_str(), bad[0].1["error"].is_object()), (1, "b", true), "{bad:?}");
        cloud.check_places(&stack);
    }
}

#[tokio::test]
async fn a_managed_batch_over_a_bucket_is_stopped_when_it_is_cancelled() {
    for cloud in [bedrock(), vertex()] {
        let stack = Stack::start().await;
        // The request for the job is answered late: until then nobody knows that there is one.
        let before = if cloud.model.starts_with("gemini") { 2 } else { 1 };
        stack.mock.script(json!([{ "times": before }, { "no_answer": true }])).unwrap();
        let more = json!({ "gateway_options": cloud.gateway_options(&stack), "provider_options": cloud.options });
        let batch = begin(&stack, &cloud.rows(), "24h", more).await;
        let is_told = async || !super::shown(&stack, id(&batch)).await["errors"].is_null();
        stack.until("it is told that the provider does not answer", is_told).await;
        let told = application(&stack).post(&format!("/batches/{}/cancel", id(&batch)), &json!({})).await;
        assert_eq!(told.status, 200, "{}", told.text());
        let over = ended(&stack, &batch).await;
        let ends = (over["status"].as_str().unwrap(), over["provider_details"]["status"].as_str().unwrap());
        assert_eq!(ends, ("cancelled", "cancelled"), "{over}");
        let stops = |one: &&bench::mock::Recorded| one.path.ends_with("/stop") || one.path.ends_with(":cancel");
        assert_eq!(stack.mock.requests().iter().filter(stops).count(), 1);
    }
}

#[tokio::test]
async fn a_batch_of_a_named_provider_is_run_out_of_its_bucket() {
    for cloud in [bedrock(), vertex()] {
        let stack = Stack::start().await;
        let client = cloud.client(&stack).with("x-gateway-provider-model", cloud.model);
        let file = send(&client, "batch", &jsonl(&cloud.rows())).await;
        assert_eq!(file.status, 200, "{}", file.text());
        let mut body = asked(id(&file.json()), "24h");
        body["model"] = cloud.model.into();
        body.as_object_mut().unwrap().extend(cloud.options.as_object().cloned().unwrap());
        let made = client.post("/batches", &body).await;
        assert_eq!(made.status, 200, "{}", made.text());
        let place = format!("/batches/{}", id(&made.json()));
        stack.until("it is over", async || client.get(&place).await.json()["status"] == "completed").await;
        let output = client.get(&format!("{place}/output")).await;
        assert_eq!(output.status, 200, "{}", output.text());
        let rows: Vec<Value> = output.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let told: Vec<(&Value, &Value)> = rows
            .iter()
            .map(|row| (&row["custom_id"], &row["response"]["body"]["choices"][0]["message"]["content"]))
            .collect();
        let answer = json!("from the bucket");
        assert_eq!(told, [(&json!("a"), &answer), (&json!("b"), &Value::Null), (&json!("c"), &answer)], "{rows:?}");
        assert!(rows[1]["error"].is_object(), "{rows:?}");
        cloud.check_places(&stack);
    }
}

#[tokio::test]
async fn an_account_without_a_bucket_or_a_role_starts_nothing() {
    let stack = Stack::start().await;
    let cloud = bedrock();
    let file = upload(&application(&stack), &jsonl(&cloud.rows())).await;
    let mut options = cloud.gateway_options(&stack);
    options.as_object_mut().unwrap().remove("x-gateway-aws-s3-bucket");
    for (gateway_options, provider_options) in
        [(options, cloud.options.clone()), (cloud.gateway_options(&stack), json!({}))]
    {
        let body = json!({ "input_file_id": file, "endpoint": CHAT, "completion_window": "24h",
            "gateway_options": gateway_options, "provider_options": provider_options });
        let made = application(&stack).post("/batches", &body).await;
        assert_eq!(made.status, 200, "{}", made.text());
        let over = ended(&stack, &made.json()).await;
        assert_eq!(over["status"], "failed", "{over}");
        assert!(over["errors"]["data"][0]["message"].is_string(), "{over}");
    }
    assert!(stack.mock.requests().iter().all(|one| matches!(one.method.as_str(), "PUT" | "DELETE")), "no job is made");
}
