//! How the document shows the operations on logs.

use crate::http::PageSizes;
use crate::log_data::{filters, row};
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use serde_json::json;

pub fn docs() -> [Doc; 2] {
    let list = schema::object("LogList")
        .need("object", schema::fixed("list"))
        .need(
            "total",
            schema::whole(0..=10_000).says(
                "All matches, up to 10000. When counting them would take long: those up to the end of this page.",
            ),
        )
        .need("total_is_capped", schema::flag().says("Whether there are more than `total`."))
        .need("data", schema::list(row::docs()))
        .need(
            "workspaces",
            schema::list(
                schema::object("LoggedWorkspace")
                    .need("id", schema::uuid().says("Its id."))
                    .need("slug", schema::slug().eg("ws-market-3f9a01").says("Its slug."))
                    .need("name", schema::any_text().eg("Marketing").says("Its name.")),
            )
            .or_null()
            .says("The workspaces whose logs these are; null when it is all of them."),
        )
        .need("next", schema::uuid().or_null().says("Sent as `after`, it leads to the next page."))
        .need(
            "default_time_of_generation_min",
            schema::time().or_null().says("Where the list begins, when the request did not say."),
        );
    let after = schema::uuid().or_empty().eg("019a0000-0000-7000-8000-000000000000");
    let listed = filters::documented(Doc::get("/logs", "List logs of calls, newest first"))
        .details(&format!(
            "Pages go by number up to 10000 logs, and by `after` without end. Without `time_of_generation_min`, and \
             without a trace, only the last {} days are listed. Of one organisation a few lists are made at a time; \
             others wait, and get 429 when that takes long.",
            filters::DEFAULT_DAYS
        ))
        .pages(PageSizes::USUAL)
        .filter("after", after.says("Only logs older than this one; it must be the id of a log."))
        .answer(list);
    [listed, Doc::get("/logs/{logId}", "Read the log of a call").answer(log())]
}

/// Bodies and headers are there when they were kept.
fn log() -> Schema {
    let request = schema::object("LoggedRequest")
        .need("url", schema::any_text().eg("/v1/chat/completions"))
        .need("method", schema::any_text().eg("POST"))
        .may("headers", schema::anything())
        .may("body", schema::anything())
        .may("gatewayHeaders", schema::anything());
    let response = schema::object("LoggedResponse")
        .need("status", schema::whole(0..=i64::MAX).eg(200))
        .need("responseTime", schema::whole(0..=i64::MAX).eg(420))
        .need("lastUsedOptionJsonPath", schema::any_text().eg("config.targets[1]").or_null())
        .may("headers", schema::anything())
        .may("body", schema::anything());
    let part = || schema::any_object().eg(json!({ "body": {} })).says("Only when bodies were kept.");
    let feedback = schema::object("LoggedFeedback")
        .need("id", schema::uuid())
        .need("value", schema::whole(-10..=10))
        .need("weight", schema::number(0).up_to(1).eg(1))
        .need("metadata", schema::any_object())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time());
    schema::object("Log")
        .need("_id", schema::uuid())
        .need("id", schema::uuid())
        .need("object", schema::fixed("log"))
        .need("organisation_id", schema::uuid())
        .need("created_at", schema::time())
        .need("log_format", schema::choice(row::FORMATS))
        .need("request", request)
        .need("response", response)
        .need("metrics", row::docs())
        .need("feedbacks", schema::list(feedback).says("What was sent about the trace, newest first."))
        .may("finalUntransformedRequest", part())
        .may("transformedRequest", part())
        .may("originalResponse", part())
}
