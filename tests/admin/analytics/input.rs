//! What is asked wrongly gets a sentence that says so, and what is asked of nothing gets zeros.

use super::{ALL, COUNTING, get};
use crate::service::Service;
use serde_json::json;

#[tokio::test]
async fn a_time_is_needed_and_every_wrong_value_is_named() {
    let service = Service::start().await;
    let client = service.administrator();
    let min = "time_of_generation_min=2026-01-01T00:00:00Z";
    for path in COUNTING {
        for (query, field) in [
            (String::new(), "time_of_generation_min"),
            (min.to_owned(), "time_of_generation_max"),
            (format!("{min}&time_of_generation_max=2025-01-01T00:00:00Z"), "time_of_generation_max"),
            (format!("{min}&time_of_generation_max=yesterday"), "time_of_generation_max"),
            (format!("{ALL}&status_code=x"), "status_code"),
            (format!("{ALL}&cost_min=-1"), "cost_min"),
            (format!("{ALL}&metadata=x"), "metadata"),
            (format!("{ALL}&colour=red"), "colour"),
        ] {
            let answer = client.get(&format!("{path}?{query}")).await;
            assert_eq!(answer.status, 400, "{path}?{query}: {}", answer.text());
            assert!(answer.json()["message"].as_str().unwrap().contains(field), "{path}?{query}: {}", answer.text());
        }
    }
    for (path, field) in [
        (format!("/analytics/groups/colour?{ALL}"), "groupBy"),
        (format!("/logs/groups/colour?{ALL}"), "groupBy"),
        (format!("/analytics/groups/model?{ALL}&columns=cost,colour"), "columns"),
        (format!("/analytics/groups/model?{ALL}&order_by=cost"), "order_by"),
        (format!("/analytics/groups/model?{ALL}&order_by_type=up"), "order_by_type"),
        (format!("/analytics/groups/model?{ALL}&include_total=yes"), "include_total"),
        (format!("/analytics/groups/model?{ALL}&then_by=colour"), "then_by"),
        (format!("/logs/groups/model?{ALL}&then_by=model"), "then_by"),
        (format!("/analytics/groups/metadata/plan?{ALL}&then_by=colour"), "then_by"),
        (format!("/analytics/groups/metadata/plan?{ALL}&then_by=metadata/plan"), "then_by"),
        (format!("/analytics/groups/metadata/plan?{ALL}&order_by=model"), "order_by"),
        (format!("/analytics/groups/users?{ALL}&then_by=model"), "then_by"),
        (format!("/analytics/groups/model?{ALL}&order_by=user"), "order_by"),
        (format!("/analytics/graphs/cost?{ALL}&group_by=colour"), "group_by"),
        (format!("/analytics/graphs/feedbacks?{ALL}&group_by=model"), "group_by"),
        (format!("/analytics/graphs/cost?{ALL}&compare=next"), "compare"),
        (format!("/analytics/groups/metadata/{}?{ALL}", "n".repeat(200)), "metadataKey"),
    ] {
        let answer = client.get(&path).await;
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        assert!(answer.json()["message"].as_str().unwrap().contains(field), "{path}: {}", answer.text());
    }
}

#[tokio::test]
async fn where_there_is_nothing_there_are_zeros() {
    let service = Service::start().await;
    let client = service.administrator();
    let graph = get(&client, "/analytics/graphs/latency", ALL).await;
    assert_eq!(graph["summary"], json!({ "avg": 0, "p50": 0, "p90": 0, "p99": 0 }));
    assert_eq!(graph["data_points"].as_array().unwrap().len(), 31);
    assert_eq!(graph["data_points"][0]["p99"], 0);
    // Over a change of clocks in many countries: slots are of UTC.
    let spring =
        "time_of_generation_min=2026-03-28T00:00:00%2B01:00&time_of_generation_max=2026-03-30T00:00:00%2B02:00";
    let days = get(&client, "/analytics/graphs/requests", spring).await;
    assert_eq!(days["data_points"][0]["timestamp"], "2026-03-27T23:00:00.000Z");
    assert_eq!(days["data_points"].as_array().unwrap().len(), 48, "47 hours and the one that the end is in");
    let plus = get(&client, "/analytics/graphs/requests", &spring.replace("%2B", "+")).await;
    assert_eq!(plus, days, "a plus that came as a space");
    let groups = get(&client, "/analytics/groups/model", &format!("{ALL}&current_page=3")).await;
    assert_eq!((&groups["total"], &groups["data"]), (&json!(0), &json!([])));
}
