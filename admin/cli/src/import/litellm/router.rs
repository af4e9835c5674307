//! The config that sends each name that applications ask for to its deployments.

use super::deployments::{Deployment, Groups};
use super::settings::Settings;
use crate::import::result::Import;
use crate::import::source::Located;
use crate::tree::template::escaped;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What a group is called that takes every name.
const ANY: &str = "*";

pub fn write(groups: Groups, settings: Settings, import: &mut Import) {
    settings.write_budget(import);
    let names: Vec<String> = groups.groups.iter().map(|(name, _)| name.clone()).collect();
    let aliases = known_aliases(&settings, &groups, import);
    let fallbacks = known_fallbacks(&settings, &groups, import);
    if names.is_empty() {
        return;
    }
    let alone: BTreeMap<String, Value> = groups
        .groups
        .into_iter()
        .map(|(name, deployments)| (name, group_target(deployments, settings.breaker())))
        .collect();

    let mut targets = Vec::new();
    let mut conditions = Vec::new();
    for name in &names {
        let mut target = match fallbacks.get(name) {
            Some(others) => {
                let chain = std::iter::once(name).chain(others).map(|group| alone[group].clone());
                json!({ "strategy": { "mode": "fallback" }, "targets": chain.collect::<Value>() })
            }
            None => alone[name].clone(),
        };
        target["name"] = escaped(name).into();
        targets.push(target);
        if name != ANY {
            conditions.push(condition(name, name));
        }
    }
    conditions.extend(aliases.iter().map(|(alias, group)| condition(alias, group)));

    let mut config = settings.root;
    let is_choice = conditions.len() > 1 || names.iter().any(|name| name == ANY);
    if is_choice && !conditions.is_empty() {
        let default = names.iter().find(|name| *name == ANY).unwrap_or(&names[0]);
        let strategy = json!({ "mode": "conditional", "conditions": conditions, "default": escaped(default) });
        config.insert("strategy".to_owned(), strategy);
    } else {
        config.insert("strategy".to_owned(), json!({ "mode": "single" }));
    }
    config.insert("targets".to_owned(), targets.into());
    let mut spec = Map::new();
    spec.insert("name".to_owned(), "Models of LiteLLM".into());
    spec.insert("isDefault".to_owned(), 1.into());
    spec.insert("config".to_owned(), config.into());
    let slug = import.free_slug("config", "litellm");
    import.add("config", &slug, spec);
}

fn condition(asked: &str, group: &str) -> Value {
    json!({ "query": { "params.model": { "$eq": escaped(asked) } }, "then": escaped(group) })
}

/// One target, a choice by weight, or one choice after the other where entries have an order.
fn group_target(deployments: Vec<Deployment>, breaker: Option<Value>) -> Value {
    let mut by_order: BTreeMap<u64, Vec<Deployment>> = BTreeMap::new();
    for deployment in deployments {
        by_order.entry(deployment.order).or_default().push(deployment);
    }
    let mut choices: Vec<Value> = by_order.into_values().map(|group| choice(group, breaker.as_ref())).collect();
    if choices.len() == 1 {
        return choices.remove(0);
    }
    json!({ "strategy": { "mode": "fallback" }, "targets": choices })
}

fn choice(mut deployments: Vec<Deployment>, breaker: Option<&Value>) -> Value {
    let is_alone = deployments.len() == 1;
    let target = |deployment: Deployment| {
        let mut target = deployment.target;
        if let Some(breaker) = breaker {
            target.insert("cb_config".to_owned(), breaker.clone());
        }
        if !is_alone {
            target.insert("weight".to_owned(), deployment.weight.unwrap_or(1.0).into());
        }
        Value::Object(target)
    };
    if is_alone {
        return target(deployments.remove(0));
    }
    let targets: Vec<Value> = deployments.into_iter().map(target).collect();
    json!({ "strategy": { "mode": "loadbalance" }, "targets": targets })
}

/// Aliases of groups that there are.
fn known_aliases(settings: &Settings, groups: &Groups, import: &mut Import) -> Vec<(String, String)> {
    let mut aliases = Vec::new();
    for (alias, group) in &settings.aliases {
        if groups.has(&group.value) && !groups.has(alias) {
            import.mapped(group.location.clone(), format!("a condition for `{alias}`"));
            aliases.push((alias.clone(), group.value.clone()));
        } else {
            import.unmapped(group.location.clone(), "there is no such group, or the alias is the name of one");
        }
    }
    aliases
}

/// What follows each group, without those that there are not.
fn known_fallbacks(settings: &Settings, groups: &Groups, import: &mut Import) -> BTreeMap<String, Vec<String>> {
    let mut fallbacks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut follow = |group: &str, other: &Located<String>, import: &mut Import| {
        if groups.has(group) && groups.has(&other.value) && group != other.value {
            let others = fallbacks.entry(group.to_owned()).or_default();
            if !others.contains(&other.value) {
                others.push(other.value.clone());
            }
            import.mapped(other.location.clone(), format!("a target of the fallback of `{group}`"));
        } else {
            import.unmapped(other.location.clone(), "there is no such group");
        }
    };
    for (group, others) in &settings.fallbacks {
        for other in others {
            follow(group, other, import);
        }
    }
    for other in &settings.default_fallbacks {
        if groups.groups.iter().all(|(name, _)| *name == other.value) {
            import.unmapped(other.location.clone(), "there is no other group");
        }
        for (name, _) in groups.groups.iter().filter(|(name, _)| *name != other.value) {
            follow(name, other, import);
        }
    }
    fallbacks
}
