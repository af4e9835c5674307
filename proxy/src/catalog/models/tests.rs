//! The list of a workspace's models: what it may ask for, nothing of another's, cut and sorted as the query says.

use super::*;
use crate::request::headers::Aliases;
use crate::routing::plan::compile;
use crate::snapshot::Catalog;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use shared::config::{Strictness, parse_config};
use shared::model::id::{OrganisationId, WorkspaceId};
use shared::model::{AccessStatus, Integration, IntegrationWorkspace, Provider, Status};
use shared::settings::config_limits::ConfigLimits;
use uuid::Uuid;

const ORGANISATION: OrganisationId = OrganisationId::new(Uuid::from_u128(1));
const HOME: WorkspaceId = WorkspaceId::new(Uuid::from_u128(2));
const OTHER: WorkspaceId = WorkspaceId::new(Uuid::from_u128(3));

fn workspace(id: WorkspaceId) -> Workspace {
    Workspace {
        id,
        organisation_id: ORGANISATION,
        slug: "w".into(),
        status: Status::Active,
        metadata: None,
        is_metrics_only: false,
        hides_costs: false,
        finds_plain_models: false,
        allows_own_credentials: false,
        limits: None,
        priority: 10,
        guardrails: Default::default(),
    }
}

fn integration(number: u128, ai_provider: &str, allow_all_models: bool) -> Integration {
    Integration {
        id: Uuid::from_u128(number).into(),
        organisation_id: ORGANISATION,
        workspace_id: None,
        slug: format!("account-{number}"),
        ai_provider_id: ai_provider.into(),
        configurations: json!({}),
        sealed: None,
        secret_mappings: json!([]),
        pricing_adjustments: None,
        allow_all_models,
        status: Status::Active,
    }
}

fn grant(integration: u128, workspace_id: WorkspaceId, enabled: bool) -> IntegrationWorkspace {
    IntegrationWorkspace {
        id: Uuid::new_v4(),
        organisation_id: ORGANISATION,
        integration_id: Uuid::from_u128(integration).into(),
        workspace_id,
        enabled,
        limits: None,
    }
}

fn provider(slug: &str, integration: u128, workspace_id: WorkspaceId) -> Provider {
    Provider {
        id: Uuid::new_v4().into(),
        organisation_id: ORGANISATION,
        workspace_id,
        integration_id: Uuid::from_u128(integration).into(),
        slug: slug.into(),
        status: AccessStatus::Active,
        limits: None,
        expires_at: None,
        model_config: None,
        sealed: None,
        concurrency: None,
        created_at: DateTime::from_timestamp(1_000_000, 0).unwrap(),
    }
}

fn model(integration: u128, slug: &str, enabled: bool, base: Option<&str>) -> IntegrationModel {
    IntegrationModel {
        id: Uuid::new_v4(),
        organisation_id: ORGANISATION,
        integration_id: Uuid::from_u128(integration).into(),
        slug: slug.into(),
        enabled,
        is_custom: base.is_some(),
        is_finetune: false,
        base_model_slug: base.map(str::to_owned),
        pricing_config: None,
        configurations: None,
        sealed: None,
    }
}

/// `prod` has all of Groq's models but one, and one of its own; `few` has two models of OpenAI's.
fn snapshot() -> Snapshot {
    let catalog = Catalog {
        integrations: vec![
            integration(10, "groq", true),
            integration(11, "openai", false),
            integration(12, "openai", true),
            integration(13, "openai", true),
        ],
        grants: vec![grant(10, HOME, true), grant(11, HOME, true), grant(12, HOME, false), grant(13, OTHER, true)],
        models: vec![
            model(10, BUNDLED["groq"][0].as_str(), false, None),
            model(10, "house-1", true, Some("llama")),
            model(11, "gpt-4o", true, None),
            model(11, "o1", true, None),
            model(11, "gpt-4", false, None),
        ],
        providers: vec![
            provider("prod", 10, HOME),
            provider("few", 11, HOME),
            provider("withdrawn", 12, HOME),
            provider("theirs", 13, OTHER),
            Provider { status: AccessStatus::Archived, ..provider("old", 11, HOME) },
            Provider { expires_at: Some(DateTime::UNIX_EPOCH), ..provider("late", 11, HOME) },
        ],
        ..Catalog::default()
    };
    Snapshot::with_rows(Vec::new(), vec![workspace(HOME), workspace(OTHER)]).with_catalog(catalog)
}

fn ids(models: &[Model]) -> Vec<&str> {
    models.iter().map(|model| model.id.as_str()).collect()
}

