//! How much of what is left a replica gets. Whole leftovers would leave the others nothing; crumbs would keep everybody
//! waiting for the store. So pieces shrink with what is left, which also lets the end of a window be used up.

/// What the store knows of a counter when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStanding {
    /// Used, and settled.
    pub value: u64,
    /// In leases that are open, of everybody.
    pub promised: u64,
}

/// What a replica asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// What it would like to have.
    pub want: u64,
    /// What its largest waiting request lacks.
    pub need: u64,
    pub cap: u64,
}

/// What it gets, and what nobody has after that. Less than its request lacks would only lie with it, and two that each
/// hold a part of the last piece would wait for one another for ever.
pub fn grant(standing: StoreStanding, wish: Wish, replicas: u64) -> (u64, u64) {
    let left = wish.cap.saturating_sub(standing.value).saturating_sub(standing.promised);
    let piece = left / replicas.max(1).saturating_mul(2);
    let granted = if wish.need > left { 0 } else { wish.want.min(piece).max(wish.need).max(1).min(left) };
    (granted, left - granted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pieces_shrink_with_what_is_left_but_a_waiting_request_gets_what_it_lacks() {
        for (value, promised, want, need, expected) in [
            (0, 0, 500, 0, (166, 834)),
            (0, 0, 20, 0, (20, 980)),
            (900, 0, 500, 0, (16, 84)),
            (900, 94, 500, 0, (1, 5)),
            (900, 94, 500, 4, (4, 2)),
            (900, 94, 500, 40, (0, 6)),
            (900, 100, 500, 40, (0, 0)),
            (900, 300, 500, 40, (0, 0)),
        ] {
            let found = grant(StoreStanding { value, promised }, Wish { want, need, cap: 1000 }, 3);
            assert_eq!(found, expected, "{value} used, {promised} promised, {want} wanted, {need} needed");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_promised_twice_or_beyond_the_cap(
            value in any::<u64>(), promised in any::<u64>(), want in any::<u64>(), need in any::<u64>(),
            cap in any::<u64>(), replicas in 0..1000_u64,
        ) {
            let (granted, left) = grant(StoreStanding { value, promised }, Wish { want, need, cap }, replicas);
            let all = [value, promised, granted, left].into_iter().map(u128::from).sum::<u128>();
            prop_assert!(all == u128::from(cap) || granted == 0 && left == 0 && all >= u128::from(cap));
        }
    }
}
