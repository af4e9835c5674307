//! The list of models in the words of Anthropic's and Google's clients, with their paging: a client that does not find what it
//! pages by takes the first page for all there is.

use super::Model;
use crate::request::refusal::Refusal;
use chrono::DateTime;
use http::HeaderMap;
use serde_json::{Map, Value, json};

/// In whose words a list is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListDialect {
    OpenAi,
    Anthropic,
    Google,
}

/// Pages of clients that do not say how long they should be, and the longest.
const USUAL_PAGE: usize = 20;
const GOOGLES_PAGE: usize = 50;
const MAX_PAGE: usize = 1000;

impl ListDialect {
    /// Anthropic's clients send a version, Google's a path or a header of their own.
    pub fn of_request(path: &str, headers: &HeaderMap) -> Self {
        match () {
            () if path.starts_with("/v1beta/") => Self::Google,
            () if headers.contains_key("anthropic-version") => Self::Anthropic,
            () if headers.contains_key("x-goog-api-key") => Self::Google,
            () => Self::OpenAi,
        }
    }

    /// A page of the models, which come in the order of their names; none where the list is OpenAI's.
    pub fn page(self, models: &[Model], query: Option<&str>) -> Result<Option<Value>, Refusal> {
        match self {
            Self::OpenAi => Ok(None),
            Self::Anthropic => anthropic_page(models, query).map(Some),
            Self::Google => google_page(models, query).map(Some),
        }
    }

    /// One of them; none where it is OpenAI's.
    pub fn model(self, model: &Model) -> Option<Value> {
        match self {
            Self::OpenAi => None,
            Self::Anthropic => Some(anthropic_model(model)),
            Self::Google => Some(google_model(model)),
        }
    }
}

fn anthropic_page(models: &[Model], query: Option<&str>) -> Result<Value, Refusal> {
    let limit = page_size(query, "limit", USUAL_PAGE)?;
    let (before, after) = (parameter(query, "before_id"), parameter(query, "after_id"));
    let place = |id: &str| models.binary_search_by(|model| model.id.as_str().cmp(id));
    let (page, has_more) = match (before, after) {
        (Some(id), _) => {
            let end = place(&id).unwrap_or_else(|place| place);
            let start = end.saturating_sub(limit);
            (&models[start..end], start > 0)
        }
        (None, after) => {
            let start = after.map_or(0, |id| place(&id).map_or_else(|place| place, |place| place + 1));
            let end = start.saturating_add(limit).min(models.len());
            (&models[start..end], end < models.len())
        }
    };
    Ok(json!({
        "data": page.iter().map(anthropic_model).collect::<Vec<_>>(), "has_more": has_more,
        "first_id": page.first().map(|model| &model.id), "last_id": page.last().map(|model| &model.id),
    }))
}

fn anthropic_model(model: &Model) -> Value {
    let created = DateTime::from_timestamp(model.created, 0).unwrap_or_default();
    json!({
        "type": "model", "id": model.id, "display_name": model.slug,
        "created_at": created.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
    })
}

fn google_page(models: &[Model], query: Option<&str>) -> Result<Value, Refusal> {
    let limit = page_size(query, "pageSize", GOOGLES_PAGE)?;
    // The token is the last name of the page before.
    let start = parameter(query, "pageToken").map_or(0, |token| {
        let place = models.binary_search_by(|model| model.id.as_str().cmp(&token));
        place.map_or_else(|place| place, |place| place + 1)
    });
    let end = start.saturating_add(limit).min(models.len());
    let mut page = Map::new();
    page.insert("models".into(), models[start..end].iter().map(google_model).collect());
    if let Some(last) = models[start..end].last().filter(|_| end < models.len()) {
        page.insert("nextPageToken".into(), last.id.as_str().into());
    }
    Ok(Value::Object(page))
}

fn google_model(model: &Model) -> Value {
    json!({
        "name": format!("models/{}", model.id), "baseModelId": model.canonical_slug, "version": "",
        "displayName": model.slug,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
    })
}

fn page_size(query: Option<&str>, name: &'static str, usual: usize) -> Result<usize, Refusal> {
    match parameter(query, name) {
        None => Ok(usual),
        Some(text) => match text.parse() {
            Ok(size @ 1..=MAX_PAGE) => Ok(size),
            _ => Err(Refusal::invalid_query(name, "a whole number from 1 to 1000")),
        },
    }
}

fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::cost::prices::ModelFacts;

    fn models(count: usize) -> Vec<Model> {
        let model = |number: usize| Model {
            id: format!("@p/m{number:02}"),
            slug: format!("m{number:02}"),
            canonical_slug: "base".into(),
            object: "model",
            created: 0,
            owned_by: "openai".into(),
            provider: "p".into(),
            facts: ModelFacts::default(),
        };
        (0..count).map(model).collect()
    }

    fn ids(page: &Value, list: &str, name: &str) -> Vec<String> {
        page[list].as_array().unwrap().iter().map(|model| model[name].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn pages_follow_one_another_to_the_last_model_in_both_dialects() {
        let models = models(45);
        let (mut found, mut query) = (Vec::new(), "limit=20".to_owned());
        loop {
            let page = ListDialect::Anthropic.page(&models, Some(&query)).unwrap().unwrap();
            found.extend(ids(&page, "data", "id"));
            if page["has_more"] == false {
                break;
            }
            query = format!("limit=20&after_id={}", page["last_id"].as_str().unwrap());
        }
        assert_eq!(found, models.iter().map(|model| model.id.clone()).collect::<Vec<_>>());
        let before = ListDialect::Anthropic.page(&models, Some("limit=2&before_id=@p/m10")).unwrap().unwrap();
        assert_eq!(
            (ids(&before, "data", "id"), &before["has_more"]),
            (vec!["@p/m08".into(), "@p/m09".into()], &json!(true))
        );
        let (mut found, mut query) = (Vec::new(), "pageSize=20".to_owned());
        loop {
            let page = ListDialect::Google.page(&models, Some(&query)).unwrap().unwrap();
            found.extend(ids(&page, "models", "name"));
            let Some(token) = page["nextPageToken"].as_str() else { break };
            query = format!("pageSize=20&pageToken={token}");
        }
        assert_eq!(found, models.iter().map(|model| format!("models/{}", model.id)).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_no_page_is_refused_or_empty() {
        let models = models(3);
        for query in ["limit=0", "limit=1001", "limit=x"] {
            assert!(ListDialect::Anthropic.page(&models, Some(query)).is_err(), "{query}");
        }
        let beyond = ListDialect::Anthropic.page(&models, Some("after_id=@z/z")).unwrap().unwrap();
        assert_eq!(beyond, json!({ "data": [], "has_more": false, "first_id": null, "last_id": null }));
        let empty = ListDialect::Google.page(&[], Some("pageToken=x")).unwrap().unwrap();
        assert_eq!(empty, json!({ "models": [] }));
    }
}
