//! What the gateway sees of each provider: every attempt with its status and how it ended, also those that a retry or a
//! fallback made good. Labels are the table of providers, which is closed when the process starts; numbers of a provider
//! appear with its first attempt, so that a table of eighty does not fill every page.

use super::{MICROS, Outcome};
use crate::catalog::providers::ProviderNumber;
use crate::net::dial::Class;
use crate::runtime::numbers::{Draft, Labels, Numbers, StripedCounter, Times};
use std::time::Duration;

/// Status and outcome of attempts that brought an answer, or began to; in the order of `row`.
const ENDINGS: [(&str, &str); 8] = [
    ("2xx", "succeeded"),
    ("3xx", "succeeded"),
    ("4xx", "rejected"),
    ("429", "rate_limited"),
    ("5xx", "server_error"),
    ("2xx", "stream_error"),
    ("none", "client_left"),
    ("none", "overtaken"),
];
const ROWS: usize = ENDINGS.len() + Class::ALL.len();
const OTHER: &str = "other";

pub struct ProviderMeters {
    /// Of each provider, its rows.
    attempts: Vec<StripedCounter>,
    retries: Vec<StripedCounter>,
    fallbacks: Vec<StripedCounter>,
    hedges: Vec<StripedCounter>,
    first_byte: Vec<Times>,
}

impl ProviderMeters {
    /// In the order of their numbers. The names are kept for as long as the process runs.
    pub fn draft(draft: &mut Draft, providers: &[&str]) -> prometheus::Result<Self> {
        let leaked = |name: &&str| -> &'static str { (*name).to_owned().leak() };
        let names: Vec<&'static str> = providers.iter().map(leaked).chain([OTHER]).collect();
        let each = || names.iter().map(|name| vec![("provider", *name)]);
        let attempts = draft.counters(
            (
                "gateway_provider_attempts_total",
                "Attempts at a provider, by status and how they ended; `none`: no answer, or one that broke off.",
            ),
            names.iter().copied().flat_map(rows),
        )?;
        draft.show_when_counted(ROWS);
        let mut counters = |name, help| {
            let counters = draft.counters((name, help), each());
            draft.show_when_counted(1);
            counters
        };
        let retries = counters("gateway_provider_retries_total", "Attempts that were made again at the same target.")?;
        let fallbacks = counters(
            "gateway_provider_fallbacks_total",
            "Times that a request left a target of the provider for the next one of its config.",
        )?;
        let hedges = counters(
            "gateway_provider_hedges_total",
            "Second attempts that were started beside a slow first one of the same target.",
        )?;
        let first_byte = draft.times(
            ("gateway_provider_first_byte_seconds", "From an attempt's start to the head of the provider's answer."),
            MICROS,
            each(),
        )?;
        draft.show_when_counted(1);
        Ok(Self { attempts, retries, fallbacks, hedges, first_byte })
    }

    pub fn attempt(&self, numbers: &Numbers, provider: ProviderNumber, status: u16, outcome: Outcome) {
        if provider != ProviderNumber::NONE {
            numbers.inc(self.attempts[self.known(provider) * ROWS + row(status, outcome)]);
        }
    }

    pub fn retried(&self, numbers: &Numbers, provider: ProviderNumber) {
        numbers.inc(self.retries[self.known(provider)]);
    }

    pub fn left(&self, numbers: &Numbers, provider: ProviderNumber) {
        numbers.inc(self.fallbacks[self.known(provider)]);
    }

    pub fn hedged(&self, numbers: &Numbers, provider: ProviderNumber) {
        numbers.inc(self.hedges[self.known(provider)]);
    }

    pub fn first_byte(&self, numbers: &Numbers, provider: ProviderNumber, after: Duration) {
        numbers.observe(self.first_byte[self.known(provider)], after);
    }

    /// The last place is that of all others.
    fn known(&self, provider: ProviderNumber) -> usize {
        provider.0.min(self.retries.len() - 1)
    }
}

fn rows(provider: &'static str) -> impl Iterator<Item = Labels> {
    let failed = Class::ALL.iter().map(|class| ("none", class.label()));
    let all = ENDINGS.iter().copied().chain(failed);
    all.map(move |(status, outcome)| vec![("provider", provider), ("status", status), ("outcome", outcome)])
}

fn row(status: u16, outcome: Outcome) -> usize {
    match outcome {
        Outcome::Answered => match status {
            429 => 3,
            500.. => 4,
            400.. => 2,
            300.. => 1,
            _ => 0,
        },
        Outcome::StreamError => 5,
        Outcome::ClientLeft => 6,
        Outcome::Overtaken => 7,
        Outcome::Failed(class) => ENDINGS.len() + class as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::metrics::Metrics;

    #[test]
    fn an_attempt_counts_under_its_provider_status_and_outcome_and_strangers_share_one_name() {
        let metrics = Metrics::new(&["anthropic", "openai"]).unwrap();
        for (number, status, outcome, line) in [
            (1, 200, Outcome::Answered, r#"provider="openai",status="2xx",outcome="succeeded""#),
            (1, 404, Outcome::Answered, r#"provider="openai",status="4xx",outcome="rejected""#),
            (1, 429, Outcome::Answered, r#"provider="openai",status="429",outcome="rate_limited""#),
            (1, 529, Outcome::Answered, r#"provider="openai",status="5xx",outcome="server_error""#),
            (1, 200, Outcome::StreamError, r#"provider="openai",status="2xx",outcome="stream_error""#),
            (1, 0, Outcome::Failed(Class::Dns), r#"provider="openai",status="none",outcome="dns""#),
            (1, 0, Outcome::Failed(Class::Protocol), r#"provider="openai",status="none",outcome="protocol""#),
            (7, 200, Outcome::Answered, r#"provider="other",status="2xx",outcome="succeeded""#),
            (8, 0, Outcome::ClientLeft, r#"provider="other",status="none",outcome="client_left""#),
        ] {
            metrics.attempt(ProviderNumber(number), status, outcome);
            let line = format!("gateway_provider_attempts_total{{{line}}} 1");
            assert!(metrics.render().lines().any(|found| found == line), "{line}\n{}", metrics.render());
        }
        let before = metrics.render();
        metrics.attempt(ProviderNumber::NONE, 0, Outcome::ClientLeft);
        let of_providers = |text: &str| text.lines().filter(|line| line.contains("provider=")).count();
        assert_eq!(of_providers(&metrics.render()), of_providers(&before));
        assert!(!metrics.render().contains("anthropic"), "nobody asked it");
    }
}