#[test]
fn a_workspace_sees_just_what_it_may_ask_for() {
    let snapshot = snapshot();
    let now = DateTime::from_timestamp(2_000_000, 0).unwrap();
    let models = available(&snapshot, &workspace(HOME), None, now);
    let few = available(&snapshot, &workspace(HOME), Some(&["few".into()]), now);
    assert_eq!(ids(&few), ["@few/gpt-4o", "@few/o1"]);
    let prod: Vec<&Model> = models.iter().filter(|model| model.provider == "prod").collect();
    assert_eq!(prod.len(), BUNDLED["groq"].len(), "one is off, one is added");
    assert!(!prod.iter().any(|model| model.slug == BUNDLED["groq"][0]));
    assert_eq!(models.len(), prod.len() + few.len(), "nothing of what is withdrawn, expired, archived or another's");
    let own = named(models.clone(), "@prod/house-1").unwrap();
    assert_eq!(
        serde_json::to_value(own).unwrap(),
        json!({ "id": "@prod/house-1", "slug": "house-1", "canonical_slug": "llama", "object": "model", "created": 1_000_000, "owned_by": "groq" })
    );
    assert_eq!(named(models.clone(), "gpt-4o").map(|model| model.id).as_deref(), Some("@few/gpt-4o"));
    assert_eq!(named(models, "@theirs/gpt-4o"), None);
    let theirs = available(&snapshot, &workspace(OTHER), None, now);
    assert!(theirs.iter().all(|model| model.provider == "theirs") && theirs.len() > 10);
}

#[test]
fn a_page_is_filtered_sorted_and_cut_and_says_how_many_there_are() {
    let now = DateTime::from_timestamp(2_000_000, 0).unwrap();
    let models = available(&snapshot(), &workspace(HOME), None, now);
    let (all, groq) = (models.len(), models.len() - 2);
    for (query, total, length, first) in [
        ("", all, all, "@few/gpt-4o"),
        ("provider=few", 2, 2, "@few/gpt-4o"),
        ("provider=%40few&order=desc", 2, 2, "@few/o1"),
        ("ai_service=openai", 2, 2, "@few/gpt-4o"),
        ("ai_service=openai,groq&limit=1", all, 1, "@few/gpt-4o"),
        ("ai_service=groq&sort=created&limit=3", groq, 3, models[2].id.as_str()),
        ("sort=provider&limit=1&offset=1", all, 1, "@few/o1"),
        ("sort=slug&provider=few&order=desc&unknown=1", 2, 2, "@few/o1"),
        ("provider=theirs", 0, 0, ""),
        ("offset=100000", all, 0, ""),
    ] {
        let page = page(models.clone(), &Query::parse(Some(query)).unwrap());
        let page = serde_json::to_value(&page).unwrap();
        let data = page["data"].as_array().unwrap();
        let found = data.first().and_then(|model| model["id"].as_str()).unwrap_or_default();
        assert_eq!((page["total"].as_u64(), data.len(), found), (Some(total as u64), length, first), "{query}");
        assert_eq!(page["object"], "list");
    }
    for query in ["limit=0", "limit=x", "offset=-1", "sort=price", "order=up"] {
        assert_eq!(Query::parse(Some(query)).unwrap_err().code.as_str(), "invalid_query", "{query}");
    }
}

#[test]
fn the_provider_is_asked_where_one_is_named_unless_the_catalogue_is_wanted() {
    let catalog =
        |slugs: &[&str]| ModelListSource::Catalog(Some(slugs.iter().map(|slug| (*slug).to_owned()).collect()));
    let targets = |targets: Value| json!({ "strategy": { "mode": "fallback" }, "targets": targets });
    let wanted = ("x-gateway-fetch-integrated-models", "true");
    for (config, pairs, expected) in [
        (json!({}), vec![], ModelListSource::Catalog(None)),
        (json!({ "retry": { "attempts": 1 } }), vec![], ModelListSource::Catalog(None)),
        (json!({}), vec![wanted], ModelListSource::Catalog(None)),
        (json!({}), vec![("x-gateway-provider", "@prod")], ModelListSource::Provider),
        (json!({}), vec![("x-gateway-provider", "openai")], ModelListSource::Provider),
        (
            json!({}),
            vec![("x-gateway-provider", "@prod"), ("x-gateway-fetch-integrated-models", "false")],
            ModelListSource::Provider,
        ),
        (json!({}), vec![("x-gateway-provider", "@prod"), wanted], catalog(&["prod"])),
        (json!({}), vec![("x-gateway-virtual-key", "prod"), wanted], catalog(&["prod"])),
        (json!({}), vec![("x-gateway-provider", "openai"), wanted], ModelListSource::Catalog(None)),
        (json!({ "provider": "@prod" }), vec![], ModelListSource::Provider),
        (json!({ "provider": "@prod", "fetch_integrated_models": true }), vec![], catalog(&["prod"])),
        (targets(json!([{ "provider": "@a" }, { "virtual_key": "b" }])), vec![wanted], catalog(&["a", "b"])),
        (targets(json!([{ "provider": "@a" }, { "passthrough": true }])), vec![wanted], ModelListSource::Catalog(None)),
    ] {
        let mut head = HeaderMap::new();
        for (name, value) in &pairs {
            head.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let aliases = Aliases::default();
        let headers = GatewayHeaders::from_headers(&head, &aliases).unwrap();
        // A config that says nothing is none.
        let config = match config == json!({}) {
            true => shared::config::ConfigNode::default(),
            false => parse_config(&config, Strictness::Inline, &ConfigLimits::default()).unwrap(),
        };
        let plan = compile(&config);
        assert_eq!(list_source(&headers, &plan).unwrap(), expected, "{config:?} {pairs:?}");
    }
}
