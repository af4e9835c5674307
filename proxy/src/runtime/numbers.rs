//! The metrics that every request adds to, each thread to its own stripe, in the form that Prometheus reads.

use crate::runtime::stripes::Stripes;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{self, LabelPair, MetricFamily, MetricType};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// One number of each thread.
#[derive(Debug, Clone, Copy)]
pub struct StripedCounter(usize);

/// A histogram: how many took up to each of its bounds, how many longer, and all of them together.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    first: usize,
    /// In microseconds.
    bounds: &'static [u64],
}

/// Which label has which value; one row of a family.
pub type Labels = Vec<(&'static str, &'static str)>;

/// The name of a family, and what it says to people.
pub type FamilyName = (&'static str, &'static str);

/// One for each row of a family.
type Handles<T> = prometheus::Result<Vec<T>>;

struct Family {
    desc: Desc,
    rows: Vec<FamilyRow>,
    /// So many rows belong together and are shown once one of them has counted; 0 shows all from the start.
    group: usize,
}

struct FamilyRow {
    labels: Labels,
    value: FamilyValue,
}

#[derive(Clone, Copy)]
enum FamilyValue {
    Counter(StripedCounter),
    Gauge(StripedCounter),
    Times(Times),
}

/// What is to be counted, before anything is.
#[derive(Default)]
pub struct Draft {
    families: Vec<Family>,
    length: usize,
}

impl Draft {
    pub fn counters(&mut self, named: FamilyName, rows: impl IntoIterator<Item = Labels>) -> Handles<StripedCounter> {
        let places = self.family(named, rows, 1, |at| FamilyValue::Counter(StripedCounter(at)))?;
        Ok(places.into_iter().map(StripedCounter).collect())
    }

    /// One without labels.
    pub fn counter(&mut self, named: FamilyName) -> prometheus::Result<StripedCounter> {
        let at = self.length;
        self.counters(named, [vec![]])?;
        Ok(StripedCounter(at))
    }

    pub fn gauges(&mut self, named: FamilyName, rows: impl IntoIterator<Item = Labels>) -> Handles<StripedCounter> {
        let places = self.family(named, rows, 1, |at| FamilyValue::Gauge(StripedCounter(at)))?;
        Ok(places.into_iter().map(StripedCounter).collect())
    }

    pub fn times(
        &mut self,
        named: FamilyName,
        bounds: &'static [u64],
        rows: impl IntoIterator<Item = Labels>,
    ) -> Handles<Times> {
        let times = |first| Times { first, bounds };
        let places = self.family(named, rows, bounds.len() + 2, |at| FamilyValue::Times(times(at)))?;
        Ok(places.into_iter().map(times).collect())
    }

    /// One without labels.
    pub fn time(&mut self, named: FamilyName, bounds: &'static [u64]) -> prometheus::Result<Times> {
        let first = self.length;
        self.times(named, bounds, [vec![]])?;
        Ok(Times { first, bounds })
    }

    /// The rows of the family added last belong together in groups of so many, which are shown once one has counted.
    pub fn show_when_counted(&mut self, group: usize) {
        if let Some(family) = self.families.last_mut() {
            family.group = group;
        }
    }

    /// Each row takes so many numbers; answers where those of each begin.
    fn family(
        &mut self,
        (name, help): FamilyName,
        rows: impl IntoIterator<Item = Labels>,
        numbers: usize,
        value: impl Fn(usize) -> FamilyValue,
    ) -> Handles<usize> {
        let (mut places, mut family) = (Vec::new(), Vec::new());
        for labels in rows {
            places.push(self.length);
            family.push(FamilyRow { labels, value: value(self.length) });
            self.length += numbers;
        }
        let names =
            family.first().map_or(Vec::new(), |row| row.labels.iter().map(|(name, _)| (*name).into()).collect());
        let desc = Desc::new(name.into(), help.into(), names, HashMap::new())?;
        self.families.push(Family { desc, rows: family, group: 0 });
        Ok(places)
    }

    pub fn begin(self) -> Numbers {
        Numbers(Arc::new(StripedNumbers { stripes: Stripes::new(self.length), families: self.families }))
    }
}

/// The numbers themselves; a clone is the same ones.
#[derive(Clone)]
pub struct Numbers(Arc<StripedNumbers>);

struct StripedNumbers {
    stripes: Stripes,
    families: Vec<Family>,
}

impl Numbers {
    pub fn inc(&self, counter: StripedCounter) {
        self.0.stripes.own()[counter.0].fetch_add(1, Relaxed);
    }

    /// Only of a gauge. What one thread began may end on another: the numbers of both then make sense together alone.
    pub fn dec(&self, gauge: StripedCounter) {
        self.0.stripes.own()[gauge.0].fetch_sub(1, Relaxed);
    }

    pub fn observe(&self, times: Times, took: Duration) {
        let own = self.0.stripes.own();
        let beyond_seconds = u64::from(took.subsec_nanos().div_ceil(1000));
        let micros = took.as_secs().saturating_mul(1_000_000).saturating_add(beyond_seconds);
        let bucket = times.bounds.iter().position(|bound| micros <= *bound).unwrap_or(times.bounds.len());
        own[times.first + bucket].fetch_add(1, Relaxed);
        let sum = &own[times.first + times.bounds.len() + 1];
        let add = |before: u64| Some((f64::from_bits(before) + took.as_secs_f64()).to_bits());
        let _ = sum.fetch_update(Relaxed, Relaxed, add);
    }

    pub fn sum(&self, gauge: StripedCounter) -> i64 {
        self.0.stripes.total(gauge.0) as i64
    }

