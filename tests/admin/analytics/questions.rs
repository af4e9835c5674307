//! Questions at random: times and filters, as a query and as a condition on calls.

use super::reference::{LoggedCall, beginning};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::Value;

pub type Condition = Box<dyn Fn(&LoggedCall) -> bool>;

/// What is asked, as a query and as a condition.
pub struct Question {
    pub query: String,
    pub from: DateTime<Utc>,
    pub until: DateTime<Utc>,
    pub holds: Condition,
    /// Whether the condition is on what calls are, and not on where they are or on what was said of them.
    pub is_of_calls: bool,
    /// The least that feedback must say.
    pub least_said: Option<i64>,
    /// Whether the first workspace, whose all feedback is, is asked about.
    pub is_of_home: bool,
}

/// One after the other has every filter there is.
pub const FILTERS: usize = 24;

pub fn question(random: &mut StdRng, number: usize) -> Question {
    let days = *[1, 2, 7, 20, 30].choose(random).unwrap();
    let from = beginning() + TimeDelta::milliseconds(random.random_range(0..86_400_000 * (31 - days)));
    let until = (from + TimeDelta::days(days)).min(beginning() + TimeDelta::days(30));
    let written = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Millis, true);
    let (filter, holds): (&str, Condition) = match number % FILTERS {
        0 => ("", Box::new(|_| true)),
        1 => ("&status_code=200,429", Box::new(|call| [200, 429].contains(&call.status))),
        2 => ("&virtual_keys=main", Box::new(|call| call.provider == Some("main"))),
        3 => ("&configs=pc-1", Box::new(|call| call.config == Some("pc-1"))),
        4 => ("&cache_status=HIT", Box::new(|call| call.cache == "HIT")),
        5 => ("&ai_org_model=groq__llama", Box::new(|call| call.service == "groq" && call.model == "llama")),
        6 => ("&metadata=%7B%22plan%22%3A%22pro%22%7D", Box::new(|call| call.plan == Some("pro"))),
        7 => (
            "&total_units_min=500&prompt_token_max=800",
            Box::new(|call| call.tokens[0] + call.tokens[1] >= 500 && call.tokens[0] <= 800),
        ),
        8 => (
            "&cost_min=100&cost_max=700",
            Box::new(|call| call.cost.is_some_and(|cost| (10_000..=70_000).contains(&cost))),
        ),
        9 => ("&trace_id=t7,t8,t9", Box::new(|call| ["t7", "t8", "t9"].contains(&call.trace.as_str()))),
        10 => ("&api_key_ids=00000000-0000-0000-0000-000000000001", Box::new(|call| call.key == Some(1))),
        11 => ("&prompt_slug=pp-1", Box::new(|call| call.prompt == Some("pp-1"))),
        12 => ("&ai_model=llama,gpt-4o", Box::new(|call| ["llama", "gpt-4o"].contains(&call.model))),
        13 => (
            "&completion_token_min=100&completion_token_max=200",
            Box::new(|call| (100..=200).contains(&call.tokens[1])),
        ),
        14 => (
            "&configs=pc-1&status_code=500,503",
            Box::new(|call| call.config == Some("pc-1") && [500, 503].contains(&call.status)),
        ),
        15 => ("&cache_status=HIT,SEMANTIC%20HIT", Box::new(LoggedCall::is_hit)),
        16 => ("&virtual_keys=main,spare", Box::new(|call| call.provider.is_some())),
        17 => ("&ai_org_model=openai__gpt-4o,groq__llama", Box::new(LoggedCall::is_of_one_of_two)),
        18 => (
            "&status_code=200&metadata=%7B%22_user%22%3A%22ada%22%7D",
            Box::new(|call| call.status == 200 && call.user == Some("ada")),
        ),
        19 => ("&workspace_slug=*", Box::new(|_| true)),
        20 => ("&workspace_slug=elsewhere", Box::new(|_| true)),
        21 => ("&span_id=s1,s2", Box::new(|call| ["s1", "s2"].contains(&call.span.as_deref().unwrap_or_default()))),
        22 => ("&weighted_feedback_min=5", Box::new(|call| call.best.is_some_and(|best| best >= 5))),
        _ => (
            "&total_units_max=900&prompt_token_min=100",
            Box::new(|call| call.tokens[0] + call.tokens[1] <= 900 && call.tokens[0] >= 100),
        ),
    };
    let is_there: fn(&LoggedCall) -> bool = match filter {
        "&workspace_slug=elsewhere" => |call| call.is_elsewhere,
        _ => |_| true,
    };
    let query = format!("time_of_generation_min={}&time_of_generation_max={}{filter}", written(from), written(until));
    Question {
        query,
        from,
        until: until + TimeDelta::milliseconds(1),
        holds: Box::new(move |call| is_there(call) && holds(call)),
        is_of_calls: !filter.is_empty() && !filter.contains("workspace_slug") && !filter.contains("feedback"),
        least_said: filter.contains("feedback").then_some(5),
        is_of_home: !filter.contains("elsewhere"),
    }
}

pub fn close(found: &Value, expected: f64, what: &str) {
    let number = found.as_f64().unwrap_or_else(|| panic!("{what}: {found} is no number"));
    // Percentiles are read from sketches.
    let allowed = if what.starts_with('p') || what.contains(" p") { 0.01 } else { 1e-6 };
    let margin = expected.abs().max(1.0) * allowed;
    assert!((number - expected).abs() <= margin, "{what}: {number} instead of {expected}");
}

/// How many questions are asked: more where more calls are asked about.
pub fn rounds(usual: usize) -> usize {
    if std::env::var_os("ANALYTICS_CALLS").is_some() { usual * 4 } else { usual }
}
