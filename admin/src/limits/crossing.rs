//! Whether usage crosses a budget's threshold or limit; each crossing is reported once.

use shared::amount::Amount;

/// A budget's threshold and limit, and which alerts about them were sent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetMarks {
    pub credit_limit: Option<Amount>,
    pub alert_threshold: Option<Amount>,
    pub is_threshold_alerts_sent: bool,
    pub is_exhausted_alerts_sent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetCrossing {
    Threshold,
    Exhausted,
}

impl BudgetMarks {
    pub fn is_exhausted(&self, used: Amount) -> bool {
        self.credit_limit.is_some_and(|limit| used >= limit)
    }

    /// The alert to send now, if any. The alert that the limit is reached replaces the one about the threshold.
    pub fn crossed(&self, used: Amount) -> Option<BudgetCrossing> {
        if self.is_exhausted(used) {
            return (!self.is_exhausted_alerts_sent).then_some(BudgetCrossing::Exhausted);
        }
        let is_reached = self.alert_threshold.is_some_and(|threshold| used >= threshold);
        (is_reached && !self.is_threshold_alerts_sent).then_some(BudgetCrossing::Threshold)
    }

    /// The same after the alert was sent.
    pub fn after_alert(mut self, crossing: BudgetCrossing) -> Self {
        self.is_threshold_alerts_sent |= self.alert_threshold.is_some();
        self.is_exhausted_alerts_sent |= crossing == BudgetCrossing::Exhausted;
        self
    }

    /// These marks in the place of `old`: an alert that was sent is sent again when what it was about was raised, and
    /// raising the limit is about both.
    pub fn replacing(mut self, old: &Self) -> Self {
        self.is_threshold_alerts_sent = old.is_threshold_alerts_sent;
        self.is_exhausted_alerts_sent = old.is_exhausted_alerts_sent;
        if is_raised(self.credit_limit, old.credit_limit) {
            (self.is_threshold_alerts_sent, self.is_exhausted_alerts_sent) = (false, false);
        }
        if is_raised(self.alert_threshold, old.alert_threshold) {
            self.is_threshold_alerts_sent = false;
        }
        self
    }
}

/// None is further away than any amount.
pub fn is_raised(new: Option<Amount>, old: Option<Amount>) -> bool {
    match (new, old) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(new), Some(old)) => new > old,
    }
}

#[cfg(test)]
mod tests {
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
                assert_eq!(
                    marks.after_alert(crossing).crossed(used),
                    None,
                    "told twice: {threshold:?} {sent:?} {used}"
                );
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
}
