//! Which limits apply to a request.

use super::*;
use crate::identity::identify::Principal;
use serde_json::{Map, Value, json};
use shared::identity::api_key::KeyHash;
use shared::model::policy::PolicyTarget;
use shared::model::{
    AccessStatus, ApiKey, KeyKind, PolicyEntity, Provider, RateLimitsPolicy, Status, UsageLimitsPolicy, Workspace,
};
use shared::providers::Family;
use std::sync::Arc;

const BOTH: Switches = Switches { things: true, policies: true, unknown_price: UnknownPrice::Allow };

fn limits(value: u64) -> Option<Arc<ObjectLimits>> {
    let rate = ObjectRate { kind: RateKind::Requests, unit: RateUnit::Rpm, value };
    Some(Arc::new(ObjectLimits { rates: vec![rate], budget: None }))
}

fn caller() -> Principal {
    let workspace = Workspace {
        id: Uuid::from_u128(1).into(),
        organisation_id: Uuid::from_u128(9).into(),
        slug: "home".into(),
        status: Status::Active,
        metadata: None,
        is_metrics_only: false,
        hides_costs: false,
        finds_plain_models: false,
        allows_own_credentials: false,
        limits: limits(20),
        priority: 10,
        guardrails: Default::default(),
    };
    let key = ApiKey {
        id: Uuid::from_u128(2).into(),
        organisation_id: workspace.organisation_id,
        workspace_id: Some(workspace.id),
        user_id: None,
        kind: KeyKind::WorkspaceService,
        hash: KeyHash([0; 32]),
        scopes: [].into(),
        status: AccessStatus::Active,
        expires_at: None,
        previous: None,
        limits: limits(10),
        defaults: None,
    };
    Principal { key: key.into(), workspace: workspace.into(), token: None }
}

fn policy(id: u128, workspace: u128, conditions: Value, group_by: Value) -> RateLimitsPolicy {
    RateLimitsPolicy {
        id: Uuid::from_u128(id).into(),
        organisation_id: Uuid::from_u128(9).into(),
        workspace_id: Uuid::from_u128(workspace).into(),
        name: None,
        rule: serde_json::from_value(json!({ "conditions": conditions, "group_by": group_by })).unwrap(),
        kind: RateKind::Tokens,
        unit: RateUnit::Rph,
        value: Amount::from_float(5.9).unwrap(),
        dry_run: false,
        status: Status::Active,
        counters_since: DateTime::default(),
    }
}

fn caps(wanted: &[ApplicableLimit]) -> Vec<(&'static str, u64)> {
    wanted.iter().map(|one| (one.whose.scope(), one.limit.cap)).collect()
}

#[test]
fn key_workspace_and_matching_policies_speak_before_routing_and_the_rest_per_attempt() {
    let user = json!([{ "key": "metadata.team", "value": ["a", "b"], "excludes": "b" }]);
    let model = json!([{ "key": "model", "value": "@mine/gpt-4o" }]);
    let by_key = json!([{ "key": "api_key" }]);
    let snapshot = Snapshot::empty().with_policies(
        vec![
            policy(1, 1, user.clone(), by_key.clone()),
            policy(2, 1, model, by_key.clone()),
            policy(3, 7, user.clone(), by_key),
            RateLimitsPolicy { status: Status::Archived, ..policy(4, 1, user.clone(), json!([])) },
            policy(5, 1, user, json!([{ "key": "metadata.absent" }])),
        ],
        Vec::new(),
    );
    let (caller, clock) = (caller(), DateTime::default);
    let things = [("api_key", 10), ("workspace", 20)];
    for (team, switches, expected) in [
        ("a", BOTH, vec![things[0], things[1], ("policy", 5)]),
        ("b", BOTH, things.to_vec()),
        ("a", Switches { things: false, ..BOTH }, vec![("policy", 5)]),
        ("a", Switches { policies: false, ..BOTH }, things.to_vec()),
    ] {
        let metadata: Map<String, Value> = [("team".to_owned(), json!(team))].into_iter().collect();
        let request = LimitedRequest {
            caller: &caller,
            metadata: &metadata,
            config: None,
            family: None,
            target: PolicyTarget::Llm,
            attempted: None,
            is_trusted_only: false,
        };
        assert_eq!(caps(&limits_of_request(&request, &snapshot, switches, clock)), expected, "{team} {switches:?}");
    }
    let metadata = Map::new();
    let request = LimitedRequest {
        caller: &caller,
        metadata: &metadata,
        config: None,
        family: None,
        target: PolicyTarget::Llm,
        attempted: None,
        is_trusted_only: false,
    };
    let provider = Arc::new(Provider {
        id: Uuid::from_u128(3).into(),
        organisation_id: Uuid::from_u128(9).into(),
        workspace_id: Uuid::from_u128(1).into(),
        integration_id: Uuid::from_u128(4).into(),
        slug: "mine".into(),
        status: AccessStatus::Active,
        limits: Some(Arc::new(
            serde_json::from_value(json!({
                "rates": [{ "type": "requests", "unit": "rpd", "value": 7 }], "budget": { "credit_limit": 0.5 },
            }))
            .unwrap(),
        )),
        expires_at: None,
        model_config: None,
        sealed: None,
        concurrency: None,
        created_at: DateTime::default(),
    });
    for (model, expected) in [
        ("gpt-4o", vec![("virtual_key", 7), ("virtual_key", 50_000_000_000), ("policy", 5)]),
        ("other", vec![("virtual_key", 7), ("virtual_key", 50_000_000_000)]),
    ] {
        let attempted = Attempted { provider: Some(&provider), service: "openai", model: Some(model), mcp: None };
        assert_eq!(caps(&limits_of_attempt(&request, &attempted, &snapshot, BOTH)), expected, "{model}");
    }
}

