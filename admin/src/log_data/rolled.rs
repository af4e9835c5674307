//! Measures of what is added up already: what `measure` says in SQL over logs, over the figures of slots.

use rust_decimal::Decimal;
use shared::db::usage_slots::{Figures, MONEY_SCALE, SlotDimension};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rolled {
    Requests,
    Cost,
    AvgCost,
    SavedCost,
    Tokens,
    AvgTokens,
    AvgInputTokens,
    AvgOutputTokens,
    AvgLatency,
    /// So many percent of calls are not slower.
    Latency(u8),
    Users,
    UserRequests,
    RequestsPerUser,
    Errors,
    ErrorRate,
    SuccessRate,
    ErrorCodes,
    Retried,
    Fallen,
    Hits,
    SimpleHits,
    SemanticHits,
    HitRate,
    SimpleSaved,
    SemanticSaved,
    HitLatency,
    OtherLatency,
    FirstSeen,
    LastSeen,
}

impl Rolled {
    /// What must be told apart for it, because it is how many of them there are.
    pub fn divided_by(self) -> Option<SlotDimension> {
        match self {
            Self::Users | Self::RequestsPerUser => Some(SlotDimension::User),
            Self::ErrorCodes => Some(SlotDimension::StatusCode),
            _ => None,
        }
    }

    /// Whether it is made of nothing but numbers of requests, by user.
    pub fn is_of_requests(self) -> bool {
        matches!(self, Self::Requests | Self::Users | Self::UserRequests | Self::RequestsPerUser)
    }

    pub fn is_percentile(self) -> bool {
        matches!(self, Self::Latency(_))
    }

    /// `different` is how many values there are of what it is divided by.
    pub fn value(self, of: &Figures, different: u64) -> Decimal {
        let hits = of.simple_hits + of.semantic_hits;
        match self {
            Self::Requests => of.requests.into(),
            Self::Cost => cents(of.cost),
            Self::AvgCost => ratio(cents(of.cost), of.requests),
            Self::SavedCost => cents(of.saved),
            Self::Tokens => Decimal::from(of.req_units) + Decimal::from(of.res_units),
            Self::AvgTokens => ratio(Decimal::from(of.req_units) + Decimal::from(of.res_units), of.requests),
            Self::AvgInputTokens => ratio(of.req_units.into(), of.requests),
            Self::AvgOutputTokens => ratio(of.res_units.into(), of.requests),
            Self::AvgLatency => ratio(of.response_time.into(), of.requests),
            Self::Latency(percent) => {
                Decimal::from_f64_retain(of.sketch.percentile(percent)).unwrap_or_default().round_dp(10)
            }
            Self::Users | Self::ErrorCodes => different.into(),
            Self::UserRequests => of.user_requests.into(),
            Self::RequestsPerUser => ratio(of.user_requests.into(), different),
            Self::Errors => of.errors.into(),
            Self::ErrorRate => percent(of.errors, of.requests),
            Self::SuccessRate => percent(of.requests.saturating_sub(of.errors), of.requests),
            Self::Retried => of.retried.into(),
            Self::Fallen => of.fallen.into(),
            Self::Hits => hits.into(),
            Self::SimpleHits => of.simple_hits.into(),
            Self::SemanticHits => of.semantic_hits.into(),
            Self::HitRate => percent(hits, of.requests),
            Self::SimpleSaved => cents(of.simple_saved),
            Self::SemanticSaved => cents(of.semantic_saved),
            Self::HitLatency => ratio(of.hit_time.into(), hits),
            Self::OtherLatency => {
                ratio(of.response_time.saturating_sub(of.hit_time).into(), of.requests.saturating_sub(hits))
            }
            Self::FirstSeen => moment(of, of.first_seen),
            Self::LastSeen => moment(of, of.last_seen),
        }
    }
}

/// More money than there is stays the most that can be written.
fn cents(units: u128) -> Decimal {
    let units = i128::try_from(units).unwrap_or(i128::MAX);
    Decimal::try_from_i128_with_scale(units, MONEY_SCALE).unwrap_or(Decimal::MAX)
}

fn ratio(part: Decimal, whole: u64) -> Decimal {
    part.checked_div(whole.into()).unwrap_or_default().round_dp(10)
}

fn percent(part: u64, whole: u64) -> Decimal {
    ratio(Decimal::from(part) * Decimal::ONE_HUNDRED, whole)
}

/// In milliseconds since 1970; 0 for never.
fn moment(of: &Figures, micros: i64) -> Decimal {
    if of.requests == 0 { Decimal::ZERO } else { Decimal::new(micros, 3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_of_nothing_are_zero() {
        for rolled in [
            Rolled::AvgCost,
            Rolled::Latency(99),
            Rolled::RequestsPerUser,
            Rolled::ErrorRate,
            Rolled::HitLatency,
            Rolled::OtherLatency,
            Rolled::LastSeen,
        ] {
            assert_eq!(rolled.value(&Figures::default(), 0), Decimal::ZERO, "{rolled:?}");
        }
    }

    #[test]
    fn shares_and_averages_are_of_all_calls() {
        let figures = Figures {
            requests: 8,
            errors: 2,
            req_units: 30,
            res_units: 10,
            cost: 35_000_000_000,
            simple_hits: 1,
            semantic_hits: 1,
            response_time: 900,
            hit_time: 60,
            ..Figures::default()
        };
        for (rolled, expected) in [
            (Rolled::Cost, "3.5"),
            (Rolled::AvgCost, "0.4375"),
            (Rolled::AvgTokens, "5"),
            (Rolled::ErrorRate, "25"),
            (Rolled::SuccessRate, "75"),
            (Rolled::HitRate, "25"),
            (Rolled::HitLatency, "30"),
            (Rolled::OtherLatency, "140"),
            (Rolled::Users, "3"),
        ] {
            assert_eq!(rolled.value(&figures, 3), expected.parse().unwrap(), "{rolled:?}");
        }
    }
}
