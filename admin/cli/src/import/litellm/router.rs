//! The config that sends each name that applications ask for to its deployments.

use super::deployments::{Deployment, Groups, SHARES};
use super::settings::Settings;
use crate::import::bounds;
use crate::import::free_names::FreeNames;
use crate::import::report::code;
use crate::import::result::Import;
use crate::import::source::{Located, Location};
use crate::tree::template::escaped;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What a group is called that takes every name.
const ANY: &str = "*";

/// Targets that one target of the root may have below it, at all levels.
const MAX_BELOW: usize = 50;
/// A group alone leaves room for the level that its fallbacks add.
const MAX_BELOW_GROUP: usize = MAX_BELOW - 1;
/// Targets of the root where conditions choose; one of them is for names that no group has.
const MAX_GROUPS: usize = 999;
/// Conditions of a config.
const MAX_CONDITIONS: usize = 2000;

pub fn write(mut groups: Groups, settings: Settings, import: &mut Import) {
    settings.write_budget(import);
    for (_, deployments) in groups.groups.iter_mut().skip(MAX_GROUPS) {
        for deployment in std::mem::take(deployments) {
            import.unmapped(deployment.location, format!("a config has at most {MAX_GROUPS} groups: it is left out"));
        }
    }
    groups.truncate(MAX_GROUPS);
    let names: Vec<String> = groups.groups.iter().map(|(name, _)| name.clone()).collect();
    let aliases = known_aliases(&settings, &groups, import);
    let fallbacks = known_fallbacks(&settings, &groups, import);
    if names.is_empty() {
        return;
    }
    let breaker = settings.breaker();
    let mut alone = BTreeMap::new();
    for (name, deployments) in groups.groups {
        alone.insert(name, group_target(deployments, breaker.as_ref(), import));
    }
    let mut targets = Vec::new();
    let mut conditions = Vec::new();
    let mut left_out = BTreeSet::new();
    for name in &names {
        let mut target = with_fallbacks(name, fallbacks.get(name), &alone, &mut left_out);
        target["name"] = escaped(name).into();
        targets.push(target);
        if name != ANY {
            conditions.push(condition(name, name));
        }
    }
    for location in left_out {
        let why = format!("left out where a group would have more than {MAX_BELOW} targets below it");
        import.unmapped(location, why);
    }
    for (alias, group) in aliases {
        match conditions.len() {
            ..MAX_CONDITIONS => {
                import.mapped(group.location, format!("a condition for {}", code(&alias)));
                conditions.push(condition(&alias, &group.value));
            }
            _ => import.unmapped(group.location, format!("a config has at most {MAX_CONDITIONS} conditions")),
        }
    }
    let mut config = settings.root;
    let strategy = strategy(conditions, &names, config.get("retry"), &mut targets);
    config.insert("strategy".to_owned(), strategy);
    config.insert("targets".to_owned(), targets.into());
    let mut spec = Map::new();
    spec.insert("name".to_owned(), "Models of LiteLLM".into());
    spec.insert("isDefault".to_owned(), 1.into());
    spec.insert("config".to_owned(), config.into());
    let slug = import.free_slug("config", "litellm");
    import.add("config", &slug, spec);
}

/// Chooses by the name that a request asks for. Names that no group has get a target that names no provider, so that
/// `@slug/model` leads where it says, and other names are resolved or refused as without a config.
fn strategy(conditions: Vec<Value>, names: &[String], retry: Option<&Value>, targets: &mut Vec<Value>) -> Value {
    if conditions.is_empty() {
        return json!({ "mode": "single" });
    }
    let any = names.iter().find(|name| *name == ANY).cloned();
    let default = any.unwrap_or_else(|| {
        let name = free_name("as asked", names);
        let attempts = retry.map_or(json!(0), |retry| retry["attempts"].clone());
        targets.push(json!({ "name": name, "retry": { "attempts": attempts } }));
        name
    });
    json!({ "mode": "conditional", "conditions": conditions, "default": escaped(&default) })
}

/// A name that no group has.
fn free_name(name: &str, taken: &[String]) -> String {
    let mut names = FreeNames::default();
    taken.iter().for_each(|name| names.reserve("target", name));
    names.take("target", name, " ")
}

/// A group's target and what follows it, as far as there is room.
fn with_fallbacks(
    name: &str,
    others: Option<&Vec<Located<String>>>,
    alone: &BTreeMap<String, Value>,
    left_out: &mut BTreeSet<Location>,
) -> Value {
    let own = alone[name].clone();
    let Some(others) = others else { return own };
    let mut below = 1 + targets_below(&own);
    let mut chain = vec![own];
    for other in others {
        let target = &alone[&other.value];
        let more = 1 + targets_below(target);
        if below + more > MAX_BELOW {
            left_out.insert(other.location.clone());
            continue;
        }
        below += more;
        chain.push(target.clone());
    }
    if chain.len() == 1 {
        return chain.remove(0);
    }
    json!({ "strategy": { "mode": "fallback" }, "targets": chain })
}

fn targets_below(target: &Value) -> usize {
    target["targets"].as_array().into_iter().flatten().map(|target| 1 + targets_below(target)).sum()
}

fn condition(asked: &str, group: &str) -> Value {
    json!({ "query": { "params.model": { "$eq": escaped(asked) } }, "then": escaped(group) })
}

