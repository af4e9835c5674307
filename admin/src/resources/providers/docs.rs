//! How the OpenAPI document shows providers.

use super::Provider;
use crate::limits::{self, docs as limit_docs};
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use crate::resources::integrations::docs::{made, tags};

pub fn docs() -> [Doc; 5] {
    let by_tags = schema::any_text().eg("{\"team\":\"search\"}").says("A JSON object of which everything must match.");
    let updated = schema::object("").need("id", schema::uuid()).need("slug", schema::slug());
    [
        Doc::create::<Provider>(new()).answer(made("provider")).also(409).also(503),
        Doc::list::<Provider>(&provider("Provider", "provider")).search().filter("tags", by_tags),
        Doc::read::<Provider>(&provider("Provider", "provider")),
        Doc::update::<Provider>(change()).answer(updated).also(503),
        Doc::delete::<Provider>().forcible(),
    ]
}

fn new() -> Schema {
    schema::object("NewProvider")
        .need("name", schema::text(1..=255).eg("OpenAI"))
        .need(
            "integration_id",
            schema::name_of("openai-production").says("Slug or id; the workspace must have access."),
        )
        .may("slug", schema::slug().eg("openai").or_null().says("Made of the name when absent."))
        .with(&settings())
}

fn change() -> Schema {
    schema::object("ProviderChange")
        .may("name", schema::text(1..=255).eg("OpenAI").or_null())
        .with(&settings())
        .may("reset_usage", schema::flag().or_null())
}

fn settings() -> Schema {
    let waits =
        schema::whole(0..=600_000).eg(500).says("Calls wait this long for their turn, then are answered with 429.");
    let concurrency =
        schema::object("Concurrency").need("max_in_flight", at_once()).may("max_wait_ms", waits).closed().says(
            "How many calls each proxy sends at once; off when null. The providers of one integration that set it share \
             the largest of their numbers between their workspaces, by priority.",
        );
    schema::object("")
        .may("note", schema::text(0..=1024).eg("For the support bot").or_null())
        .may("usage_limits", limit_docs::usage_limits())
        .may("rate_limits", limit_docs::rate_limits(&limits::USUAL_RATES))
        .may("expires_at", schema::moment().eg("2099-01-01T00:00:00Z").or_null().says("In the future."))
        .may("tags", tags())
        .may("model_config", schema::any_object().or_null())
        .may("concurrency", concurrency.or_null())
}

fn at_once() -> Schema {
    schema::whole(1..=1_000_000).eg(20)
}

fn concurrency_shown() -> Schema {
    schema::object("ConcurrencyShown")
        .need("max_in_flight", at_once())
        .need("max_wait_ms", schema::whole(0..=600_000).eg(500))
        .closed()
}

/// The object of both views.
pub fn provider(title: &str, object: &str) -> Schema {
    schema::shown(title, object)
        .need("slug", schema::slug().eg("openai"))
        .need("name", schema::any_text().eg("OpenAI"))
        .need("note", schema::any_text().eg("For the support bot").or_null())
        .need("status", schema::choice(&["active", "exhausted", "expired"]))
        .need("ai_provider_name", schema::any_text().eg("openai"))
        .need("provider", schema::any_text().eg("openai"))
        .need("integration_id", schema::slug().eg("openai-production").says("The integration's slug."))
        .need("workspace_id", schema::uuid())
        .need("workspace_name", schema::any_text().eg("Marketing"))
        .need("organisation_id", schema::uuid())
        .need("model_config", schema::any_object().or_null())
        .need("usage_limits", limit_docs::usage_state().or_null())
        .need("rate_limits", limit_docs::rate_limits_shown(&limits::USUAL_RATES).or_null())
        .need("reset_usage", schema::bit().or_null())
        .need("expires_at", schema::time().or_null())
        .need("last_reset_at", schema::time().or_null())
        .need("tags", tags())
        .need("concurrency", concurrency_shown().or_null())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
}
