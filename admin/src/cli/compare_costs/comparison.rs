//! A bill and the logs beside each other. A day or a model that only one of them has is shown as well: that is where money is lost.

use super::invoice::Invoice;
use super::model_key;
use crate::log_data::daily_costs::LoggedCost;
use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What stands for charges that name no model.
const NO_MODEL: &str = "(no model)";

#[derive(Debug, Serialize)]
pub struct Comparison {
    pub provider: &'static str,
    pub currency: &'static str,
    pub rows: Vec<ComparedRow>,
    pub total: ComparedAmounts,
}

#[derive(Debug, Serialize)]
pub struct ComparedRow {
    pub day: NaiveDate,
    pub model: String,
    #[serde(flatten)]
    pub amounts: ComparedAmounts,
}

/// Dollars, exact, as text.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct ComparedAmounts {
    /// None where the logs have nothing.
    pub ours: Option<Decimal>,
    /// None where the bill has nothing.
    pub theirs: Option<Decimal>,
    /// What is logged beyond the bill.
    pub difference: Decimal,
    /// Of the bill, to a tenth; none where that is 0.
    pub percent: Option<Decimal>,
    /// Logged calls whose price is not known.
    pub unpriced_calls: i64,
}

impl Comparison {
    pub fn new(invoice: &Invoice, logged: &[LoggedCost]) -> Self {
        let mut rows: BTreeMap<(NaiveDate, String), (String, ComparedAmounts)> = BTreeMap::new();
        let mut total = ComparedAmounts::default();
        // The logs' spelling of a name is the one that is shown.
        for cost in logged {
            let row = rows.entry((cost.day, model_key::key(&cost.model)));
            let (_, amounts) = row.or_insert_with(|| (model_key::label(&cost.model), ComparedAmounts::default()));
            for amounts in [amounts, &mut total] {
                add(&mut amounts.ours, cost.dollars);
                amounts.unpriced_calls += cost.unpriced;
            }
        }
        for charge in &invoice.charges {
            let row = rows.entry((charge.day, model_key::key(&charge.model)));
            let (_, amounts) = row.or_insert_with(|| (model_key::label(&charge.model), ComparedAmounts::default()));
            for amounts in [amounts, &mut total] {
                add(&mut amounts.theirs, charge.dollars);
            }
        }
        let rows = rows.into_iter().map(|((day, _), (model, amounts))| {
            let model = if model.is_empty() { NO_MODEL.to_owned() } else { model };
            ComparedRow { day, model, amounts: amounts.compared() }
        });
        Self { provider: invoice.provider, currency: "USD", rows: rows.collect(), total: total.compared() }
    }
}

/// A million rows of a billion dollars at most: far from where decimals end.
fn add(sum: &mut Option<Decimal>, dollars: Decimal) {
    *sum = Some((sum.unwrap_or_default() + dollars).normalize());
}

impl ComparedAmounts {
    fn compared(mut self) -> Self {
        let (ours, theirs) = (self.ours.unwrap_or_default(), self.theirs.unwrap_or_default());
        self.difference = (ours - theirs).normalize();
        let share =
            self.difference.checked_mul(Decimal::ONE_HUNDRED).and_then(|hundredfold| hundredfold.checked_div(theirs));
        self.percent = share.map(|percent| percent.round_dp(1).normalize());
        self
    }
}

/// One line for each row, and the total.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|row| row.model.chars().count()).max().unwrap_or_default().max("model".len());
        writeln!(
            f,
            "{:10}  {:width$}  {:>16}  {:>16}  {:>16}  {:>9}",
            "day", "model", "ours USD", "theirs USD", "difference", "percent"
        )?;
        for row in &self.rows {
            writeln!(f, "{:10}  {:width$}  {}", row.day.to_string(), row.model, row.amounts)?;
        }
        write!(f, "{:10}  {:width$}  {}", "total", self.provider, self.total)
    }
}

impl fmt::Display for ComparedAmounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |amount: Option<Decimal>| amount.map_or_else(|| "none".to_owned(), |amount| amount.to_string());
        let percent = self.percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent} %"));
        let (ours, theirs) = (shown(self.ours), shown(self.theirs));
        write!(f, "{ours:>16}  {theirs:>16}  {:>16}  {percent:>9}", self.difference.to_string())?;
        match self.unpriced_calls {
            0 => Ok(()),
            1 => write!(f, "  1 call of unknown price"),
            calls => write!(f, "  {calls} calls of unknown price"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(day: &str, model: &str, dollars: &str, unpriced: i64) -> LoggedCost {
        LoggedCost { day: day.parse().unwrap(), model: model.into(), dollars: dollars.parse().unwrap(), unpriced }
    }

    #[test]
    fn both_sides_meet_by_day_and_model_and_what_one_lacks_is_shown() {
        let text = "date,amount_value,line_item
2026-01-01,0.1,\"gpt-4o-2024-08-06, input\"
2026-01-01,0.2,\"gpt-4o-2024-08-06, output\"
2026-01-02,1,\"gpt-4.1-2025-04-14, input\"
2026-01-03,0.05,
";
        let invoice = Invoice::parse(text).unwrap();
        let logged = [
            logged("2026-01-01", "gpt-4o-2024-08-06", "0.3", 0),
            logged("2026-01-01", "gpt-4o", "0.03", 2),
            logged("2026-01-04", "o3", "0.0000000001", 0),
        ];
        let comparison = Comparison::new(&invoice, &logged);
        let rows: Vec<_> =
            comparison.rows.iter().map(|row| (row.day.to_string(), row.model.clone(), row.amounts.clone())).collect();
        let amounts =
            |ours: Option<&str>, theirs: Option<&str>, difference: &str, percent: Option<&str>, unpriced_calls| {
                let decimal = |text: &str| text.parse::<Decimal>().unwrap();
                ComparedAmounts {
                    ours: ours.map(decimal),
                    theirs: theirs.map(decimal),
                    difference: decimal(difference),
                    percent: percent.map(decimal),
                    unpriced_calls,
                }
            };
        let row = |day: &str, model: &str, amounts| (day.to_owned(), model.to_owned(), amounts);
        assert_eq!(
            rows,
            [
                row("2026-01-01", "gpt-4o", amounts(Some("0.33"), Some("0.3"), "0.03", Some("10"), 2)),
                row("2026-01-02", "gpt-4.1", amounts(None, Some("1"), "-1", Some("-100"), 0)),
                row("2026-01-03", NO_MODEL, amounts(None, Some("0.05"), "-0.05", Some("-100"), 0)),
                row("2026-01-04", "o3", amounts(Some("0.0000000001"), None, "0.0000000001", None, 0)),
            ]
        );
        assert_eq!(comparison.total, amounts(Some("0.3300000001"), Some("1.35"), "-1.0199999999", Some("-75.6"), 2));
        let text = comparison.to_string();
        assert_eq!(text.lines().count(), 6);
        assert!(text.lines().nth(1).unwrap().ends_with("10 %  2 calls of unknown price"), "{text}");
        let json = serde_json::to_value(&comparison).unwrap();
        assert_eq!(json["rows"][0]["ours"], "0.33");
        assert_eq!(json["rows"][1]["ours"], serde_json::Value::Null);
    }
}
