//! Which crossings are reported, and when again.

use super::*;

fn amount(number: f64) -> Amount {
    Amount::from_float(number).unwrap()
}

fn marks(limit: f64, threshold: Option<f64>, sent: (bool, bool)) -> BudgetMarks {
    BudgetMarks {
        credit_limit: Some(amount(limit)),
        alert_threshold: threshold.map(amount),
        is_threshold_alerts_sent: sent.0,
        is_exhausted_alerts_sent: sent.1,
    }
}

#[test]
fn each_mark_is_told_of_once_when_it_is_reached() {
    use BudgetCrossing::{Exhausted, Threshold};
    for (threshold, sent, used, expected) in [
        (Some(5.0), (false, false), 4.99, None),
        (Some(5.0), (false, false), 5.0, Some(Threshold)),
        (Some(5.0), (true, false), 9.99, None),
        (Some(5.0), (true, false), 10.0, Some(Exhausted)),
        (Some(5.0), (false, false), 11.0, Some(Exhausted)),
        (Some(5.0), (true, true), 11.0, None),
        (None, (false, false), 9.0, None),
        (None, (false, false), 10.0, Some(Exhausted)),
    ] {
        let marks = marks(10.0, threshold, sent);
        let used = amount(used);
        let crossed = marks.crossed(used);
        assert_eq!(crossed, expected, "{threshold:?} {sent:?} {used}");
        if let Some(crossing) = crossed {
            assert_eq!(marks.after_alert(crossing).crossed(used), None, "told twice: {threshold:?} {sent:?} {used}");
        }
    }
    let boundless = BudgetMarks { alert_threshold: None, credit_limit: None, ..marks(1.0, None, (false, false)) };
    assert_eq!(boundless.crossed(amount(1e15)), None);
}

#[test]
fn a_raised_limit_clears_both_alerts_and_a_raised_threshold_its_own() {
    let old = marks(10.0, Some(5.0), (true, true));
    for (limit, threshold, expected) in [
        (20.0, Some(5.0), (false, false)),
        // Also while nothing is left: whoever raised it too little hears so again.
        (10.25, Some(5.0), (false, false)),
        (10.0, Some(7.0), (false, true)),
        (10.0, None, (false, true)),
        (10.0, Some(4.0), (true, true)),
        (9.0, Some(5.0), (true, true)),
    ] {
        let new = marks(limit, threshold, (false, false)).replacing(&old);
        assert_eq!((new.is_threshold_alerts_sent, new.is_exhausted_alerts_sent), expected, "{limit} {threshold:?}");
    }
}
