//! How the OpenAPI document shows virtual keys.

use super::VirtualKey;
use crate::limits::{self, docs as limit_docs};
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use crate::resources::integrations::docs::{made, mappings};
use crate::resources::providers::docs::provider;

pub fn docs() -> [Doc; 5] {
    let envelope = made("virtual-key")
        .need("success", schema::fixed(true))
        .need("data", schema::object("").need("slug", schema::slug()));
    let whole = provider("VirtualKey", "virtual-key")
        .need("key", schema::fixed("").says("Always empty: the provider's key is never shown."))
        .need("masked_api_key", schema::any_text().eg("sk*****789").or_null());
    [
        Doc::create::<VirtualKey>(new()).answer(envelope).also(503),
        Doc::list::<VirtualKey>(&provider("VirtualKeyItem", "virtual-key")).search(),
        Doc::read::<VirtualKey>(&whole),
        Doc::update::<VirtualKey>(change()).answer(made("virtual-key")).also(503),
        Doc::delete::<VirtualKey>().forcible(),
    ]
}

fn new() -> Schema {
    schema::object("NewVirtualKey")
        .need("name", schema::text(1..=255).eg("OpenAI"))
        .need("provider", schema::any_text().eg("openai"))
        .with(&settings())
}

fn change() -> Schema {
    schema::object("VirtualKeyChange")
        .may("name", schema::text(1..=255).eg("OpenAI").or_null())
        .with(&settings())
        .may("reset_usage", schema::flag().or_null())
}

fn settings() -> Schema {
    schema::object("")
        .may("key", schema::any_text().eg("sk-proj-0123456789").or_null().says("Sealed, and never shown again."))
        .may("note", schema::text(0..=1024).eg("For the support bot").or_null())
        .may("usage_limits", limit_docs::usage_limits())
        .may("rate_limits", limit_docs::rate_limits(&limits::USUAL_RATES))
        .may("expires_at", schema::moment().eg("2099-01-01T00:00:00Z").or_null())
        .may("secret_mappings", mappings())
        .may("resourceName", schema::any_text().eg("my-resource").says("Settings of providers are in camel case."))
}
