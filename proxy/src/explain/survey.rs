//! Where a request would go, without going there: every target of its plan, in the order they would be tried, each with
//! the reasons. Nothing is drawn, counted or taken from a budget.

use crate::routing::plan::{Branch, Plan};
use crate::routing::{RequestFacts, balance, query};
use std::time::Instant;

/// One target of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Stop {
    /// Its index in the plan.
    pub at: usize,
    /// Whether the request can come to it at all.
    pub is_reached: bool,
    /// How much of such traffic comes this way, where weights decide.
    pub share: f64,
    /// One sentence for each decision above it, outermost first.
    pub why: Vec<String>,
}

/// What the decisions depend on.
pub struct SurveyInputs<'v> {
    pub facts: RequestFacts<'v>,
    pub scope: &'v [u8],
    pub now: Instant,
    pub unix_seconds: u64,
}

/// The targets that are reached come first, in their order.
pub fn survey(plan: &Plan, view: &SurveyInputs<'_>) -> Vec<Stop> {
    let mut stops = Vec::new();
    let begun = Stop { at: 0, is_reached: true, share: 1.0, why: Vec::new() };
    look(plan, view, begun, &mut stops);
    stops.sort_by_key(|stop| !stop.is_reached);
    stops
}

fn look(plan: &Plan, view: &SurveyInputs<'_>, here: Stop, stops: &mut Vec<Stop>) {
    let node = plan.node(here.at);
    let is_open = |target: usize| plan.is_open(target, view.now);
    let mut go = |at: usize, is_reached: bool, share: f64, why: String| {
        let why = here.why.iter().cloned().chain([format!("{}: {why}", node.path)]).collect();
        look(plan, view, Stop { at, is_reached: here.is_reached && is_reached, share: here.share * share, why }, stops);
    };
    match &node.branch {
        Branch::Leaf(_) => stops.push(here),
        Branch::Single(targets) => {
            let chosen = targets.iter().find(|target| !is_open(**target)).or(targets.first());
            for target in targets {
                match (Some(target) == chosen, is_open(*target)) {
                    (true, false) => go(*target, true, 1.0, "single asks its first target".into()),
                    (true, true) => {
                        go(*target, true, 1.0, "single asks its first target; every circuit is open".into())
                    }
                    (false, true) => go(*target, false, 0.0, "its circuit is open".into()),
                    (false, false) => go(*target, false, 0.0, "single asks one target only".into()),
                }
            }
        }
        Branch::Fallback { statuses, targets } => {
            let is_bypassed = targets.iter().all(|target| is_open(*target));
            let failure = match statuses {
                Some(statuses) => format!("answers with one of {statuses:?}"),
                None => "answers with anything but 2xx".to_owned(),
            };
            let mut before: Option<usize> = None;
            for target in targets {
                if is_open(*target) && !is_bypassed {
                    go(*target, false, 0.0, "its circuit is open".into());
                    continue;
                }
                match before {
                    None => go(*target, true, 1.0, "a fallback begins with its first healthy target".into()),
                    Some(before) => {
                        go(*target, true, 1.0, format!("the next when {} {failure}", plan.node(before).path))
                    }
                }
                before = Some(*target);
            }
        }
        Branch::Balance { targets, sticky } => {
            let weight = |target: usize| plan.node(target).weight;
            let weighty: Vec<usize> = targets.iter().copied().filter(|target| weight(*target) > 0.0).collect();
            let closed: Vec<usize> = weighty.iter().copied().filter(|target| !is_open(*target)).collect();
            let usable = if closed.is_empty() { weighty } else { closed };
            let total: f64 = usable.iter().map(|target| weight(*target)).sum();
            let pinned = sticky.as_ref().and_then(|sticky| {
                let key = balance::sticky_key(sticky, view.scope, &node.path, &view.facts, view.unix_seconds)?;
                let weights: Vec<f64> = usable.iter().map(|target| weight(*target)).collect();
                let names = usable.iter().map(|target| &*plan.node(*target).path);
                balance::by_key(&weights, names, &key).map(|index| (usable[index], sticky.hash_fields.join(", ")))
            });
            for target in targets.iter().copied() {
                match &pinned {
                    _ if weight(target) <= 0.0 => go(target, false, 0.0, "it has no weight".into()),
                    _ if !usable.contains(&target) => go(target, false, 0.0, "its circuit is open".into()),
                    Some((chosen, fields)) if *chosen == target => {
                        go(target, true, 1.0, format!("requests that agree in {fields} stick to it"));
                    }
                    Some((_, fields)) => {
                        go(target, false, 0.0, format!("requests that agree in {fields} stick to another"))
                    }
                    None => {
                        let share = weight(target) / total;
                        go(target, true, share, format!("its weight is {:.1} % of the group's", share * 100.0));
                    }
                }
            }
        }
        Branch::Conditional { conditions, default } => {
            let met = conditions.iter().position(|(query, _)| query::holds(query, &view.facts));
            let chosen = met.map(|index| conditions[index].1).or(*default);
            let mut targets: Vec<usize> = conditions.iter().map(|(_, target)| *target).chain(*default).collect();
            targets.sort_unstable();
            targets.dedup();
            for target in targets {
                match met {
                    _ if Some(target) != chosen => go(target, false, 0.0, "its condition does not hold first".into()),
                    Some(index) => go(target, true, 1.0, format!("condition {index} is the first that holds")),
                    None => go(target, true, 1.0, "no condition holds, and it is the default".into()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::body::Fields;
    use crate::routing::clock::Still;
    use crate::routing::course::RoutingInputs;
    use crate::routing::plan::compile;
    use crate::routing::{AfterAttempt, AttemptResult, Course};
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};
    use shared::config::{Strictness, parse_config};
    use shared::settings::config_limits::ConfigLimits;

    fn plan(config: &Value) -> Plan {
        compile(
            &parse_config(config, Strictness::Inline, &ConfigLimits::default())
                .unwrap_or_else(|faults| panic!("{faults:?}")),
        )
    }

    fn surveyed(plan: &Plan, metadata: &Value) -> Vec<Stop> {
        let (metadata, params) = (metadata.as_object().cloned().unwrap(), Fields::default());
        let facts = RequestFacts { metadata: &metadata, params: &params, pathname: "/" };
        survey(plan, &SurveyInputs { facts, scope: b"w", now: Instant::now(), unix_seconds: 0 })
    }

    fn described(plan: &Plan, stops: &[Stop]) -> Vec<(String, bool, f64)> {
        stops.iter().map(|stop| (plan.node(stop.at).path.to_string(), stop.is_reached, stop.share)).collect()
    }

    #[test]
    fn every_target_is_told_with_its_reasons() {
        let plan = plan(&json!({ "strategy": { "mode": "fallback", "on_status_codes": [429] }, "targets": [
            { "strategy": { "mode": "conditional", "conditions": [{ "query": { "metadata.t": 1 }, "then": "a" }], "default": "b" },
              "targets": [{ "name": "a", "provider": "@a" }, { "name": "b", "provider": "@b" }] },
            { "strategy": { "mode": "loadbalance" },
              "targets": [{ "provider": "@c", "weight": 3 }, { "provider": "@d", "weight": 0 }, { "provider": "@e" }] },
        ] }));
        let stops = surveyed(&plan, &json!({ "t": 1 }));
        let expected = [
            ("config.targets[0].targets[0]", true, 1.0),
            ("config.targets[1].targets[0]", true, 0.75),
            ("config.targets[1].targets[2]", true, 0.25),
            ("config.targets[0].targets[1]", false, 0.0),
            ("config.targets[1].targets[1]", false, 0.0),
        ];
        let expected: Vec<_> =
            expected.iter().map(|(path, reached, share)| ((*path).to_owned(), *reached, *share)).collect();
        assert_eq!(described(&plan, &stops), expected);
        assert_eq!(stops[0].why[1], "config.targets[0]: condition 0 is the first that holds");
        assert!(stops[1].why[0].contains("[429]") && stops[1].why[1].contains("75.0 %"), "{:?}", stops[1].why);
        let otherwise = surveyed(&plan, &json!({}));
        assert_eq!(plan.node(otherwise[0].at).path.as_ref(), "config.targets[0].targets[1]");
    }

    #[test]
    fn an_open_circuit_is_left_out_and_said_to_be_so() {
        let plan = plan(
            &json!({ "strategy": { "mode": "fallback", "cb_config": { "failure_threshold": 1, "cooldown_interval": 30000 } },
            "targets": [{ "provider": "@a" }, { "provider": "@b" }] }),
        );
        plan.leaves().next().unwrap().breaker.as_ref().unwrap().record(500, Instant::now());
        let stops = surveyed(&plan, &json!({}));
        assert_eq!(described(&plan, &stops)[0].0, "config.targets[1]");
        assert_eq!((stops[1].is_reached, stops[1].why[0].as_str()), (false, "config: its circuit is open"));
    }

    fn a_config() -> impl Strategy<Value = Value> {
        let leaf = (0.1f64..9.0).prop_map(|weight| json!({ "provider": "@p", "weight": weight }));
        leaf.prop_recursive(3, 16, 4, |inner| {
            let mode = prop_oneof![Just("fallback"), Just("loadbalance"), Just("single")];
            (mode, prop::collection::vec(inner, 1..4))
                .prop_map(|(mode, targets)| json!({ "strategy": { "mode": mode }, "targets": targets }))
        })
    }

    proptest! {
        #[test]
        fn a_request_goes_only_where_the_survey_says_and_in_that_order(config in a_config(), luck in 0.0f64..1.0) {
            let plan = plan(&config);
            let surveyed: Vec<usize> = surveyed(&plan, &json!({})).iter().filter(|stop| stop.is_reached).map(|stop| stop.at).collect();
            let (metadata, params) = (Map::new(), Fields::default());
            let mut chance = || luck;
            let facts = RequestFacts { metadata: &metadata, params: &params, pathname: "/" };
            let clock = Still::at(Instant::now());
            let mut moment = RoutingInputs { facts, scope: b"w", clock: &clock, chance: &mut chance };
            let mut course = Course::begin(&plan, &mut moment).unwrap();
            let mut left = surveyed.iter();
            loop {
                let path = &course.node().path;
                prop_assert!(left.any(|at| plan.node(*at).path == *path), "{path} is not next in {surveyed:?}");
                let failed = AttemptResult { status: 500, ..AttemptResult::default() };
                if course.after(&failed, &mut moment).unwrap() == AfterAttempt::Deliver {
                    break;
                }
            }
        }
    }
}
