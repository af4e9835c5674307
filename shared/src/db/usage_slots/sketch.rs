//! How response times are spread: how many calls lie in each of fixed buckets. Times of one bucket are within 1 % of the one it stands
//! for, and sketches are merged by adding.

/// As a list while it has few buckets, and as a table once others were added to it that make it many: adding to a list moves it.
#[derive(Debug, Clone, Default)]
pub struct Sketch {
    /// Numbers of buckets, rising, and how many calls are in each.
    few: Vec<(i16, u64)>,
    /// How many calls are in each, from the first bucket there is; empty while there are few.
    many: Vec<u64>,
}

/// A bucket is so many times as wide as the one before.
const STEP: f64 = 1.02;
/// What takes no time has a bucket of its own.
const FIRST_BUCKET: i16 = -1;
/// That of the longest time that is a number of milliseconds.
const LAST_BUCKET: i16 = 1086;
/// A list is not made longer than this.
const FEW: usize = 32;

impl Sketch {
    pub fn add(&mut self, millis: i32) {
        self.add_calls(bucket(millis), 1);
    }

    pub fn merge(&mut self, other: &Self) {
        if self.few.is_empty() && self.many.is_empty() {
            self.few.extend_from_slice(&other.few);
            self.many.extend_from_slice(&other.many);
            return;
        }
        if self.few.len() + other.few.len() > FEW || !other.many.is_empty() {
            self.widen();
        }
        if self.many.is_empty() {
            other.few.iter().for_each(|(bucket, calls)| self.add_calls(*bucket, *calls));
            return;
        }
        // Most of what percentiles take is this.
        let length = other.few.last().map_or(0, |(bucket, _)| place(*bucket) + 1).max(other.many.len());
        if self.many.len() < length {
            self.many.resize(length, 0);
        }
        self.many.iter_mut().zip(&other.many).for_each(|(sum, calls)| *sum += calls);
        for (bucket, calls) in &other.few {
            if let Some(sum) = self.many.get_mut(place(*bucket)) {
                *sum += calls;
            }
        }
    }

    /// Takes away what was added before.
    pub fn subtract(&mut self, other: &Self) {
        for (bucket, calls) in other.buckets() {
            if let Some(sum) = self.many.get_mut(place(bucket)) {
                *sum = sum.saturating_sub(calls);
            } else if let Ok(place) = self.few.binary_search_by_key(&bucket, |(one, _)| *one) {
                self.few[place].1 = self.few[place].1.saturating_sub(calls);
            }
        }
        self.few.retain(|(_, calls)| *calls > 0);
    }

    /// Buckets that have calls, rising.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (i16, u64)> {
        let many = (FIRST_BUCKET..).zip(self.many.iter().copied()).filter(|(_, calls)| *calls > 0);
        self.few.iter().copied().chain(many)
    }

    pub(super) fn clear(&mut self) {
        self.few.clear();
        self.many.clear();
    }

    /// Adds a bucket behind all others. False for one that cannot be.
    pub(super) fn push(&mut self, bucket: i16, calls: u64) -> bool {
        let can_be = (FIRST_BUCKET..=LAST_BUCKET).contains(&bucket);
        if can_be {
            self.few.push((bucket, calls));
        }
        can_be
    }

    fn widen(&mut self) {
        if self.many.is_empty() {
            let few = std::mem::take(&mut self.few);
            self.many = vec![0; few.last().map_or(0, |(bucket, _)| place(*bucket)) + 1];
            few.into_iter().for_each(|(bucket, calls)| self.add_calls(bucket, calls));
        }
    }

    fn add_calls(&mut self, bucket: i16, calls: u64) {
        if self.many.is_empty() {
            match self.few.binary_search_by_key(&bucket, |(one, _)| *one) {
                Ok(place) => self.few[place].1 += calls,
                Err(place) => self.few.insert(place, (bucket, calls)),
            }
            return;
        }
        let place = place(bucket);
        if place >= self.many.len() {
            self.many.resize(place + 1, 0);
        }
        self.many[place] += calls;
    }

    /// The time that so many percent of calls do not exceed, between the two calls that it stands between. 0 of nothing.
    pub fn percentile(&self, percent: u8) -> f64 {
        let calls: u64 = self.buckets().map(|(_, calls)| calls).sum();
        if calls == 0 {
            return 0.0;
        }
        let place = f64::from(percent) / 100.0 * (calls - 1) as f64;
        let (below, above) = (self.at(place.floor() as u64), self.at(place.ceil() as u64));
        below + (above - below) * place.fract()
    }

    /// The time of a call by its place among all, from 0.
    fn at(&self, place: u64) -> f64 {
        let mut passed = 0;
        for (bucket, calls) in self.buckets() {
            passed += calls;
            if passed > place {
                return millis(bucket);
            }
        }
        0.0
    }
}

impl PartialEq for Sketch {
    fn eq(&self, other: &Self) -> bool {
        self.buckets().eq(other.buckets())
    }
}

impl Eq for Sketch {}

/// Of a bucket in a table.
fn place(bucket: i16) -> usize {
    usize::from((bucket - FIRST_BUCKET).max(0).unsigned_abs())
}

fn bucket(millis: i32) -> i16 {
    if millis <= 0 { FIRST_BUCKET } else { (f64::from(millis).ln() / STEP.ln()).ceil() as i16 }
}

/// The number that is nearest to all of a bucket.
fn millis(bucket: i16) -> f64 {
    if bucket < 0 { 0.0 } else { 2.0 * STEP.powi(bucket.into()) / (1.0 + STEP) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_stands_for_its_times_within_a_percent() {
        for time in (1..5000).chain([60_000, 3_600_000, i32::MAX]) {
            let stands_for = millis(bucket(time));
            assert!((stands_for - f64::from(time)).abs() <= f64::from(time) * 0.01, "{time}: {stands_for}");
        }
        assert_eq!((bucket(i32::MIN), bucket(i32::MAX)), (FIRST_BUCKET, LAST_BUCKET));
        assert_eq!(millis(bucket(0)), 0.0);
    }

    #[test]
    fn sketches_are_merged_alike_however_long_they_are() {
        for (own, other) in [(0, 0), (0, 3), (3, 0), (1, 1), (5, 3), (3, 5), (200, 2), (2, 200), (90, 110)] {
            let (mut one, mut two, mut both) = (Sketch::default(), Sketch::default(), Sketch::default());
            (0..own).map(|n| n * 37 % 1000).for_each(|time| one.add(time));
            (0..other).map(|n| n * 53 % 1100).for_each(|time| two.add(time));
            (0..own).map(|n| n * 37 % 1000).chain((0..other).map(|n| n * 53 % 1100)).for_each(|time| both.add(time));
            let before = one.clone();
            one.merge(&two);
            assert_eq!(one, both, "{own} and {other}");
            one.subtract(&two);
            assert_eq!(one, before, "{own} and {other}");
            two.subtract(&both);
            assert_eq!(two, Sketch::default(), "{own} and {other}");
        }
    }

    #[test]
    fn percentiles_of_a_merged_sketch_are_those_of_all_calls() {
        let (mut one, mut other) = (Sketch::default(), Sketch::default());
        (1..=60).for_each(|time| one.add(time * 10));
        (61..=100).for_each(|time| other.add(time * 10));
        one.merge(&other);
        for (percent, exact) in [(50, 505.0), (90, 901.0), (99, 990.1)] {
            let found = one.percentile(percent);
            assert!((found - exact).abs() <= exact * 0.011, "{percent}: {found}");
        }
        assert_eq!(Sketch::default().percentile(99), 0.0);
    }
}
