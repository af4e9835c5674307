//! The limits the product promises, held against a comparison. Pure: numbers in, sentences out.

use serde::Serialize;

use super::report::{Comparison, Row};
use super::{NGINX_AGAIN, mcp, prompt, steady, translation};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    pub claim: &'static str,
    pub measured: f64,
    pub limit: f64,
    pub holds: bool,
}

/// Two runs of the same program differ by this much: "no worse" cannot be asked more exactly.
const NO_WORSE: f64 = 1.05;
/// Medians of this machine wobble by 20–30 % from one hour to the next: less cannot be told from nothing.
const NOISE: f64 = 1.2;

/// Of a kilobyte, reading it once and writing it once.
const TRANSLATION: f64 = 1.6;
/// Of a body so long that little else counts: a second reading or writing of it would show.
const TRANSLATION_OF_LONG: f64 = 5.0;

/// A figure of one target may be at most so many times that of another.
struct Claim {
    text: &'static str,
    ours: &'static str,
    theirs: &'static str,
    figure: fn(&Row) -> Option<f64>,
    limit: f64,
}

const CLAIMS: [Claim; 20] = [
    Claim {
        text: "engine lane: CPU per request against bare Pingora",
        ours: "engine",
        theirs: "bare",
        figure: cpu,
        limit: 0.75,
    },
    Claim {
        text: "engine lane: CPU per request against nginx",
        ours: "engine",
        theirs: "nginx",
        figure: cpu,
        limit: 2.0,
    },
    Claim {
        text: "engine lane with fallback, overrides and metadata: CPU per request against bare Pingora",
        ours: "routed",
        theirs: "bare",
        figure: cpu,
        limit: 0.9,
    },
    Claim {
        text: "relay lane: CPU per request against bare Pingora",
        ours: "relay",
        theirs: "bare",
        figure: cpu,
        limit: 1.1,
    },
    Claim {
        text: "engine lane: first stream event against bare Pingora",
        ours: "engine",
        theirs: "bare",
        figure: first_event,
        limit: NO_WORSE,
    },
    Claim {
        text: "engine lane: delay of stream events against bare Pingora",
        ours: "engine",
        theirs: "bare",
        figure: event_delay,
        limit: NO_WORSE,
    },
    Claim {
        text: "journal, usage and cost: instructions of the threads that serve, against the engine lane without",
        ours: "journal",
        theirs: "engine",
        figure: instructions,
        limit: 1.15,
    },
    Claim {
        text: "journal, usage and cost: CPU per request, shipping too, against the engine lane without",
        ours: "journal",
        theirs: "engine",
        figure: cpu,
        limit: NOISE,
    },
    Claim {
        text: "journal, usage and cost: p99 against the engine lane without",
        ours: "journal",
        theirs: "engine",
        figure: p99,
        limit: NOISE,
    },
    Claim {
        text: "limits of key, workspace and two policies: instructions of the threads that serve, against journal alone",
        ours: "limited",
        theirs: "journal",
        figure: instructions,
        limit: 1.1,
    },
    Claim {
        text: "a minute at a fixed rate with default settings: p99 against the same without a journal",
        ours: steady::DEFAULT,
        theirs: steady::PLAIN,
        figure: p99,
        limit: 2.0,
    },
    Claim {
        text: "a stored prompt: CPU per request against the chat that it becomes",
        ours: prompt::ROW,
        theirs: "engine",
        figure: cpu,
        limit: 1.15,
    },
    Claim {
        text: "three checks of guardrails on 1 KB: CPU per request against the engine lane without",
        ours: "guarded",
        theirs: "engine",
        figure: cpu,
        limit: 1.1,
    },
    Claim {
        text: "a tool of an MCP server, 1 KB: CPU per request against the engine lane",
        ours: mcp::ROW,
        theirs: "engine",
        figure: cpu,
        limit: 1.3,
    },
    Claim {
        text: "OpenAI to Anthropic, 1 KB: CPU per request against the engine lane untranslated",
        ours: translation::PLAIN,
        theirs: "engine",
        figure: cpu,
        limit: TRANSLATION,
    },
    Claim {
        text: "OpenAI to Anthropic, 1 KB, streamed: CPU per request against the same stream untranslated",
        ours: translation::TRANSLATED_STREAM,
        theirs: translation::STREAM,
        figure: cpu,
        limit: TRANSLATION,
    },
    Claim {
        text: "OpenAI to Anthropic, 200 KB with tools: CPU per request against the same untranslated",
        ours: translation::TRANSLATED_LONG,
        theirs: translation::LONG,
        figure: cpu,
        limit: TRANSLATION_OF_LONG,
    },
    Claim {
        text: "an answer from the cache, with limits and journal: CPU per request against the same from the provider",
        ours: "hit",
        theirs: "limited",
        figure: cpu,
        limit: 0.5,
    },
    Claim {
        text: "an answer that is kept, with limits and journal: CPU per request against the same without a cache",
        ours: "miss",
        theirs: "limited",
        figure: cpu,
        limit: 1.1,
    },
    Claim {
        text: "an answer from the cache: time per request under full load against nginx and the provider behind it",
        ours: "hit",
        theirs: NGINX_AGAIN,
        figure: seconds,
        limit: 1.0 / 1.3,
    },
];