#[test]
fn a_tokens_budget_begins_with_its_period() {
    let now = "2026-02-19T15:00:00Z".parse().unwrap();
    for (claim, begins) in [
        (json!({ "credit_limit": 5 }), "1970-01-01"),
        (json!({ "credit_limit": 5, "periodic_reset": "weekly" }), "2026-02-15"),
        (json!({ "credit_limit": 5, "periodic_reset": "monthly" }), "2026-02-01"),
        (json!({ "credit_limit": 5, "periodic_reset_days": 1 }), "2026-02-19"),
    ] {
        let limit: UsageLimit = serde_json::from_value(claim.clone()).unwrap();
        assert_eq!(budget_of_token(&limit, now).last_reset_at.date_naive().to_string(), begins, "{claim}");
    }
}

#[test]
fn what_was_found_before_holds_until_a_row_is_another() {
    let policies = |conditions: Value| {
        Snapshot::empty().with_policies(vec![policy(1, 1, conditions, json!([{ "key": "api_key" }]))], Vec::new())
    };
    let by_caller = policies(json!([{ "key": "workspace_id", "value": "home" }]));
    let found = |caller: &Principal, snapshot: &Snapshot, switches, team: &str| {
        let metadata: Map<String, Value> = [("team".to_owned(), json!(team))].into_iter().collect();
        let request = LimitedRequest {
            caller,
            metadata: &metadata,
            config: None,
            family: None,
            target: PolicyTarget::Llm,
            attempted: None,
            is_trusted_only: false,
        };
        cached_limits_of_request(&request, snapshot, switches, DateTime::default)
    };
    let (one, key, workspace, policy) = (caller(), ("api_key", 10), ("workspace", 20), ("policy", 5));
    let first = found(&one, &by_caller, BOTH, "a");
    assert_eq!(caps(&first), [key, workspace, policy]);
    assert!(Arc::ptr_eq(&first, &found(&one, &by_caller, BOTH, "b")), "it was looked for again");
    let things = Switches { policies: false, ..BOTH };
    let key_of = |value| Arc::new(ApiKey { limits: limits(value), ..(*one.key).clone() });
    let other = Principal { key: key_of(11), ..one.clone() };
    let unlimited = Arc::new(Workspace { limits: None, ..(*one.workspace).clone() });
    let moved = Principal { workspace: unlimited, ..one.clone() };
    let none = Snapshot::empty();
    for (caller, snapshot, switches, expected) in [
        (&one, &by_caller, things, vec![key, workspace]),
        (&one, &by_caller, Switches { things: false, ..BOTH }, vec![policy]),
        (&other, &by_caller, BOTH, vec![("api_key", 11), workspace, policy]),
        (&moved, &by_caller, BOTH, vec![key, policy]),
        (&one, &none, BOTH, vec![key, workspace]),
    ] {
        // Each differs in one thing from what is remembered then.
        assert_eq!(caps(&found(&one, &by_caller, BOTH, "a")), [key, workspace, policy]);
        assert_eq!(caps(&found(caller, snapshot, switches, "a")), expected);
    }
    let by_team = policies(json!([{ "key": "metadata.team", "value": "a" }]));
    assert_eq!(caps(&found(&one, &by_team, BOTH, "a")), [key, workspace, policy]);
    assert_eq!(caps(&found(&one, &by_team, BOTH, "b")), [key, workspace]);
}

