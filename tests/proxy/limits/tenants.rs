//! Two organisations whose policies are alike to the last letter, and whose users have the same names, never meet: neither
//! in Postgres nor in Redis.

use super::rates::Server;
use harness::stack::Organisation;
use harness::{Client, Stack, chat};
use serde_json::{Value, json};

const PATIENT: (&str, &str) = ("LIMITS_WAIT_MS", "20000");

async fn statuses(client: &Client, times: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..times {
        statuses.push(client.post("/chat/completions", &chat("Hello")).await.status.as_u16());
    }
    statuses
}

async fn policy(tenant: &Organisation, path: &str, limit: Value) -> String {
    let mut body = json!({
        "name": "alike", "workspace_id": tenant.workspace_id, "group_by": [{ "key": "metadata.team" }],
        "conditions": [{ "key": "metadata.team", "value": "*" }],
    });
    body.as_object_mut().unwrap().extend(limit.as_object().unwrap().clone());
    tenant.create(path, body).await["id"].as_str().unwrap().to_owned()
}

fn as_team(stack: &Stack, tenant: &Organisation, team: &str) -> Client {
    let client = stack.as_application(&tenant.workspace_key);
    client.with("x-gateway-metadata", json!({ "team": team }).to_string())
}

async fn until_refused(stack: &Stack, tenant: &Organisation, status: u16) {
    let probe = as_team(stack, tenant, "probe");
    stack.until("the policy is known", async || statuses(&probe, 1).await == [status]).await;
}

async fn apart(stack: &Stack) {
    let tenants = [stack.home.clone(), stack.organisation().await];
    let mut policies = Vec::new();
    for tenant in &tenants {
        let rate = json!({ "type": "requests", "unit": "rpd", "value": 2 });
        policies.push(policy(tenant, "/policies/rate-limits", rate).await);
        until_refused(stack, tenant, 429).await;
    }
    for tenant in &tenants {
        assert_eq!(statuses(&as_team(stack, tenant, "red"), 3).await, [200, 200, 429], "each has all of its own");
    }
    for (tenant, [own, foreign]) in tenants.iter().zip([[0, 1], [1, 0]]) {
        let shown = async || {
            let answer = tenant.get(&format!("/policies/rate-limits/{}/entities?search=red", policies[own])).await;
            answer.json()["data"][0]["current_usage"] == 2
        };
        stack.until("its own usage is shown", shown).await;
        let path = format!("/policies/rate-limits/{}", policies[foreign]);
        assert_eq!(tenant.get(&path).await.status, 404);
        assert_eq!(tenant.client().put(&path, &json!({ "value": 100 })).await.status, 404);
        assert_eq!(tenant.client().delete(&path).await.status, 404);
        assert_eq!(tenant.client().delete(&format!("/policies/rate-limits/{}", policies[own])).await.status, 200);
    }
    let [first, second] = &tenants;
    for tenant in &tenants {
        policy(tenant, "/policies/usage-limits", json!({ "type": "requests", "credit_limit": 2 })).await;
        until_refused(stack, tenant, 412).await;
    }
    assert_eq!(statuses(&as_team(stack, first, "blue"), 3).await, [200, 200, 412]);
    assert_eq!(statuses(&as_team(stack, second, "blue"), 3).await, [200, 200, 412]);
}

#[tokio::test]
async fn policies_that_are_alike_count_apart_in_postgres() {
    apart(&Stack::builder().proxy(PATIENT.0, PATIENT.1).start().await).await;
}

#[tokio::test]
async fn policies_that_are_alike_count_apart_in_redis() {
    let server = Server::start(false).await;
    apart(&Stack::builder().proxy(PATIENT.0, PATIENT.1).proxy("REDIS_URL", &server.url).start().await).await;
}
