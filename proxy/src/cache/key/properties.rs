//! Two requests meet if and only if they are equal, whatever they are made of: drawn from few letters, so that parts of one look
//! like parts of another and equal ones come up too.

use super::*;
use proptest::prelude::*;
use serde_json::json;

#[derive(Debug, Clone, PartialEq)]
struct Drawn {
    workspace: u128,
    endpoint: String,
    provider: String,
    address: [String; 2],
    model: Option<String>,
    placed: Vec<(String, String)>,
    query: Option<String>,
    body: Value,
    asked: Option<Value>,
    is_strict: bool,
    hooks: Vec<u8>,
    partition: DrawnPartition,
}

#[derive(Debug, Clone, PartialEq)]
enum DrawnPartition {
    Namespace(String),
    Request { metadata: Map<String, Value>, target: Option<String>, headers: Vec<(String, String)> },
}

/// How a body is delivered, which is no part of what is asked for.
#[derive(Debug, Clone)]
struct Delivery {
    is_stream: Option<bool>,
    has_options: bool,
    is_turned: bool,
}

fn word() -> impl Strategy<Value = String> {
    "[ab/]{0,2}"
}

fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec((word(), word()), 0..3)
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![word().prop_map(Value::from), (0i64..3).prop_map(Value::from), Just(json!(null))].boxed();
    let nested = prop_oneof![value.clone(), prop::collection::vec(value, 0..3).prop_map(Value::from)];
    prop::collection::vec((word(), nested), 0..3).prop_map(|members| members.into_iter().collect())
}

fn partition() -> impl Strategy<Value = DrawnPartition> {
    prop_oneof![
        word().prop_map(DrawnPartition::Namespace),
        (object(), prop::option::of(word()), pairs())
            .prop_map(|(metadata, target, headers)| { DrawnPartition::Request { metadata, target, headers } }),
    ]
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let place = (0u128..2, word(), word(), [word(), word()], prop::option::of(word()), pairs());
    let rest = (prop::option::of(word()), object(), prop::option::of(object()), any::<bool>(), word(), partition());
    (place, rest).prop_map(|(place, rest)| {
        let (workspace, endpoint, provider, address, model, placed) = place;
        let (query, body, asked, is_strict, hooks, partition) = rest;
        let (body, asked, hooks) = (body.into(), asked.map(Value::from), hooks.into_bytes());
        Drawn { workspace, endpoint, provider, address, model, placed, query, body, asked, is_strict, hooks, partition }
    })
}

fn delivery() -> impl Strategy<Value = Delivery> {
    (prop::option::of(any::<bool>()), any::<bool>(), any::<bool>())
        .prop_map(|(is_stream, has_options, is_turned)| Delivery { is_stream, has_options, is_turned })
}

/// The body as a client writes it.
fn written(body: &Value, delivery: &Delivery) -> Vec<u8> {
    let mut members: Vec<(String, Value)> = body.as_object().unwrap().clone().into_iter().collect();
    members.extend(delivery.is_stream.map(|is_stream| ("stream".to_owned(), json!(is_stream))));
    members.extend(delivery.has_options.then(|| ("stream_options".to_owned(), json!({ "include_usage": true }))));
    if delivery.is_turned {
        members.reverse();
    }
    let members: Vec<String> = members.iter().map(|(name, value)| format!("{} : {value}", json!(name))).collect();
    format!(" {{ {} }}\n", members.join(" , ")).into_bytes()
}

fn key_of(drawn: &Drawn, delivery: &Delivery) -> (Uuid, [u8; 32]) {
    let digest = |body: &Value| BodyDigest::of(&written(body, delivery)).unwrap();
    let mut of_request: Vec<(&str, &[u8])> = Vec::new();
    let mut of_target = None;
    let partition = match &drawn.partition {
        DrawnPartition::Namespace(name) => Partition::Namespace(name),
        DrawnPartition::Request { metadata, target, headers } => {
            of_request = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
            of_target = target.as_deref();
            Partition::Metadata(metadata)
        }
    };
    let inputs = KeyInputs {
        tenant: Tenant::test(1, drawn.workspace),
        endpoint: &drawn.endpoint,
        provider: &drawn.provider,
        address: [&drawn.address[0], &drawn.address[1]],
        model: drawn.model.as_deref(),
        placed: &drawn.placed,
        query: drawn.query.as_deref(),
        body: digest(&drawn.body),
        asked: drawn.asked.as_ref().map(digest),
        is_strict: drawn.is_strict,
        hooks: &drawn.hooks,
        target: of_target,
        headers: &of_request,
        partition,
    };
    let text = KeyText::new(&inputs).unwrap();
    (text.tenant.workspace, text.digest())
}

/// The first with one thing taken from the second, so that they differ in that alone, or not at all.
fn with_one_of(first: &Drawn, second: Drawn, which: usize) -> Drawn {
    let mut mixed = first.clone();
    match which {
        0 => mixed.workspace = second.workspace,
        1 => mixed.endpoint = second.endpoint,
        2 => mixed.provider = second.provider,
        3 => mixed.address = second.address,
        4 => mixed.model = second.model,
        5 => mixed.placed = second.placed,
        6 => mixed.query = second.query,
        7 => mixed.body = second.body,
        8 => mixed.asked = second.asked,
        9 => mixed.is_strict = second.is_strict,
        10 => mixed.hooks = second.hooks,
        _ => mixed.partition = second.partition,
    }
    mixed
}

proptest! {
    #[test]
    fn requests_meet_if_they_are_equal_and_only_then(
        first in drawn(),
        second in drawn(),
        deliveries in [delivery(), delivery()],
    ) {
        let (one, other) = (key_of(&first, &deliveries[0]), key_of(&second, &deliveries[1]));
        prop_assert_eq!(one == other, first == second);
        prop_assert_eq!(key_of(&first, &deliveries[1]), one);
    }

    #[test]
    fn a_change_of_any_one_thing_keeps_requests_apart(
        first in drawn(),
        second in drawn(),
        which in 0usize..12,
        deliveries in [delivery(), delivery()],
    ) {
        let changed = with_one_of(&first, second, which);
        let (one, other) = (key_of(&first, &deliveries[0]), key_of(&changed, &deliveries[1]));
        prop_assert_eq!(one == other, first == changed, "{}", which);
    }
}