/// One target, a choice by weight, or one choice after the other where entries have an order.
fn group_target(mut deployments: Vec<Deployment>, breaker: Option<&Value>, import: &mut Import) -> Value {
    deployments.sort_by_key(|deployment| deployment.order);
    let mut left = deployments.split_off(deployments.len().min(MAX_BELOW_GROUP));
    while below_group(&deployments) > MAX_BELOW_GROUP {
        left.extend(deployments.pop());
    }
    for deployment in left {
        let why = format!("a group has at most {MAX_BELOW_GROUP} targets below it: this one is left out");
        import.unmapped(deployment.location, why);
    }
    let mut choices = Vec::new();
    while let Some(order) = deployments.first().map(|deployment| deployment.order) {
        let later = deployments.split_off(deployments.partition_point(|deployment| deployment.order == order));
        choices.push(choice(std::mem::replace(&mut deployments, later), breaker));
    }
    if choices.len() == 1 {
        return choices.remove(0);
    }
    json!({ "strategy": { "mode": "fallback" }, "targets": choices })
}

/// Targets at all levels below the target of a group, whose deployments are in their order.
fn below_group(deployments: &[Deployment]) -> usize {
    let choices: Vec<_> = deployments.chunk_by(|one, other| one.order == other.order).collect();
    // Where there is one choice it is the group's target itself.
    let levels = if choices.len() == 1 { 0 } else { choices.iter().filter(|choice| choice.len() > 1).count() };
    deployments.len() + levels
}

fn choice(mut deployments: Vec<Deployment>, breaker: Option<&Value>) -> Value {
    let target = |deployment: Deployment, weight: Option<f64>| {
        let mut target = deployment.target;
        if let Some(breaker) = breaker {
            target.insert("cb_config".to_owned(), breaker.clone());
        }
        if let Some(weight) = weight {
            target.insert("weight".to_owned(), weight.into());
        }
        Value::Object(target)
    };
    if deployments.len() == 1 {
        return target(deployments.remove(0), None);
    }
    let weights = weights_of(&deployments);
    let targets = deployments.into_iter().zip(weights).map(|(deployment, weight)| target(deployment, Some(weight)));
    json!({ "strategy": { "mode": "loadbalance" }, "targets": targets.collect::<Value>() })
}

/// By weight where any has one, otherwise by requests, otherwise by tokens a minute.
fn weights_of(deployments: &[Deployment]) -> Vec<f64> {
    let shares = |at: usize| deployments.iter().map(|deployment| deployment.shares[at]).collect::<Vec<_>>();
    let is_given = |shares: &Vec<Option<f64>>| shares.iter().flatten().any(|share| *share > 0.0);
    bounds::weights(&(0..SHARES).map(shares).find(is_given).unwrap_or_else(|| shares(0)))
}

/// Aliases of groups that there are.
fn known_aliases(settings: &Settings, groups: &Groups, import: &mut Import) -> Vec<(String, Located<String>)> {
    let mut aliases: Vec<(String, Located<String>)> = Vec::new();
    let mut names = HashSet::new();
    for (alias, group) in &settings.aliases {
        if groups.has(&group.value) && !groups.has(alias) && names.insert(alias) {
            aliases.push((alias.clone(), group.clone()));
        } else {
            import.unmapped(group.location.clone(), "there is no such group, or the alias is the name of one");
        }
    }
    aliases
}

/// What follows each group, without those that there are not. Groups without fallbacks of their own have the default ones.
fn known_fallbacks(
    settings: &Settings,
    groups: &Groups,
    import: &mut Import,
) -> BTreeMap<String, Vec<Located<String>>> {
    let mut fallbacks: BTreeMap<String, Vec<Located<String>>> = BTreeMap::new();
    for (group, others) in &settings.fallbacks {
        for other in others {
            if !groups.has(group) || !groups.has(&other.value) || *group == other.value {
                import.unmapped(other.location.clone(), "there is no such group");
                continue;
            }
            import.mapped(other.location.clone(), format!("a target of the fallback of {}", code(group)));
            let others = fallbacks.entry(group.clone()).or_default();
            if others.iter().all(|known| known.value != other.value) {
                others.push(other.clone());
            }
        }
    }
    let own: HashSet<&String> = settings.fallbacks.iter().map(|(group, _)| group).collect();
    let without: Vec<&String> = groups.groups.iter().map(|(name, _)| name).filter(|name| !own.contains(name)).collect();
    let mut default: Vec<Located<String>> = Vec::new();
    for other in &settings.default_fallbacks {
        if !groups.has(&other.value) || without.iter().all(|name| **name == other.value) {
            import.unmapped(other.location.clone(), "there is no such group, or none that it could follow");
        } else {
            let place = "a target of the fallback of each group that has no other fallbacks";
            import.mapped(other.location.clone(), place);
            if default.len() < MAX_BELOW && default.iter().all(|known| known.value != other.value) {
                default.push(other.clone());
            }
        }
    }
    for name in without {
        let others: Vec<_> = default.iter().filter(|other| other.value != *name).cloned().collect();
        if !others.is_empty() {
            fallbacks.insert(name.clone(), others);
        }
    }
    fallbacks
}