    /// Whether anything was counted in the row.
    fn has_counted(&self, row: &FamilyRow) -> bool {
        match row.value {
            FamilyValue::Counter(one) | FamilyValue::Gauge(one) => self.0.stripes.total(one.0) != 0,
            FamilyValue::Times(times) => {
                (0..=times.bounds.len()).any(|bucket| self.0.stripes.total(times.first + bucket) != 0)
            }
        }
    }

    fn metric(&self, row: &FamilyRow) -> proto::Metric {
        let mut metric = proto::Metric::from_label(row.labels.iter().map(|(name, value)| pair(name, value)).collect());
        match row.value {
            FamilyValue::Counter(counter) => {
                let mut shown = proto::Counter::default();
                shown.set_value(self.0.stripes.total(counter.0) as f64);
                metric.set_counter(shown);
            }
            FamilyValue::Gauge(gauge) => {
                let mut shown = proto::Gauge::default();
                shown.set_value(self.sum(gauge) as f64);
                metric.set_gauge(shown);
            }
            FamilyValue::Times(times) => metric.set_histogram(self.histogram(times)),
        }
        metric
    }

    fn histogram(&self, times: Times) -> proto::Histogram {
        let mut count = 0;
        let mut buckets = Vec::with_capacity(times.bounds.len());
        for (index, bound) in times.bounds.iter().enumerate() {
            count += self.0.stripes.total(times.first + index);
            let mut bucket = proto::Bucket::default();
            bucket.set_upper_bound(*bound as f64 / 1e6);
            bucket.set_cumulative_count(count);
            buckets.push(bucket);
        }
        let beyond = times.first + times.bounds.len();
        let sums = self.0.stripes.each(beyond + 1).map(f64::from_bits);
        let mut shown = proto::Histogram::default();
        shown.set_bucket(buckets);
        shown.set_sample_count(count + self.0.stripes.total(beyond));
        shown.set_sample_sum(sums.sum());
        shown
    }
}

fn pair(name: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.into());
    pair.set_value(value.into());
    pair
}

impl Collector for Numbers {
    fn desc(&self) -> Vec<&Desc> {
        self.0.families.iter().map(|family| &family.desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let shown = |family: &Family| {
            let mut shown = MetricFamily::default();
            shown.set_name(family.desc.fq_name.clone());
            shown.set_help(family.desc.help.clone());
            shown.set_field_type(match family.rows.first().map(|row| row.value) {
                Some(FamilyValue::Times(_)) => MetricType::HISTOGRAM,
                Some(FamilyValue::Gauge(_)) => MetricType::GAUGE,
                Some(FamilyValue::Counter(_)) | None => MetricType::COUNTER,
            });
            let groups = family.rows.chunks(family.group.max(1));
            let counted = groups.filter(|group| family.group == 0 || group.iter().any(|row| self.has_counted(row)));
            shown.set_metric(counted.flatten().map(|row| self.metric(row)).collect());
            shown
        };
        self.0.families.iter().map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::{Registry, TextEncoder};

    fn rendered(numbers: &Numbers) -> String {
        let registry = Registry::new();
        registry.register(Box::new(numbers.clone())).unwrap();
        TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
    }

    #[test]
    fn a_gauge_falls_and_a_counter_has_its_labels() {
        let mut draft = Draft::default();
        let [counter] = draft.counters(("c_total", "c"), [vec![("kind", "a")]]).unwrap()[..] else { panic!("one row") };
        let [gauge] = draft.gauges(("g", "g"), [vec![]]).unwrap()[..] else { panic!("one row") };
        let numbers = draft.begin();
        for _ in 0..3 {
            numbers.inc(counter);
            numbers.dec(gauge);
        }
        numbers.inc(gauge);
        assert_eq!(numbers.sum(gauge), -2);
        let text = rendered(&numbers);
        assert!(text.contains("c_total{kind=\"a\"} 3\n") && text.contains("\ng -2\n"), "{text}");
    }

    #[test]
    fn a_group_is_shown_as_a_whole_once_one_of_it_has_counted() {
        let mut draft = Draft::default();
        let rows = ["a", "b"].iter().flat_map(|name| ["x", "y"].iter().map(|kind| vec![("n", *name), ("k", *kind)]));
        let counters = draft.counters(("c_total", "c"), rows).unwrap();
        draft.show_when_counted(2);
        let numbers = draft.begin();
        assert_eq!(rendered(&numbers), "");
        numbers.inc(counters[3]);
        let text = rendered(&numbers);
        assert!(text.contains("{n=\"b\",k=\"x\"} 0\n") && text.contains("{n=\"b\",k=\"y\"} 1\n"), "{text}");
        assert!(!text.contains("n=\"a\""), "{text}");
    }

    #[test]
    fn a_time_falls_under_its_bound_and_every_larger_one() {
        let mut draft = Draft::default();
        let times = draft.time(("t_seconds", "t"), &[1_000, 2_500]).unwrap();
        let numbers = draft.begin();
        for nanos in [0, 1_000_000, 1_000_001, 2_500_000, 2_500_001, 9_000_000_000] {
            numbers.observe(times, Duration::from_nanos(nanos));
        }
        let text = rendered(&numbers);
        for line in [
            "t_seconds_bucket{le=\"0.001\"} 2",
            "t_seconds_bucket{le=\"0.0025\"} 4",
            "t_seconds_bucket{le=\"+Inf\"} 6",
            "t_seconds_sum 9.007000002",
            "t_seconds_count 6",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
