//! One decision of a config: why a target of a group was tried, or was not.

use super::TargetVisit;
use shared::config::{ConfigNode, Strategy, StrategyMode};

pub struct RoutingReason {
    pub share: f64,
    pub text: String,
}

impl RoutingReason {
    fn whole(text: impl Into<String>) -> Self {
        Self { share: 1.0, text: text.into() }
    }
}

/// Why the target at `index` of this group came to its turn, or did not.
pub fn reason(group: &ConfigNode, index: usize, options: &[String], visits: &[Option<TargetVisit>]) -> RoutingReason {
    if visits.iter().all(Option::is_none) {
        return RoutingReason::whole("no target of this group was asked");
    }
    match group.strategy.as_ref().map(|strategy| (strategy.mode, strategy)) {
        Some((StrategyMode::Fallback, strategy)) => RoutingReason::whole(fallback(strategy, index, options, visits)),
        Some((StrategyMode::LoadBalance, strategy)) => balance(group, strategy, index, visits),
        Some((StrategyMode::Conditional, strategy)) => RoutingReason::whole(condition(group, strategy, index, visits)),
        Some((StrategyMode::Single, _)) | None => RoutingReason::whole(match visits[index] {
            Some(_) => "single asks its first healthy target",
            None => "single asks one target only",
        }),
    }
}

fn fallback(strategy: &Strategy, index: usize, options: &[String], visits: &[Option<TargetVisit>]) -> String {
    let Some(visit) = visits[index] else {
        let is_passed = visits[index + 1..].iter().any(Option::is_some);
        return match is_passed {
            true => "it was passed over: its circuit was open, or it could not be asked".to_owned(),
            false => "it was not needed, or the status before it was not one to go on with".to_owned(),
        };
    };
    let before = visits.iter().zip(options).filter_map(|(other, option)| Some(((*other)?, option)));
    let before = before.filter(|(other, _)| other.first < visit.first).max_by_key(|(other, _)| other.first);
    match (before, &strategy.on_status_codes) {
        (None, _) => "a fallback begins with its first healthy target".to_owned(),
        (Some((before, option)), Some(codes)) => {
            format!("the next after {option} ended with {}, which is one of {codes:?}", before.status)
        }
        (Some((before, option)), None) => format!("the next after {option} ended with {}", before.status),
    }
}

fn balance(group: &ConfigNode, strategy: &Strategy, index: usize, visits: &[Option<TargetVisit>]) -> RoutingReason {
    let weight = |target: &ConfigNode| target.weight.unwrap_or(1.0);
    let total: f64 = group.targets.iter().map(weight).sum();
    let own = weight(&group.targets[index]);
    let share = if total > 0.0 { own / total } else { 0.0 };
    let sticky = strategy.sticky.as_ref().filter(|sticky| sticky.enabled);
    let text = match (visits[index], sticky) {
        (None, _) if own <= 0.0 => "it has no weight".to_owned(),
        (None, _) => "another target of the group was chosen".to_owned(),
        (Some(_), Some(sticky)) => {
            format!("chosen by {}, which stays with one target", sticky.hash_fields.join(", "))
        }
        (Some(_), None) => format!("drawn by its weight, {:.1} % of the group's", share * 100.0),
    };
    RoutingReason { share, text }
}

fn condition(group: &ConfigNode, strategy: &Strategy, index: usize, visits: &[Option<TargetVisit>]) -> String {
    if visits[index].is_none() {
        return "the conditions led to another target".to_owned();
    }
    let name = group.targets[index].name.as_deref();
    let leading = strategy.conditions.iter().enumerate().filter(|(_, one)| Some(one.then.as_str()) == name);
    let leading: Vec<String> = leading.map(|(number, _)| format!("condition {number}")).collect();
    let is_default = name.is_some() && strategy.default.as_deref() == name;
    let default = is_default.then(|| "the default, when no condition holds".to_owned());
    match leading.into_iter().chain(default).collect::<Vec<_>>().join(", or ") {
        ways if ways.is_empty() => "the conditions led to it".to_owned(),
        ways => format!("reached by {ways}"),
    }
}
