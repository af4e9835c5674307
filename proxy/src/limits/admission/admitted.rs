//! What was reserved for an admitted request, from its admission to its record: which counters its records are charged
//! to, and what is settled when it is over. Dropped unsettled, everything is given back.

use super::amounts::{Amounts, Item, Tariff};
use crate::limits::charge::{Charge, Charges};
use crate::limits::usage::UsageReader;
use crate::limits::{RateHeaders, Reservation, Spent, Unit};
use http::HeaderValue;
use shared::cost::Usage;
use std::sync::Arc;

pub struct Admission {
    tariff: Arc<Tariff>,
    /// Of the limits that were looked at before a target was chosen.
    request: Option<Reservation>,
    /// Those of them that must never be overspent: what they promised is for one call.
    strict: Option<Reservation>,
    /// They were used up by a call that another one follows.
    owes_strict: bool,
    /// Of those of the present target.
    attempt: Option<Reservation>,
    /// Which target that is.
    option: Option<HeaderValue>,
    /// What targets used that others took the place of.
    before: Spent,
    amounts: Amounts,
    /// Tokens that the present call's answer may have, where it is bounded.
    most_answer: u64,
    /// The answer came from the cache: it counts as a request, and used neither tokens nor money.
    is_hit: bool,
    /// The status of the client's rates, for the head of the answer.
    pub shown: RateHeaders,
}

/// What a target is known to have used.
pub struct Used<'u> {
    pub found: &'u UsageReader,
    pub guess: Option<(u64, u64)>,
    pub item: Item<'u>,
    /// What the call costs by itself, in nano-cents, where no list has its price; 0 where its outcome makes nothing due.
    pub own_price: Option<u64>,
    /// What was worked out before, for whoever got the answer.
    pub priced: Option<u64>,
}

impl Admission {
    pub fn new(tariff: Arc<Tariff>) -> Self {
        Self {
            tariff,
            request: None,
            strict: None,
            owes_strict: false,
            attempt: None,
            option: None,
            before: Spent::default(),
            amounts: Amounts::default(),
            most_answer: 0,
            is_hit: false,
            shown: RateHeaders::default(),
        }
    }

    pub fn admit(&mut self, mut reservation: Reservation, amounts: Amounts) {
        self.amounts = amounts;
        self.strict = reservation.take_strict();
        self.request = Some(reservation);
    }

    /// What strict budgets must promise again before the next call leaves: the call before was paid.
    pub fn owed(&self) -> Option<Amounts> {
        self.owes_strict.then_some(self.amounts)
    }

    pub fn admit_again(&mut self, strict: Reservation) {
        (self.strict, self.owes_strict) = (Some(strict), false);
    }

    /// Whether what was promised is for one call of the present target, and not for a second beside it.
    pub fn binds_each_call(&self) -> bool {
        self.strict.is_some() || self.attempt.is_some()
    }

    pub fn admit_attempt(&mut self, reservation: Reservation, option: HeaderValue) {
        (self.attempt, self.option) = (Some(reservation), Some(option));
    }

    /// Another target is turned to, and there is no record that would say what the one before used.
    pub fn leave_attempt_unless(&mut self, option: &HeaderValue) {
        if self.option.as_ref().is_some_and(|admitted| admitted != option)
            && let Some(attempt) = self.attempt.take()
        {
            attempt.settle(Spent { requests: 1, ..Spent::default() });
        }
    }

    /// Whether the present target was let pass already: a retry goes on with what it was promised.
    pub fn has_attempt(&self) -> bool {
        self.attempt.is_some()
    }

    pub fn give_attempt_back(&mut self) {
        self.attempt = None;
    }

    /// The answer comes from the cache.
    pub fn hits(&mut self) {
        self.is_hit = true;
    }