#[test]
fn a_group_that_is_reset_alone_begins_anew_although_its_limits_were_found_before() {
    let spend = UsageLimitsPolicy {
        id: Uuid::from_u128(6).into(),
        organisation_id: Uuid::from_u128(9).into(),
        workspace_id: Uuid::from_u128(1).into(),
        name: None,
        rule: serde_json::from_value(json!({ "conditions": [], "group_by": [{ "key": "api_key" }] })).unwrap(),
        kind: BudgetKind::Tokens,
        credit_limit: 5.into(),
        strict: false,
        unknown_price: None,
        dry_run: false,
        status: Status::Active,
        last_reset_at: DateTime::default(),
    };
    let (caller, metadata) = (caller(), Map::new());
    let snapshot = Snapshot::empty().with_policies(Vec::new(), vec![spend]);
    let begins = || {
        let request = LimitedRequest {
            caller: &caller,
            metadata: &metadata,
            config: None,
            family: None,
            target: PolicyTarget::Llm,
            attempted: None,
            is_trusted_only: false,
        };
        let found = cached_limits_of_request(&request, &snapshot, BOTH, DateTime::default);
        found.iter().find_map(|one| match one.limit.kind {
            LimitKind::Budget { since, .. } => Some(since),
            LimitKind::Rate(_) => None,
        })
    };
    assert_eq!(begins(), Some(0));
    snapshot.remember(PolicyEntity {
        id: Uuid::from_u128(7),
        policy_id: Uuid::from_u128(6).into(),
        value_key: format!("api_key:{}", caller.key.id),
        last_reset_at: DateTime::from_timestamp_micros(5),
    });
    assert_eq!(begins(), Some(5));
}

#[test]
fn a_policy_without_conditions_and_groups_is_one_counter_of_everybody() {
    let everybody = policy(1, 1, json!([]), json!([]));
    let prefix = everybody.scope_prefix();
    let snapshot = Snapshot::empty().with_policies(vec![everybody], Vec::new());
    let (caller, metadata) = (caller(), Map::new());
    for (family, target) in
        [(Some(Family::Chat), PolicyTarget::Llm), (None, PolicyTarget::Llm), (None, PolicyTarget::McpTools)]
    {
        let request = LimitedRequest {
            caller: &caller,
            metadata: &metadata,
            config: None,
            family,
            target,
            attempted: None,
            is_trusted_only: false,
        };
        let switches = Switches { things: false, ..BOTH };
        let found = limits_of_request(&request, &snapshot, switches, DateTime::default);
        assert_eq!(caps(&found), [("policy", 5)], "{family:?} {target:?}");
        assert_eq!(found[0].limit.counter.scope_id(), prefix, "{family:?} {target:?}");
    }
}

#[test]
fn a_target_leaves_the_requests_of_the_other_alone() {
    let of = |id, target: PolicyTarget| {
        let mut policy = policy(id, 1, json!([]), json!([]));
        policy.rule.target = Some(target);
        policy
    };
    let policies = vec![of(1, PolicyTarget::Llm), of(2, PolicyTarget::McpTools), policy(3, 1, json!([]), json!([]))];
    let snapshot = Snapshot::empty().with_policies(policies, Vec::new());
    let (caller, metadata) = (caller(), Map::new());
    for (target, expected) in [(PolicyTarget::Llm, [1, 3]), (PolicyTarget::McpTools, [2, 3])] {
        let request = LimitedRequest {
            caller: &caller,
            metadata: &metadata,
            config: None,
            family: None,
            target,
            attempted: None,
            is_trusted_only: false,
        };
        let switches = Switches { things: false, ..BOTH };
        let found = cached_limits_of_request(&request, &snapshot, switches, DateTime::default);
        let ids: Vec<u128> = found
            .iter()
            .filter_map(|one| match &one.whose {
                LimitOwner::RatePolicy(policy) => Some(policy.id.uuid().as_u128()),
                _ => None,
            })
            .collect();
        assert_eq!(ids, expected, "{target:?}");
    }
}
