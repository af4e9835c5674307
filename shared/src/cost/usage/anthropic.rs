//! Anthropic's usage: the prompt is counted without what was read from or written to the cache.

use super::Usage;
use super::counts::Counts;

pub fn usage_of(counts: &Counts) -> Usage {
    let hour = counts.hour;
    let by_lifetime = counts.five_minutes.saturating_add(hour).saturating_add(counts.twelve_hours);
    let counted = Usage {
        input: counts.input,
        cache_read: counts.cache_read,
        cache_write: counts.cache_creation.max(by_lifetime),
        cache_write_1h: hour,
        cache_write_12h: counts.twelve_hours,
        output: counts.output,
        ..Usage::default()
    };
    counted.count_tools(counts)
}