    /// The counters of a record. Where another target takes over, the request is not counted yet.
    pub fn charges(&self, is_last: bool) -> Charges<'static> {
        let request = self.request.iter().flat_map(Reservation::charges);
        let request = request.filter(|due| is_last || due.counter.unit() != Unit::Requests);
        let all = request.chain(self.strict.iter().chain(&self.attempt).flat_map(Reservation::charges));
        all.filter(|due| !self.is_hit || due.counter.unit() == Unit::Requests).map(Charge::from).collect()
    }

    /// The call that is about to leave may be answered with so many tokens at most.
    pub fn expects(&mut self, amounts: &Amounts) {
        self.most_answer = self.most_answer.max(amounts.most_answer);
    }

    pub fn most_answer(&self) -> u64 {
        self.most_answer
    }

    /// What strict budgets promised to the call that is about to leave; none without any.
    pub fn promises(&self) -> Option<(Charges<'static>, Vec<u64>)> {
        let held = || self.request.iter().chain(&self.strict).chain(&self.attempt);
        let promises = || held().flat_map(Reservation::promises);
        promises().next()?;
        Some((promises().map(|(due, _)| Charge::from(due)).collect(), promises().map(|(_, amount)| amount).collect()))
    }

    /// Another target takes the place of the present one, whose record is written.
    pub fn set_aside(&mut self, used: &Used<'_>) {
        let spent = self.spent(used);
        if let Some(attempt) = self.attempt.take() {
            attempt.settle(spent);
        }
        // What used nothing leaves what was promised to the next.
        if spent.tokens > 0 || spent.nano_cents > 0 {
            self.owes_strict = self.strict.is_some();
            self.strict.take().into_iter().for_each(|strict| strict.settle(spent));
        }
        self.add(spent);
    }

    /// A call beside the present one is over, whose record is written.
    pub fn overtakes(&mut self, used: &Used<'_>) {
        let spent = self.spent(used);
        self.add(spent);
    }

    fn add(&mut self, spent: Spent) {
        self.before.tokens = self.before.tokens.saturating_add(spent.tokens);
        self.before.nano_cents = self.before.nano_cents.saturating_add(spent.nano_cents);
    }

    /// The last record is written.
    pub fn settle(mut self: Box<Self>, used: &Used<'_>) {
        self.set_aside(used);
        if let Some(request) = self.request.take() {
            request.settle(Spent { requests: 1, ..self.before });
        }
    }

    /// A limit or a mistake stood against the last target: only what others used before it stays used.
    pub fn give_back(mut self: Box<Self>) {
        if let Some(request) = self.request.take() {
            request.settle(self.before);
        }
    }

    /// The request is over, and what it used is unknown.
    pub fn settle_unseen(mut self: Box<Self>) {
        let spent = match self.is_hit {
            true => Spent { requests: 1, ..self.before },
            false => Spent {
                requests: 1,
                tokens: self.amounts.tokens.unwrap_or(0),
                nano_cents: self.amounts.nano_cents.unwrap_or(0),
            },
        };
        for reservation in [self.attempt.take(), self.strict.take(), self.request.take()].into_iter().flatten() {
            reservation.settle(spent);
        }
    }

    fn spent(&self, used_up: &Used<'_>) -> Spent {
        if self.is_hit {
            return Spent { requests: 1, ..Spent::default() };
        }
        let held = || self.request.iter().chain(&self.strict).chain(&self.attempt);
        let costs = held().any(|reservation| reservation.is_of(Unit::Cost));
        if !costs && !held().any(|reservation| reservation.is_of(Unit::Tokens)) {
            return Spent { requests: 1, ..Spent::default() };
        }
        let usage = Usage::known(used_up.found.reported_usage(), used_up.guess);
        let tokens = usage.prompt_tokens().saturating_add(usage.completion_tokens());
        let nano_cents = match costs && !usage.is_nothing() {
            _ if used_up.own_price.is_some() => used_up.own_price.unwrap_or(0),
            true if used_up.priced.is_some() => used_up.priced.unwrap_or(0),
            true => {
                let prices = self.tariff.sources.known(used_up.item.service);
                self.tariff.nano_cents(&usage, &used_up.item, prices.as_deref()).unwrap_or(0)
            }
            false => 0,
        };
        Spent { requests: 1, tokens, nano_cents }
    }
}
