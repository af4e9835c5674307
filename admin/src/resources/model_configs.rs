//! The public price list: what a model costs, in US cents per token, and what a provider's models can do. No credential
//! is asked for, and a miss says so in the form that clients of this list expect.

use crate::app::App;
use crate::crud::Routes;
use crate::http::ApiError;
use crate::openapi::{Doc, schema};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;
use shared::cost::prices::sources::Document;
use shared::cost::prices::{Kind, PriceList};
use shared::cost::{Entry, PricingConfig};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

pub fn routes() -> Routes {
    Routes::default()
        .get("/model-configs/pricing/{provider}/{*model}", price)
        .get("/model-configs/pricing/{provider}", prices)
        .get("/model-configs/general/{provider}", capabilities)
        .describe(docs())
}

async fn price(State(app): State<App>, Path((provider, model)): Path<(String, String)>) -> Result<Response, ApiError> {
    let document = known(&app, Kind::Pricing, &provider).await?;
    let found = document.as_prices().and_then(|list| list.find(&provider, &model));
    let entry = found.ok_or(ApiError::NotListed("price for this model"))?.entry;
    let config = PricingConfig { currency: Some(currency(entry)), ..entry.pricing_config.clone() };
    written(&config)
}

async fn prices(State(app): State<App>, Path(provider): Path<String>) -> Result<Response, ApiError> {
    let document = known(&app, Kind::Pricing, &provider).await?;
    written(&document.as_prices().into_iter().flat_map(PriceList::iter).collect::<BTreeMap<_, _>>())
}

async fn capabilities(State(app): State<App>, Path(provider): Path<String>) -> Result<Response, ApiError> {
    match &*known(&app, Kind::General, &provider).await? {
        Document::Capabilities(value) => written(value),
        Document::Prices(_) => Err(ApiError::NotListed("capabilities for this provider")),
    }
}

async fn known(app: &App, kind: Kind, provider: &str) -> Result<Arc<Document>, ApiError> {
    let found = app.model_configs.document(kind, provider, Instant::now()).await;
    found.ok_or(ApiError::NotListed("such provider in the price list"))
}

fn currency(entry: &Entry) -> String {
    entry.pricing_config.currency.clone().unwrap_or_else(|| "USD".into())
}

/// Straight to text: on the way through a JSON value, prices would pass through floats.
fn written(value: &impl Serialize) -> Result<Response, ApiError> {
    let body = serde_json::to_vec(value).map_err(anyhow::Error::from)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

fn docs() -> [Doc; 3] {
    let price = json!({
        "pay_as_you_go": {
            "request_token": { "price": 0.00025 },
            "response_token": { "price": 0.001 },
            "cache_read_input_token": { "price": 0.000125 },
        },
        "currency": "USD",
    });
    let rates = schema::any_object().eg(price["pay_as_you_go"].clone());
    let config = schema::object("PricingConfig")
        .may("pay_as_you_go", rates.clone().says("Kind of token → price of one, in US cents."))
        .may("batch_config", rates.clone().says("The same for batches, where it differs."))
        .may("calculate", schema::any_object().says("Formulas, where a cost is not the plain sum."))
        .may("fixed_cost", schema::any_object().says("What every call costs."))
        .may("finetune_config", schema::any_object().says("Prices of training, per token or hour."))
        .need("currency", schema::any_text().eg("USD"))
        .eg(price.clone());
    let entry = json!({ "gpt-4o": { "pricing_config": price } });
    let general =
        json!({ "name": "openai", "description": "Models of OpenAI", "default": { "type": { "primary": "chat" } } });
    [
        Doc::get("/model-configs/pricing/{provider}/{*model}", "Read the price of a model").answer(config).details(
            "Finds the model by its name, else the longest listed name that it continues, else the provider's default.",
        ),
        Doc::get("/model-configs/pricing/{provider}", "Read all prices of a provider")
            .answer(schema::any_object().eg(entry)),
        Doc::get("/model-configs/general/{provider}", "Read what a provider's models can do")
            .answer(schema::any_object().eg(general)),
    ]
}
