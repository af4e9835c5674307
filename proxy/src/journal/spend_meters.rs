//! What calls used and cost, by provider and model, and by workspace where the operator wants it. Counted when logs are
//! stored, apart from the threads that carry requests: about a second late, each call once however often its log is sent.
//!
//! A tenant chooses the names of models, so only those that the price list has become labels, and no more than `MODELS`
//! of them; the others are `other`. Workspaces are counted up to a bound in the order in which they come.

use super::record::Record;
use super::ship::Priced;
use prometheus::{CounterVec, IntCounterVec, Opts, Registry};
use rust_decimal::prelude::ToPrimitive as _;
use std::collections::HashSet;
use uuid::Uuid;

/// Most pairs of provider and model that have series of their own.
const MODELS: usize = 500;
const OTHER: &str = "other";
/// Of one call. Providers, and whoever pretends to be one, choose the number.
const MAX_TOKENS: u64 = 1 << 32;

pub struct SpendMeters {
    tokens: IntCounterVec,
    cost: CounterVec,
    workspace_calls: IntCounterVec,
    workspace_tokens: IntCounterVec,
    workspace_cost: CounterVec,
}

/// What one call used, kept until its log is stored.
#[derive(Debug)]
pub struct Spent<'r> {
    provider: &'r str,
    /// As the price list has it.
    model: Option<String>,
    workspace: Uuid,
    is_success: bool,
    prompt: u64,
    cached: u64,
    completion: u64,
    cents: f64,
}

/// Which labels are in use.
#[derive(Debug, Default)]
pub struct SpendLabels {
    models: HashSet<(String, String)>,
    workspaces: HashSet<Uuid>,
    /// None are counted when 0.
    pub most_workspaces: usize,
}

