//! Why a past request went where it went: what its log says it tried, read against the config it followed. Every target of
//! the config is listed, those that were tried first and in their order. Chance and circuits leave no trace in a log, so
//! for targets that were passed over only the possible reasons are given.

mod reasons;

use shared::config::{ConfigNode, Inherited};

/// A target that the log says was tried.
#[derive(Debug, Clone)]
pub struct TriedTarget {
    /// Its place, as `config.targets[1]`.
    pub option: String,
    pub status: i64,
}

/// One target of the config, and why the request did or did not go there.
#[derive(Debug)]
pub struct StoryTarget<'c> {
    pub option: String,
    /// Which of the tried ones it is.
    pub tried: Option<usize>,
    /// How much of such traffic comes this way, where weights decide.
    pub share: f64,
    /// One sentence for each decision above it, outermost first.
    pub why: Vec<String>,
    pub target: &'c ConfigNode,
    pub settings: Inherited,
}

/// The targets of a config, those that were tried first.
pub fn explain_routing<'c>(config: &'c ConfigNode, tried: &[TriedTarget]) -> Vec<StoryTarget<'c>> {
    let mut stops = Vec::new();
    let root = StoryWalk { option: "config".to_owned(), share: 1.0, why: Vec::new(), above: Inherited::default() };
    look(config, root, tried, &mut stops);
    stops.sort_by_key(|stop| stop.tried.unwrap_or(usize::MAX));
    stops
}

/// How far the way down has come.
struct StoryWalk {
    option: String,
    share: f64,
    why: Vec<String>,
    above: Inherited,
}

fn look<'c>(node: &'c ConfigNode, here: StoryWalk, tried: &[TriedTarget], stops: &mut Vec<StoryTarget<'c>>) {
    let settings = here.above.with(node);
    if node.targets.is_empty() {
        let StoryWalk { option, share, why, .. } = here;
        let tried = tried.iter().position(|one| one.option == option);
        stops.push(StoryTarget { option, tried, share, why, target: node, settings });
        return;
    }
    let options: Vec<String> = (0..node.targets.len()).map(|n| format!("{}.targets[{n}]", here.option)).collect();
    let visits: Vec<Option<TargetVisit>> = options.iter().map(|option| TargetVisit::find(option, tried)).collect();
    for (index, target) in node.targets.iter().enumerate() {
        let reason = reasons::reason(node, index, &options, &visits);
        let walk = StoryWalk {
            option: options[index].clone(),
            share: here.share * reason.share,
            why: here.why.iter().cloned().chain([format!("{}: {}", here.option, reason.text)]).collect(),
            above: settings.clone(),
        };
        look(target, walk, tried, stops);
    }
}

/// When a target, or something below it, was tried.
#[derive(Debug, Clone, Copy)]
struct TargetVisit {
    first: usize,
    /// How the last try there ended.
    status: i64,
}

impl TargetVisit {
    fn find(option: &str, tried: &[TriedTarget]) -> Option<Self> {
        let is_there = |one: &TriedTarget| {
            one.option.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let first = tried.iter().position(is_there)?;
        let last = tried.iter().rposition(is_there)?;
        Some(Self { first, status: tried[last].status })
    }
}

#[cfg(test)]
mod tests;
