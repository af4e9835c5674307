//! Which of several versions a label points to, by weight: so that a new version of a prompt is tried on a part of the
//! calls. Pure, without memory and alike on all replicas: each version draws a number from the key, stretched by its
//! weight, and the highest wins (rendezvous hashing, as sticky routing does it). A version whose weight grows takes keys
//! from others; no key moves between the others.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Versions that one label may point to, and the weight of each.
pub const MAX_PARTS: usize = 20;
pub const MAX_WEIGHT: u32 = 1_000_000;

/// What calls stick by: the user (`_user` of the metadata) or else the trace. With prompt and label, so that one user
/// does not meet the same side of every split.
pub fn sticky_key(prompt: Uuid, label: &str, user_or_trace: &str) -> String {
    format!("{prompt}/{label}/{user_or_trace}")
}

/// The version of a `(version, weight)` list that this key always meets, as long as the list stays. None of an empty
/// list; where nothing has any weight, the first.
pub fn choose(versions: &[(i32, u32)], sticky_key: &str) -> Option<i32> {
    let first = versions.first().map(|(version, _)| *version);
    if versions.len() < 2 {
        return first;
    }
    let weighed = versions.iter().filter(|(_, weight)| *weight > 0);
    let drawn = weighed.map(|(version, weight)| (*version, -f64::from(*weight) / fraction(sticky_key, *version).ln()));
    let chosen = drawn.max_by(|(_, one), (_, other)| one.total_cmp(other));
    chosen.map_or(first, |(version, _)| Some(version))
}

/// A number in 0..1 from key and version, never either end.
fn fraction(key: &str, version: i32) -> f64 {
    let hash: [u8; 32] = Sha256::new().chain_update(version.to_be_bytes()).chain_update(key).finalize().into();
    let number = u64::from_be_bytes([hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]]);
    ((number >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_version_is_always_met_and_none_has_no_choice() {
        assert_eq!(choose(&[], "k"), None);
        assert_eq!(choose(&[(3, 0)], "k"), Some(3));
        assert_eq!(choose(&[(3, 0), (4, 0)], "k"), Some(3), "nothing has any weight");
        for key in 0..1000 {
            assert_eq!(choose(&[(3, 0), (4, 1)], &key.to_string()), Some(4), "{key}");
        }
    }

    /// What other replicas, and other releases, must agree with.
    #[test]
    fn the_choice_of_a_key_is_the_same_everywhere() {
        let chosen: Vec<_> = (0..12).map(|n| choose(&[(3, 50), (4, 50)], &format!("user-{n}"))).collect();
        let again: Vec<_> = (0..12).map(|n| choose(&[(4, 50), (3, 50)], &format!("user-{n}"))).collect();
        assert_eq!(chosen, again, "the order of the list means nothing");
        assert!(chosen.contains(&Some(3)) && chosen.contains(&Some(4)), "{chosen:?}");
    }

    #[test]
    fn a_growing_version_takes_keys_from_others_and_gives_none_back() {
        for key in (0..5000).map(|n| n.to_string()) {
            let (before, after) = (choose(&[(3, 90), (4, 10)], &key), choose(&[(3, 50), (4, 50)], &key));
            assert!(before == Some(3) || after == Some(4), "{key}");
            let beside = choose(&[(3, 90), (4, 10), (5, 40)], &key);
            assert!(beside == before || beside == Some(5), "{key}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Six standard deviations of a fair draw, and some for shares so small that they are no bell: only wrong shares
        /// fail.
        #[test]
        fn each_version_is_met_as_often_as_it_weighs(weights in prop::collection::vec(0u32..=1000, 1..=6), salt: u32) {
            const KEYS: u32 = 4000;
            let versions: Vec<(i32, u32)> = (1..).zip(weights.iter().copied()).collect();
            let total: u32 = weights.iter().sum();
            prop_assume!(total > 0);
            let mut met = vec![0u32; weights.len()];
            for n in 0..KEYS {
                let version = choose(&versions, &format!("{salt}/{n}")).unwrap();
                met[usize::try_from(version - 1).unwrap()] += 1;
            }
            for (weight, met) in weights.iter().zip(met) {
                let share = f64::from(*weight) / f64::from(total);
                let expected = share * f64::from(KEYS);
                let most = 6.0 * (f64::from(KEYS) * share * (1.0 - share)).sqrt() + 8.0;
                prop_assert!((f64::from(met) - expected).abs() <= most, "{} met {} of {}", weight, met, expected);
            }
        }
    }
}
