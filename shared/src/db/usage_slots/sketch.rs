//! How response times are spread: how many calls lie in each of fixed buckets. Times of one bucket are within 1 % of the one it stands
//! for, and sketches are merged by adding.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sketch {
    /// Numbers of buckets, rising, and how many calls are in each.
    pub(super) buckets: Vec<(i16, u64)>,
}

/// A bucket is so many times as wide as the one before.
const STEP: f64 = 1.02;
/// One that is so many times shorter is added bucket by bucket.
const SEARCHED: usize = 16;

impl Sketch {
    pub fn add(&mut self, millis: i32) {
        self.add_calls(bucket(millis), 1);
    }

    pub fn merge(&mut self, other: &Self) {
        if other.buckets.len() < self.buckets.len() / SEARCHED {
            return other.buckets.iter().for_each(|(bucket, calls)| self.add_calls(*bucket, *calls));
        }
        // From the last to the first, into the room behind, so that nothing is moved twice.
        let (mut mine, mut theirs) = (self.buckets.len(), other.buckets.len());
        let mut end = mine + self.missing(other);
        self.buckets.resize(end, (0, 0));
        while theirs > 0 {
            let (bucket, calls) = other.buckets[theirs - 1];
            let own = mine.checked_sub(1).map(|last| self.buckets[last]);
            let merged = match own {
                Some(own) if own.0 > bucket => own,
                Some(own) if own.0 == bucket => (bucket, own.1 + calls),
                _ => (bucket, calls),
            };
            theirs -= usize::from(merged.0 == bucket);
            mine -= usize::from(own.is_some_and(|own| own.0 == merged.0));
            end -= 1;
            self.buckets[end] = merged;
        }
    }

    /// Takes away what was added before.
    pub fn subtract(&mut self, other: &Self) {
        let mut at = 0;
        for (bucket, calls) in &other.buckets {
            while self.buckets.get(at).is_some_and(|(one, _)| one < bucket) {
                at += 1;
            }
            if let Some((one, sum)) = self.buckets.get_mut(at)
                && one == bucket
            {
                *sum = sum.saturating_sub(*calls);
            }
        }
        self.buckets.retain(|(_, calls)| *calls > 0);
    }

    /// How many buckets only the other has.
    fn missing(&self, other: &Self) -> usize {
        let mut own = self.buckets.iter().map(|(bucket, _)| *bucket).peekable();
        let is_missing = |(bucket, _): &&(i16, u64)| {
            while own.next_if(|one| one < bucket).is_some() {}
            own.peek() != Some(bucket)
        };
        other.buckets.iter().filter(is_missing).count()
    }

    fn add_calls(&mut self, bucket: i16, calls: u64) {
        match self.buckets.binary_search_by_key(&bucket, |(one, _)| *one) {
            Ok(place) => self.buckets[place].1 += calls,
            Err(place) => self.buckets.insert(place, (bucket, calls)),
        }
    }

    /// The time that so many percent of calls do not exceed, between the two calls that it stands between. 0 of nothing.
    pub fn percentile(&self, percent: u8) -> f64 {
        let calls: u64 = self.buckets.iter().map(|(_, calls)| calls).sum();
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
        for (bucket, calls) in &self.buckets {
            passed += calls;
            if passed > place {
                return millis(*bucket);
            }
        }
        0.0
    }
}

/// What takes no time has a bucket of its own.
fn bucket(millis: i32) -> i16 {
    if millis <= 0 { -1 } else { (f64::from(millis).ln() / STEP.ln()).ceil() as i16 }
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
        assert_eq!(millis(bucket(0)), 0.0);
    }

    #[test]
    fn sketches_are_merged_alike_however_long_they_are() {
        for (own, other) in [(0, 0), (0, 3), (3, 0), (1, 1), (5, 3), (3, 5), (200, 2), (2, 200), (90, 110)] {
            let (mut one, mut two, mut both) = (Sketch::default(), Sketch::default(), Sketch::default());
            (0..own).map(|n| n * 37 % 1000).for_each(|time| one.add(time));
            (0..other).map(|n| n * 53 % 1100).for_each(|time| two.add(time));
            (0..own).map(|n| n * 37 % 1000).chain((0..other).map(|n| n * 53 % 1100)).for_each(|time| both.add(time));
            one.merge(&two);
            assert_eq!(one, both, "{own} and {other}");
            one.subtract(&two);
            two.subtract(&both);
            let first = (0..own).map(|n| n * 37 % 1000).fold(Sketch::default(), |mut first, time| {
                first.add(time);
                first
            });
            assert_eq!((one, two), (first, Sketch::default()), "{own} and {other}, taken away");
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
