//! `GET /providers/types`: which providers there are, what each can do and what an account with it needs, so that nobody
//! has to guess the name of a field.

use crate::app::App;
use crate::crud::{Answer, listed};
use crate::identity::Call;
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use crate::resources::integrations::probe;
use crate::resources::integrations::provider_fields::{FieldNeed, fields_of, key_need};
use axum::extract::State;
use serde_json::{Value, json};
use shared::providers::{Family, ProviderEntry};

pub async fn list(State(app): State<App>, call: Call) -> Answer {
    let part = call.query().text("search").map(str::to_lowercase);
    let is_meant = |one: &&ProviderEntry| {
        let names = [one.slug.to_lowercase(), one.name.to_lowercase()];
        part.as_ref().is_none_or(|part| names.iter().any(|name| name.contains(part.as_str())))
    };
    let mut all: Vec<&ProviderEntry> = app.providers.iter().map(|one| &**one).filter(is_meant).collect();
    all.sort_unstable_by(|one, other| one.slug.cmp(&other.slug));
    let total = i64::try_from(all.len()).unwrap_or(i64::MAX);
    Ok(listed(total, all.into_iter().map(shown).collect()))
}

fn shown(provider: &ProviderEntry) -> Value {
    let key = field("key", key_need(provider), &[], "The account's credential; sealed, and never shown again.");
    let settings =
        fields_of(provider).map(|one| field(&format!("configurations.{}", one.name), one.need, one.allowed, one.says));
    let families = Family::ALL.into_iter().filter(|family| provider.way(*family, "m").is_some());
    let families: Vec<&str> = families.map(Family::name).collect();
    json!({
        "object": "provider-type",
        "slug": &*provider.slug,
        "name": &*provider.name,
        "base_url": provider.base_url.as_deref(),
        "families": families,
        "fields": std::iter::once(key).chain(settings).collect::<Vec<_>>(),
        "test": probe::test_path(provider).map(|path| format!("GET {path}")),
    })
}

fn field(name: &str, need: FieldNeed, allowed: &[&str], says: &str) -> Value {
    let (required, when) = match need {
        FieldNeed::Always => (true, Value::Null),
        FieldNeed::Optional => (false, Value::Null),
        FieldNeed::When(setting, value) => {
            (false, json!({ "field": format!("configurations.{setting}"), "value": value }))
        }
    };
    json!({ "name": name, "required": required, "required_when": when, "allowed": allowed, "description": says })
}

pub fn docs() -> [Doc; 3] {
    let when = schema::object("FieldCondition")
        .need("field", schema::any_text().eg("configurations.aws_auth_type").says("Another field."))
        .need("value", schema::any_text().eg("accessKey").says("Its value."));
    let field = schema::object("ProviderField")
        .need("name", schema::any_text().eg("configurations.aws_region").says("Where it stands in the body."))
        .need("required", schema::flag().eg(true).says("Whether every account needs it."))
        .need("required_when", when.or_null().eg(Value::Null).says("When it is needed, if not always."))
        .need("allowed", schema::list(schema::any_text()).eg(json!([])).says("Its values, where they are a list."))
        .need("description", schema::any_text().eg("The region, as us-east-1.").says("What it means."));
    let kind = schema::object("ProviderType")
        .need("object", schema::fixed("provider-type"))
        .need("slug", schema::any_text().eg("openai").says("As `ai_provider_id` and in requests."))
        .need("name", schema::any_text().eg("OpenAI").says("As people call it."))
        .need("base_url", schema::any_text().eg("https://api.openai.com/v1").or_null().says("Its own address."))
        .need("families", schema::list(schema::any_text().eg("chat")).says("Kinds of endpoints that it offers."))
        .need("fields", schema::list(field).says("What an account with it consists of."))
        .need(
            "test",
            schema::any_text().eg("GET /models").or_null().says("How an account is tried; null: not by a call."),
        );
    let list = schema::object("ProviderTypeList")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX).says("How many there are."))
        .need("data", schema::list(kind).says("All of them, by slug."));
    let account = crate::resources::integrations::docs::tried_account();
    [
        Doc::get("/providers/types", "List the providers there are, and what an account with each needs")
            .search()
            .answer(list),
        Doc::post("/integrations/{slug}/test", "Try the account of an integration")
            .details("Makes one cheap call and says what is wrong. A provider's own words are not repeated.")
            .answer(outcome()),
        Doc::post("/providers/types/{type}/test", "Try an account before it is saved")
            .details("Makes one cheap call and says what is wrong. Nothing is stored.")
            .body(account)
            .answer(outcome()),
    ]
}

fn outcome() -> Schema {
    let says = "Whether the provider accepted the account; null when no call could tell.";
    schema::object("IntegrationTest")
        .need("object", schema::fixed("integration-test"))
        .need("is_tested", schema::flag().eg(true).says("Whether a call was made."))
        .need("success", schema::flag().eg(true).or_null().says(says))
        .need(
            "message",
            schema::any_text().eg("The provider accepts the account").says("What it means, and what to check."),
        )
        .need("url", schema::any_text().eg("https://api.openai.com/v1/models").or_null().says("What was asked."))
        .need("status", schema::whole(100..=999).eg(200).or_null().says("The status of its answer."))
        .need("response_time", schema::whole(0..=i64::MAX).eg(120).or_null().says("In milliseconds."))
}
