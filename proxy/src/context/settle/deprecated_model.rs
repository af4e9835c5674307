//! What an answer says of a model that its provider no longer promises. The date stands beside the price of the model, so
//! that an answer whose cost is worked out for its head costs one comparison more.

use super::Log;
use crate::limits::admission::Tariff;

impl Log {
    /// A warning for the answer of the present target, once, if its model is past its deprecation date.
    pub fn deprecation_warning(&mut self, tariff: &Tariff) -> Option<String> {
        let attempt = self.attempt.as_mut().filter(|attempt| attempt.row.is_some() && !attempt.is_hit)?;
        let date = match attempt.past_date {
            Some(date) => date?,
            None => {
                let date = tariff.past_date(&attempt.used(None, 200).item);
                attempt.past_date = Some(date);
                date?
            }
        };
        attempt.past_date = Some(None);
        let model = attempt.model.as_deref()?;
        Some(format!("model: {model} is past its deprecation date {date}"))
    }
}