/// What was not measured is not judged.
pub fn judge(comparison: &Comparison) -> Vec<Verdict> {
    let row = |name: &str| comparison.rows.iter().find(|row| row.name == name);
    let judged = CLAIMS.iter().filter_map(|claim| {
        let measured = (claim.figure)(row(claim.ours)?)? / (claim.figure)(row(claim.theirs)?)?;
        Some(Verdict { claim: claim.text, measured, limit: claim.limit, holds: measured <= claim.limit })
    });
    judged.collect()
}

fn cpu(row: &Row) -> Option<f64> {
    Some(row.cpu_us.median)
}

fn seconds(row: &Row) -> Option<f64> {
    Some(1.0 / row.requests_per_second.median)
}

fn p99(row: &Row) -> Option<f64> {
    Some(row.p99_ms.median)
}

fn first_event(row: &Row) -> Option<f64> {
    row.delays.map(|delays| delays.first_p50_us)
}

fn event_delay(row: &Row) -> Option<f64> {
    row.delays.map(|delays| delays.event_p50_us)
}

fn instructions(row: &Row) -> Option<f64> {
    row.instructions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::report::row_of;

    #[test]
    fn a_limit_holds_up_to_its_own_value() {
        for (engine, holds) in [(7.0, true), (7.5, true), (7.6, false)] {
            let rows = vec![row_of("bare", 10.0), row_of("engine", engine)];
            let verdicts = judge(&Comparison { rows, ..Comparison::default() });
            assert_eq!(verdicts.len(), 1, "what was not measured is not judged");
            assert_eq!(verdicts[0].holds, holds, "{engine}");
        }
    }

    #[test]
    fn what_the_journal_costs_may_be_lost_in_noise_and_no_more() {
        for (journal, holds) in [(12.0, true), (12.1, false)] {
            let rows = vec![row_of("engine", 10.0), row_of("journal", journal)];
            let verdicts = judge(&Comparison { rows, ..Comparison::default() });
            assert_eq!(verdicts.iter().map(|verdict| verdict.holds).collect::<Vec<_>>(), [holds, true], "{journal}");
        }
    }

    #[test]
    fn a_translation_is_held_against_the_same_request_untranslated() {
        let rows = vec![
            row_of("engine", 10.0),
            row_of(translation::PLAIN, 16.1),
            row_of(translation::STREAM, 100.0),
            row_of(translation::TRANSLATED_STREAM, 160.0),
        ];
        let verdicts = judge(&Comparison { rows, ..Comparison::default() });
        assert_eq!(verdicts.iter().map(|verdict| verdict.holds).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn a_hit_costs_half_of_a_call_and_a_miss_hardly_more() {
        let rows = vec![row_of("limited", 10.0), row_of("hit", 5.1), row_of("miss", 10.9)];
        let verdicts = judge(&Comparison { rows, ..Comparison::default() });
        assert_eq!(verdicts.iter().map(|verdict| verdict.holds).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn guardrails_are_held_against_the_same_request_without_them() {
        for (guarded, holds) in [(11.0, true), (11.1, false)] {
            let rows = vec![row_of("engine", 10.0), row_of("guarded", guarded)];
            let verdicts = judge(&Comparison { rows, ..Comparison::default() });
            assert_eq!(verdicts.iter().map(|verdict| verdict.holds).collect::<Vec<_>>(), [holds], "{guarded}");
        }
    }

    #[test]
    fn the_relay_lane_has_its_own_limit() {
        let rows = vec![row_of("bare", 10.0), row_of("relay", 11.5)];
        assert!(!judge(&Comparison { rows, ..Comparison::default() })[0].holds);
    }
}
