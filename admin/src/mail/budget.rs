//! Letters about a budget: that it goes to its end, and that it has.

use super::Letter;
use super::webhook::RECIPIENT;
use crate::limits::{BudgetCrossing, BudgetMarks, UsageKind};
use rust_decimal::RoundingStrategy::MidpointAwayFromZero;
use serde_json::json;
use shared::amount::Amount;
use shared::model::policy::BudgetKind;
use uuid::Uuid;

pub const KIND_THRESHOLD: &str = "budget threshold";
pub const KIND_EXHAUSTED: &str = "budget exhausted";

/// What a letter is about.
pub struct BudgetNotice<'a> {
    /// As people call it: `API key ci`.
    pub subject: &'a str,
    pub kind: BudgetKind,
    pub marks: BudgetMarks,
    pub used: Amount,
    /// Where it is changed: `PUT /v1/api-keys/…`.
    pub at: &'a str,
    /// Nothing is refused because of it.
    pub is_dry_run: bool,
}

impl From<UsageKind> for BudgetKind {
    fn from(kind: UsageKind) -> Self {
        match kind {
            UsageKind::Cost => Self::Cost,
            UsageKind::Tokens => Self::Tokens,
        }
    }
}

/// The same as facts for programs, to go to the webhook.
pub fn posted(
    organisation: Uuid,
    workspace: Option<Uuid>,
    notice: &BudgetNotice<'_>,
    crossing: BudgetCrossing,
) -> Letter {
    let Letter { subject, text, kind, .. } = letter(RECIPIENT.to_owned(), notice, crossing);
    let (event, unit) = (
        match crossing {
            BudgetCrossing::Threshold => "threshold_reached",
            BudgetCrossing::Exhausted => "limit_reached",
        },
        match notice.kind {
            BudgetKind::Cost => "dollar",
            BudgetKind::Tokens => "token",
            BudgetKind::Requests => "request",
        },
    );
    let facts = json!({
        "object": "budget-alert",
        "event": event,
        "organisation_id": organisation,
        "workspace_id": workspace,
        "subject": subject,
        "text": text,
        "unit": unit,
        "credit_limit": notice.marks.credit_limit,
        "alert_threshold": notice.marks.alert_threshold,
        "current_usage": notice.used,
        "is_dry_run": notice.is_dry_run,
    });
    Letter { to: RECIPIENT.to_owned(), subject, text: facts.to_string(), kind }
}

pub fn letter(to: String, budget: &BudgetNotice<'_>, crossing: BudgetCrossing) -> Letter {
    let BudgetNotice { subject, kind, marks, used, at, is_dry_run } = budget;
    let amount = |value: Amount| match kind {
        BudgetKind::Cost => format!("${}", Amount(value.0.round_dp_with_strategy(2, MidpointAwayFromZero))),
        BudgetKind::Tokens => format!("{value} tokens"),
        BudgetKind::Requests => format!("{value} requests"),
    };
    let limit = amount(marks.credit_limit.unwrap_or_default());
    let (subject, happened, kind) = match crossing {
        BudgetCrossing::Threshold => (
            format!("The budget of {subject} goes to its end"),
            format!(
                "It has used {} of {limit} and reached its alert threshold, {}.",
                amount(*used),
                amount(marks.alert_threshold.unwrap_or_default())
            ),
            KIND_THRESHOLD,
        ),
        BudgetCrossing::Exhausted => {
            let follows = if *is_dry_run {
                "It is a dry run: nothing is refused."
            } else {
                "Requests are refused (412) until it is reset or raised."
            };
            (
                format!("The budget of {subject} is used up"),
                format!("It has used {} of {limit}. {follows}", amount(*used)),
                KIND_EXHAUSTED,
            )
        }
    };
    let text = format!("This is about the budget of {subject} on Portcullis.\n\n{happened}\nTo raise it: {at}\n");
    Letter { to, subject, text, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_says_what_is_used_of_what_and_what_follows() {
        let marks =
            BudgetMarks { credit_limit: Some(10.into()), alert_threshold: Some(8.into()), ..BudgetMarks::default() };
        let cost = |is_dry_run| BudgetNotice {
            subject: "API key ci",
            kind: BudgetKind::Cost,
            marks,
            used: Amount("8.0533".parse().unwrap()),
            at: "PUT /v1/api-keys/k",
            is_dry_run,
        };
        let near = letter("a@x.test".into(), &cost(false), BudgetCrossing::Threshold);
        assert_eq!(near.subject, "The budget of API key ci goes to its end");
        assert!(near.text.contains("has used $8.05 of $10 and reached its alert threshold, $8."), "{}", near.text);
        let over = letter("a@x.test".into(), &cost(false), BudgetCrossing::Exhausted);
        assert!(over.text.contains("refused (412)") && over.text.contains("PUT /v1/api-keys/k"), "{}", over.text);
        assert!(letter("a@x.test".into(), &cost(true), BudgetCrossing::Exhausted).text.contains("nothing is refused"));
        let tokens = BudgetNotice { kind: BudgetKind::Tokens, used: 9.into(), ..cost(false) };
        assert!(letter("a@x.test".into(), &tokens, BudgetCrossing::Threshold).text.contains("9 tokens of 10 tokens"));
    }
}
