//! What became of reads from and writes to Redis, and how long reads took.

use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry};

pub struct RemoteMeters {
    pub(super) found: IntCounter,
    pub(super) absent: IntCounter,
    /// Something was there that is no entry: of another version, damaged, sealed by a key that is gone, or moved.
    pub(super) unreadable: IntCounter,
    pub(super) failed: IntCounter,
    /// Nobody was asked, because Redis was known to be away.
    pub(super) skipped: IntCounter,
    pub(super) seconds: Histogram,
    pub(super) written: IntCounter,
    pub(super) unwritten: IntCounter,
    /// There was no room in the queue, or Redis was known to be away.
    pub(super) dropped: IntCounter,
    pub(super) too_large: IntCounter,
    /// There was no key to seal it with.
    pub(super) unsealed: IntCounter,
}

impl RemoteMeters {
    pub fn new(registry: &Registry) -> prometheus::Result<Self> {
        let reads = Opts::new("gateway_cache_store_reads_total", "Reads of kept answers from Redis, by result.");
        let reads = IntCounterVec::new(reads, &["result"])?;
        let writes = Opts::new("gateway_cache_store_writes_total", "Answers to be kept in Redis, by result.");
        let writes = IntCounterVec::new(writes, &["result"])?;
        let seconds = HistogramOpts::new("gateway_cache_store_read_seconds", "How long Redis took to answer a read.")
            .buckets(vec![0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5]);
        let seconds = Histogram::with_opts(seconds)?;
        registry.register(Box::new(reads.clone()))?;
        registry.register(Box::new(writes.clone()))?;
        registry.register(Box::new(seconds.clone()))?;
        let read = |result: &str| reads.with_label_values(&[result]);
        let write = |result: &str| writes.with_label_values(&[result]);
        Ok(Self {
            found: read("found"),
            absent: read("absent"),
            unreadable: read("unreadable"),
            failed: read("failed"),
            skipped: read("skipped"),
            seconds,
            written: write("written"),
            unwritten: write("failed"),
            dropped: write("dropped"),
            too_large: write("too_large"),
            unsealed: write("unsealed"),
        })
    }
}
