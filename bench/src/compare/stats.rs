//! Medians and spreads: machine noise is 20–30 %, so no single number is ever shown alone.

use serde::Serialize;

/// The middle of several measurements, and how far they went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Some(Self { median: percentile(&values, 0.5)?, min: *values.first()?, max: *values.last()? })
    }
}

/// Of sorted values, between neighbours in proportion.
pub fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(below + (above - below) * place.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(Spread::of([7.0]).map(|spread| spread.median), Some(7.0));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn the_last_percentile_is_the_largest_value() {
        assert_eq!(percentile(&[1.0, 2.0, 10.0], 1.0), Some(10.0));
        assert_eq!(percentile(&[1.0, 2.0, 10.0], 0.75), Some(6.0));
    }
}
