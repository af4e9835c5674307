//! Exports of costs as providers offer them for download. Which one a file is shows in its head line; what its columns are called
//! is a table.

use super::csv::{CsvRow, CsvRows, UnreadableCsv};
use chrono::{DateTime, NaiveDate};
use rust_decimal::Decimal;
use std::str::FromStr as _;

/// An export of one provider. Of several names of a column the first that is there counts: they are of different years.
struct InvoiceFormat {
    name: &'static str,
    /// As logs name it.
    provider: &'static str,
    day: &'static [&'static str],
    amount: &'static [&'static str],
    model: &'static [&'static str],
    currency: &'static [&'static str],
}

static FORMATS: [InvoiceFormat; 2] = [
    InvoiceFormat {
        name: "OpenAI's export of costs",
        provider: "openai",
        day: &["start_time_iso", "start_time", "date", "timestamp"],
        amount: &["amount_value", "cost_in_major"],
        model: &["line_item", "model", "name"],
        currency: &["amount_currency", "currency"],
    },
    InvoiceFormat {
        name: "Anthropic's export of costs",
        provider: "anthropic",
        day: &["usage_date_utc"],
        amount: &["cost_usd"],
        model: &["model", "model_version"],
        currency: &[],
    },
];

/// Dollars that no row of a bill has.
const MAX_DOLLARS: Decimal = Decimal::from_parts(1_000_000_000, 0, 0, false, 0);

#[derive(Debug)]
pub struct Invoice {
    pub provider: &'static str,
    pub charges: Vec<Charge>,
    /// Rows that are left out: line and reason.
    pub unreadable: Vec<(usize, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    pub day: NaiveDate,
    /// As the bill has it; empty where it does not say.
    pub model: String,
    pub dollars: Decimal,
}

#[derive(Debug, thiserror::Error)]
pub enum UnreadableInvoice {
    #[error(transparent)]
    Csv(#[from] UnreadableCsv),
    #[error("the bill is empty")]
    Empty,
    #[error("the head line is of no known export: {0}")]
    UnknownColumns(String),
}

impl Invoice {
    pub fn parse(text: &str) -> Result<Self, UnreadableInvoice> {
        let mut rows = CsvRows::new(text);
        let head = rows.next().ok_or(UnreadableInvoice::Empty)??;
        let head: Vec<String> = head.fields.iter().map(|name| name.trim().to_lowercase()).collect();
        let columns = InvoiceColumns::find(&head)?;
        let (mut charges, mut unreadable) = (Vec::new(), Vec::new());
        for row in rows {
            let row = row?;
            match columns.charge(&row) {
                Ok(charge) => charges.extend(charge),
                Err(reason) => unreadable.push((row.line, reason)),
            }
        }
        Ok(Self { provider: columns.provider, charges, unreadable })
    }

    /// The first and the last.
    pub fn days(&self) -> Option<(NaiveDate, NaiveDate)> {
        let days = || self.charges.iter().map(|charge| charge.day);
        days().min().zip(days().max())
    }
}

/// Where the columns of a format are in a file.
struct InvoiceColumns {
    provider: &'static str,
    day: usize,
    amount: usize,
    model: Option<usize>,
    currency: Option<usize>,
}

impl InvoiceColumns {
    fn find(head: &[String]) -> Result<Self, UnreadableInvoice> {
        let place = |names: &[&str]| names.iter().find_map(|name| head.iter().position(|column| column == name));
        let mut lacking = Vec::new();
        for format in &FORMATS {
            if let (Some(day), Some(amount)) = (place(format.day), place(format.amount)) {
                let (model, currency) = (place(format.model), place(format.currency));
                return Ok(Self { provider: format.provider, day, amount, model, currency });
            }
            let missing = [format.day, format.amount].into_iter().filter(|names| place(names).is_none());
            let missing: Vec<String> = missing.map(|names| format!("`{}`", names.join("` or `"))).collect();
            lacking.push(format!("{} lacks {}", format.name, missing.join(" and ")));
        }
        Err(UnreadableInvoice::UnknownColumns(lacking.join("; ")))
    }

    /// None for a day without costs.
    fn charge(&self, row: &CsvRow) -> Result<Option<Charge>, String> {
        let field = |place: usize| row.fields.get(place).map(|field| field.trim());
        let (Some(day), Some(amount)) = (field(self.day), field(self.amount)) else {
            return Err(format!("it has {} columns", row.fields.len()));
        };
        if amount.is_empty() {
            return Ok(None);
        }
        let currency = self.currency.and_then(field).unwrap_or_default();
        if !currency.is_empty() && !currency.eq_ignore_ascii_case("usd") {
            return Err(format!("the currency is {}, not USD", shortened(currency)));
        }
        Ok(Some(Charge {
            day: parse_day(day).ok_or_else(|| format!("`{}` is no day", shortened(day)))?,
            model: self.model.and_then(field).unwrap_or_default().to_owned(),
            dollars: parse_dollars(amount).ok_or_else(|| format!("`{}` is no amount", shortened(amount)))?,
        }))
    }
}

/// `2026-09-28`, with or without a time behind it, or seconds since 1970.
fn parse_day(text: &str) -> Option<NaiveDate> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.to_utc().date_naive());
    }
    if let Ok(seconds) = text.parse::<i64>() {
        return DateTime::from_timestamp(seconds, 0).map(|time| time.date_naive());
    }
    let (day, rest) = text.split_at_checked("2026-09-28".len())?;
    let day = NaiveDate::parse_from_str(day, "%Y-%m-%d").ok()?;
    (rest.is_empty() || rest.starts_with(['T', ' '])).then_some(day)
}

