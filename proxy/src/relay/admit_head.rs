//! Limits of calls whose body nobody reads: they are asked by the head alone.

use super::RelayAsk;
use super::upgrade;
use crate::context::Visit;
use crate::context::settle::PaidRoute;
use crate::engine::Admitter;
use crate::limits::admission::{Amounts, ApplicableLimit};
use crate::limits::{LimitKind, Unit};
use crate::request::refusal::Refusal;
use pingora_http::RequestHeader;
use shared::providers::Family;
use std::borrow::Cow;

impl Admitter {
    /// On the relay lane: nobody knows what its body says.
    pub async fn admit_head(&self, head: &RequestHeader, visit: &mut Visit, ask: &RelayAsk) -> Result<(), Refusal> {
        self.admit_priced_head(head, visit, ask, HeadPrice::of_call(head, &ask.path)).await
    }

    /// What the gateway keeps itself costs nothing; rows of batches are admitted when they are run.
    pub async fn admit_own(&self, head: &RequestHeader, visit: &mut Visit, ask: &RelayAsk) -> Result<(), Refusal> {
        self.admit_priced_head(head, visit, ask, HeadPrice::Free).await
    }

    async fn admit_priced_head(
        &self,
        head: &RequestHeader,
        visit: &mut Visit,
        ask: &RelayAsk,
        price: HeadPrice,
    ) -> Result<(), Refusal> {
        let family = Family::from_path(&head.method, &ask.path).map(|(family, _)| family);
        let wanted = self.wanted(visit, &ask.caller, &ask.metadata, family);
        upgrade::check_counted(head, &ask.path, &wanted)?;
        let wanted = price.asks(&wanted);
        match wanted.is_empty() {
            true => Ok(()),
            false => self.reserve(visit, &wanted, price.amounts(), false).await,
        }
    }
}

/// What is known of the price of a relayed call, whose body nobody reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadPrice {
    /// It keeps, deletes or stops something.
    Free,
    /// It looks something up. What it reads may report what was used by somebody who did not wait for it.
    Lookup,
    Unknown,
}

impl HeadPrice {
    pub fn of_call(head: &RequestHeader, path: &str) -> Self {
        if head.headers.contains_key(http::header::UPGRADE) || !PaidRoute::is_free(&head.method, path) {
            return Self::Unknown;
        }
        if head.method.is_safe() { Self::Lookup } else { Self::Free }
    }

    /// Those of the limits that are asked: whoever counts calls counts every one.
    pub fn asks<'w>(self, wanted: &'w [ApplicableLimit]) -> Cow<'w, [ApplicableLimit]> {
        let is_asked = |one: &&ApplicableLimit| {
            let is_strict = matches!(one.limit.kind, LimitKind::Budget { strict: true, .. });
            one.limit.counter.unit() == Unit::Requests || (self == Self::Lookup && !is_strict)
        };
        match self {
            Self::Unknown => Cow::Borrowed(wanted),
            Self::Free | Self::Lookup => Cow::Owned(wanted.iter().filter(is_asked).cloned().collect()),
        }
    }

    pub fn amounts(self) -> Amounts {
        Amounts { nano_cents: (self != Self::Unknown).then_some(1), ..Amounts::default() }
    }
}
