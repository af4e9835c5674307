//! What the present target's answer costs, worked out before the record is written where the answer itself tells it. The same
//! figure settles the budgets.

use super::Log;
use super::attempt::Attempt;
use super::paid_route::PaidRoute;
use crate::context::AnswerCost;
use crate::limits::admission::Tariff;
use crate::limits::usage;
use crate::request::path_spelling::canonical;
use bytes::Bytes;
use shared::cost::Usage;
use shared::providers::BilledBy;

impl Log {
    /// Whose prices hold for the present target; none of what no provider is paid for.
    pub fn paid_service(&self) -> Option<&str> {
        let attempt = self.attempt.as_ref().filter(|attempt| attempt.row.is_some() && !attempt.is_relayed)?;
        (!attempt.is_hit).then_some(attempt.ai_org.as_str())
    }

    /// A plain answer that is whole, before its head leaves: `read` as the provider wrote it, `passed` if the client gets another.
    pub fn price_plain(
        &mut self,
        read: &Bytes,
        passed: Option<&Bytes>,
        status: u16,
        tariff: &Tariff,
    ) -> Option<AnswerCost> {
        let attempt = self.attempt.as_mut().filter(|attempt| attempt.row.is_some() && !attempt.is_relayed)?;
        if attempt.is_hit {
            return Some(AnswerCost::FREE);
        }
        if !(200..300).contains(&status) {
            return None;
        }
        if let Some(passed) = passed {
            attempt.images = usage::images::made(&canonical(self.uri.path()), passed);
        }
        attempt.reads(read, true);
        attempt.is_read = true;
        match attempt.found.usage.is_empty() {
            false => Some(attempt.price(None, tariff)),
            true => self.price_silent(read, tariff),
        }
    }

    /// Of an answer that does not say what it used: what the request says, else a guess from the texts.
    fn price_silent(&mut self, read: &Bytes, tariff: &Tariff) -> Option<AnswerCost> {
        let mut attempt = self.attempt.take()?;
        self.tell_usage(&mut attempt);
        let path = canonical(self.uri.path());
        let route = attempt.row.clone().map(|row| PaidRoute::find(&self.method, &path, &row).billed_by());
        let cost = match (attempt.found.usage.is_empty(), route.flatten()) {
            (false, _) => Some(attempt.price(attempt.is_guessed.then_some((0, 0)), tariff)),
            (true, None) => None,
            (true, Some(BilledBy::Other)) => Some(AnswerCost::UNKNOWN),
            (true, Some(billed)) => {
                let answered = if billed == BilledBy::Text { usage::rough_tokens_of_any(read) } else { 0 };
                Some(attempt.price(Some((usage::rough_tokens_of_any(&self.body), answered)), tariff))
            }
        };
        self.attempt = Some(attempt);
        cost
    }
}

impl Attempt {
    /// By the prices that are in memory. `guess` where it has not said everything.
    pub fn price(&mut self, guess: Option<(u64, u64)>, tariff: &Tariff) -> AnswerCost {
        if self.is_hit {
            return AnswerCost::FREE;
        }
        let usage = Usage::known(self.found.reported_usage(), guess);
        let prices = tariff.sources.known(&self.ai_org);
        let (priced, past_date) = tariff.priced_and_dated(&usage, &self.used(guess, 200).item, prices.as_deref());
        self.past_date = Some(past_date);
        match priced {
            Some((nano_cents, is_complete)) => {
                self.priced = Some((nano_cents, guess));
                if is_complete { AnswerCost::new(nano_cents, guess.is_some()) } else { AnswerCost::UNKNOWN }
            }
            None => AnswerCost::UNKNOWN,
        }
    }
}
