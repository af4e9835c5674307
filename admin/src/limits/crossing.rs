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
mod tests;