/// Credits are negative.
fn parse_dollars(text: &str) -> Option<Decimal> {
    // Exports have 30 digits behind the point, the last ones zeros.
    let digits = if text.contains('.') && !text.contains(['e', 'E']) {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    };
    let dollars = Decimal::from_str(digits).or_else(|_| Decimal::from_scientific(digits)).ok()?;
    (dollars.abs() <= MAX_DOLLARS).then(|| dollars.normalize())
}

fn shortened(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAI: &str =
        "start_time,end_time,start_time_iso,end_time_iso,amount_value,amount_currency,quantity,line_item,project_id
1790467200,1790553600,2026-09-27T00:00:00+00:00,2026-09-28T00:00:00+00:00,,,,,
1790553600,1790640000,2026-09-28T00:00:00,2026-09-29T00:00:00,0.003835980000000000000000000000,usd,,,
1790553600,1790640000,2026-09-28T00:00:00,2026-09-29T00:00:00,0.5,usd,1000,\"gpt-5-nano, input_tokens\",proj_a
";
    const OLDER: &str = "timestamp,currency,name,cost,organization_id,cost_in_major,date
1723939200,usd,GPT-4o mini,12.5,org,0.125,2024-08-18
";
    const ANTHROPIC: &str =
        "usage_date_utc,model,workspace,api_key,usage_type,context_window,token_type,cost_usd,list_price_usd,cost_type
2026-08-04,Claude Haiku 4.5,Default,key,message,≤ 200k,input_no_cache,0.05,0.05,token
2026-08-05,,Default,key,,,,-0.01,0,web_search
";

    fn charge(day: &str, model: &str, dollars: &str) -> Charge {
        Charge { day: day.parse().unwrap(), model: model.into(), dollars: dollars.parse().unwrap() }
    }

    #[test]
    fn the_exports_of_providers_are_told_by_their_head_line() {
        for (text, provider, expected) in [
            (
                OPENAI,
                "openai",
                vec![charge("2026-09-28", "", "0.00383598"), charge("2026-09-28", "gpt-5-nano, input_tokens", "0.5")],
            ),
            (OLDER, "openai", vec![charge("2024-08-18", "GPT-4o mini", "0.125")]),
            (
                ANTHROPIC,
                "anthropic",
                vec![charge("2026-08-04", "Claude Haiku 4.5", "0.05"), charge("2026-08-05", "", "-0.01")],
            ),
        ] {
            let invoice = Invoice::parse(text).unwrap();
            assert_eq!((invoice.provider, &invoice.charges), (provider, &expected));
            assert!(invoice.unreadable.is_empty(), "{:?}", invoice.unreadable);
        }
    }

    #[test]
    fn a_bad_row_is_reported_with_its_line_and_the_others_count() {
        let text = "date,amount_value,line_item,amount_currency
2026-01-01,free,m,usd
someday,1,m,usd
2026-01-02,1e308,m,usd
2026-01-02,1,m,eur
2026-01-02
2026-01-02,1.5,\"m, input\",USD
2026-13-02,1,m,usd
";
        let invoice = Invoice::parse(text).unwrap();
        assert_eq!(invoice.charges, [charge("2026-01-02", "m, input", "1.5")]);
        let expected = [
            (2, "`free` is no amount"),
            (3, "`someday` is no day"),
            (4, "`1e308` is no amount"),
            (5, "the currency is eur, not USD"),
            (6, "it has 1 columns"),
            (8, "`2026-13-02` is no day"),
        ];
        let found: Vec<(usize, &str)> =
            invoice.unreadable.iter().map(|(line, reason)| (*line, reason.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_file_of_another_kind_is_refused_with_the_columns_it_lacks() {
        for (text, problem) in [
            ("", "the bill is empty"),
            ("a,b\n1,2\n", "OpenAI's export of costs lacks `start_time_iso` or `start_time`"),
            (
                "date,tokens\n",
                "lacks `amount_value` or `cost_in_major`; Anthropic's export of costs lacks `usage_date_utc` and `cost_usd`",
            ),
            ("a,\"b", "line 1: a quote is opened and not closed"),
        ] {
            let found = Invoice::parse(text).unwrap_err().to_string();
            assert!(found.contains(problem), "{found}");
        }
    }
}
