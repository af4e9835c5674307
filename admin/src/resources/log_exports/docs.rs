//! How the OpenAPI document shows exports of logs.

use super::LogExport;
use crate::log_data::filters as log_filters;
use crate::logs::exports::{ExportFormat, fields};
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use serde_json::json;

pub fn docs() -> Vec<Doc> {
    let export = export();
    let counted = || {
        schema::object("")
            .need("id", schema::uuid())
            .need("object", schema::fixed("export"))
            .need("total", schema::whole(0..=i64::MAX).says("Logs that match, counted up to a limit."))
            .need("total_is_capped", schema::flag().says(
                "There may be more than were counted: beyond 10000, or when counting would take long, only the finished \
                 export knows.",
            ))
            .need("workspace_ids", workspaces())
    };
    let confirmation = |text: &str| {
        schema::object("").need("message", schema::any_text().eg(text)).need("object", schema::fixed("export"))
    };
    let url = || schema::any_text().eg("https://gateway.example.com/v1/logs/exports/0b0cb1f4/files/1?token=x");
    let names = || schema::list(schema::choice(&fields::names().collect::<Vec<_>>()));
    let at = |rest: &str| format!("/logs/exports/{{id}}{rest}");
    vec![
        Doc::list::<LogExport>(&export),
        Doc::create::<LogExport>(sent())
            .details(
                "Of a workspace's key it is of its workspace. Who acts for the organisation names one workspace, several, or \
                 all (`*`, or none); the fields `workspace_id` and `workspace_slug` then tell logs apart.",
            )
            .answer(counted()),
        Doc::read::<LogExport>(&export),
        Doc::update::<LogExport>(change()).answer(counted()),
        Doc::post(&at("/start"), "Start an export")
            .details("Again from its beginning, if it failed or was cancelled.")
            .answer(confirmation("The export was started"))
            .conditional(),
        Doc::post(&at("/cancel"), "Cancel an export").answer(confirmation("The export was cancelled")).conditional(),
        Doc::get(&at("/download"), "Get links to the files of an export")
            .details("A file holds up to 50,000 logs; `signed_url` is the first. Links are good for an hour.")
            .filter("workspace_id", schema::any_text().eg("ws-market-3f9a01"))
            .answer(schema::object("").need("signed_url", url()).need("signed_urls", schema::list(url()))),
        Doc::get(&at("/files/{number}"), "Fetch a file of an export")
            .filter("token", schema::any_text().says("As in the link."))
            .file(&["application/x-ndjson", "text/csv"]),
        Doc::get("/logs/exports/field-restrictions", "Read which fields may be exported")
            .filter("workspace_id", schema::any_text().eg("ws-market-3f9a01").says("Id or slug."))
            .answer(
                schema::object("")
                    .need("workspace_id", schema::uuid())
                    .need("deniedFields", names())
                    .need("allowedFields", names()),
            ),
    ]
}

fn filters() -> Schema {
    let example = json!({ "time_of_generation_min": "2026-01-01T00:00:00Z", "status_code": "429" });
    schema::any_object().eg(example).says(
        "The parameters of the list of logs; lists may be arrays, `metadata` is an object, and the time may stand as \
         `created_at: {gte, lte}`. All logs that match, unless `page_size` (at most 50000) or `current_page` choose some.",
    )
}

/// As sent: the names of the list, so that a mistyped one does not export everything.
fn sent_filters() -> Schema {
    let list = log_filters::documented(Doc::get("/logs", "")).pages(crate::http::PageSizes::USUAL);
    let (_, query) = list.accepts();
    let names = query["properties"].as_object().into_iter().flatten();
    let named = names.fold(schema::object("ExportFilters"), |all, (name, parameter)| {
        let says = parameter["description"].as_str().unwrap_or("As in the list of logs.");
        all.may(name, schema::anything().says(says))
    });
    let time = schema::object("ExportPeriod")
        .may("gte", schema::moment().says("From when on.").or_null())
        .may("lte", schema::moment().says("Until when.").or_null());
    let named = named.may("created_at", time.says("The time of the calls, in other words.").or_null());
    let named = named
        .may("workspace_id", asked_workspaces().says("Workspaces, if `workspace_id` beside the filters names none."));
    named.eg(filters().example().clone()).says(
        "The parameters of the list of logs; lists may be arrays, `metadata` is an object. All logs that match, unless \
         `page_size` (at most 50000) or `current_page` choose some.",
    )
}

fn requested_data() -> Schema {
    schema::list(schema::choice(&fields::accepted())).eg(json!(["id", "created_at", "ai_model", "cost"]))
}

fn description() -> Schema {
    schema::text(0..=1000).eg("Failures of January").or_null()
}

fn sent() -> Schema {
    schema::object("NewExport")
        .need("filters", sent_filters().or_null())
        .need("requested_data", requested_data())
        .may("format", schema::choice(&ExportFormat::NAMES).or_null().says("`jsonl` unless given."))
        .may("description", description())
        .may("workspace_id", asked_workspaces())
        .may("workspace_slug", asked_workspaces().says("The same as `workspace_id`."))
}

fn asked_workspaces() -> Schema {
    let name = || schema::any_text().eg("ws-market-3f9a01");
    schema::either([name(), schema::list(name())])
        .or_null()
        .says("Ids or slugs of workspaces, a list of them, or `*`. A workspace's own key may leave it out.")
}

/// Of an export as it is shown.
fn workspaces() -> Schema {
    schema::list(schema::uuid()).or_null().says("Whose logs it holds; null for all workspaces of the organisation.")
}

fn change() -> Schema {
    schema::object("ExportChange")
        .may("filters", sent_filters().or_null())
        .may("requested_data", requested_data().or_null())
        .may("format", schema::choice(&ExportFormat::NAMES).or_null())
        .may("description", description())
}

fn export() -> Schema {
    let count = || schema::whole(0..=i64::MAX);
    schema::shown("Export", "export")
        .need("organisation_id", schema::uuid())
        .need("workspace_id", schema::uuid().or_null().says("Null for an export of several workspaces."))
        .need("workspace_ids", workspaces())
        .need("filters", filters())
        .need("requested_data", schema::list(schema::choice(&fields::names().collect::<Vec<_>>())))
        .need("format", schema::choice(&ExportFormat::NAMES))
        .need("status", schema::choice(&["draft", "in_progress", "success", "failed", "stopped"]))
        .need("description", description())
        .need("created_by", schema::uuid().says("The person, or the key that acts for nobody."))
        .need("total_records", count().says("Logs that match; exact once the export is complete."))
        .need("total_is_capped", schema::flag().says(
                "There may be more than were counted: beyond 10000, or when counting would take long, only the finished \
                 export knows.",
            ))
        .need("exported_records", count().says("How far it has got."))
        .need("files", count().says("Of a complete export; 0 before."))
        .need("error", schema::any_text().or_null().says("Why the last step failed.").eg(json!(null)))
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
}