impl SpendMeters {
    pub fn new(registry: &Registry) -> prometheus::Result<Self> {
        let whole = |name: &str, help: &str, labels: &[&str]| -> prometheus::Result<IntCounterVec> {
            let counter = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let exact = |name: &str, help: &str, labels: &[&str]| -> prometheus::Result<CounterVec> {
            let counter = CounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        Ok(Self {
            tokens: whole(
                "gateway_tokens_total",
                "Tokens that calls used, by provider, model and kind; `cached` are part of `prompt`.",
                &["provider", "model", "kind"],
            )?,
            cost: exact(
                "gateway_cost_cents_total",
                "What calls cost in US cents, by provider and model, as far as prices are known.",
                &["provider", "model"],
            )?,
            workspace_calls: whole(
                "gateway_workspace_calls_total",
                "Calls by workspace and whether they succeeded (METRICS_WORKSPACES).",
                &["workspace", "outcome"],
            )?,
            workspace_tokens: whole(
                "gateway_workspace_tokens_total",
                "Tokens that calls used, by workspace (METRICS_WORKSPACES).",
                &["workspace"],
            )?,
            workspace_cost: exact(
                "gateway_workspace_cost_cents_total",
                "What calls cost in US cents, by workspace (METRICS_WORKSPACES).",
                &["workspace"],
            )?,
        })
    }

    pub fn count(&self, spent: &Spent<'_>, labels: &mut SpendLabels) {
        let model = labels.model(spent.provider, spent.model.as_deref());
        for (kind, tokens) in [("prompt", spent.prompt), ("cached", spent.cached), ("completion", spent.completion)] {
            if tokens > 0 {
                self.tokens.with_label_values(&[spent.provider, model, kind]).inc_by(tokens.min(MAX_TOKENS));
            }
        }
        if spent.cents > 0.0 {
            self.cost.with_label_values(&[spent.provider, model]).inc_by(spent.cents);
        }
        let Some(workspace) = labels.workspace(spent.workspace) else { return };
        let outcome = if spent.is_success { "succeeded" } else { "failed" };
        self.workspace_calls.with_label_values(&[&*workspace, outcome]).inc();
        self.workspace_tokens.with_label_values(&[&*workspace]).inc_by(spent.tokens());
        self.workspace_cost.with_label_values(&[&*workspace]).inc_by(spent.cents.max(0.0));
    }
}

impl<'r> Spent<'r> {
    /// None of a call that turned to no provider, or that the cache answered.
    pub fn new(record: &Record<'r>, priced: &Priced<'_>) -> Option<Self> {
        if record.cache_status.is_hit() {
            return None;
        }
        let usage = &priced.usage;
        Some(Self {
            provider: record.ai_org?,
            model: priced.price_model.clone().filter(|_| priced.is_listed),
            workspace: record.workspace_id.uuid(),
            is_success: record.status < 400,
            prompt: usage.prompt_tokens(),
            cached: usage.cache_read,
            completion: usage.completion_tokens(),
            cents: priced.cost.and_then(|cost| cost.to_f64()).unwrap_or(0.0),
        })
    }
}

impl Spent<'_> {
    fn tokens(&self) -> u64 {
        self.prompt.min(MAX_TOKENS) + self.completion.min(MAX_TOKENS)
    }
}

impl SpendLabels {
    fn model<'m>(&mut self, provider: &str, model: Option<&'m str>) -> &'m str {
        let Some(model) = model else { return OTHER };
        let pair = (provider.to_owned(), model.to_owned());
        if self.models.contains(&pair) {
            return model;
        }
        if self.models.len() >= MODELS {
            return OTHER;
        }
        self.models.insert(pair);
        model
    }

    fn workspace(&mut self, id: Uuid) -> Option<String> {
        if self.most_workspaces == 0 {
            return None;
        }
        if self.workspaces.len() < self.most_workspaces {
            self.workspaces.insert(id);
        }
        Some(if self.workspaces.contains(&id) { id.to_string() } else { OTHER.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::TextEncoder;

    fn spent(model: Option<&str>, workspace: u128) -> Spent<'static> {
        Spent {
            provider: "openai",
            model: model.map(str::to_owned),
            workspace: Uuid::from_u128(workspace),
            is_success: true,
            prompt: 10,
            cached: 4,
            completion: 5,
            cents: 0.5,
        }
    }

    fn counted(labels: &mut SpendLabels, calls: impl IntoIterator<Item = Spent<'static>>) -> String {
        let registry = Registry::new();
        let meters = SpendMeters::new(&registry).unwrap();
        calls.into_iter().for_each(|call| meters.count(&call, labels));
        TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
    }

    #[test]
    fn no_tenant_makes_series_beyond_the_bound_or_of_a_name_that_no_list_has() {
        let names: Vec<String> = (0..2 * MODELS).map(|number| format!("m{number}")).collect();
        let known = names.iter().map(|name| spent(Some(name), 1));
        let text = counted(&mut SpendLabels::default(), known.chain([spent(None, 1)]));
        let series = text.lines().filter(|line| line.starts_with("gateway_cost_cents_total{")).count();
        assert_eq!(series, MODELS + 1);
        let others =
            format!("gateway_cost_cents_total{{model=\"other\",provider=\"openai\"}} {}", (MODELS + 1) as f64 * 0.5);
        assert!(text.lines().any(|line| line == others), "{others}");
        assert!(!text.contains("gateway_workspace"), "workspaces are counted only where that is asked for");
    }

    #[test]
    fn workspaces_are_counted_up_to_their_bound() {
        let mut labels = SpendLabels { most_workspaces: 2, ..SpendLabels::default() };
        let text = counted(&mut labels, [1, 2, 3, 3, 1].map(|workspace| spent(Some("m"), workspace)));
        let calls = |workspace: &str, calls: u64| {
            let line =
                format!("gateway_workspace_calls_total{{outcome=\"succeeded\",workspace=\"{workspace}\"}} {calls}");
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        };
        calls(&Uuid::from_u128(1).to_string(), 2);
        calls(&Uuid::from_u128(2).to_string(), 1);
        calls("other", 2);
    }
}
