//! Conditions joined by AND. Their text is written in the code; `?` stands for the one value that each may have.

use super::BoundValue;
use tokio_postgres::types::ToSql;

#[derive(Debug, Default)]
pub struct Filter {
    conditions: Vec<String>,
    values: Vec<BoundValue>,
}

impl Filter {
    pub fn equals(self, column: &'static str, value: impl ToSql + Sync + Send + 'static) -> Self {
        self.push(format!("{column} = ?"), value)
    }

    /// The column is one of these values.
    pub fn one_of<T: ToSql + Sync + Send + 'static>(self, column: &'static str, values: Vec<T>) -> Self {
        self.push(format!("{column} = ANY(?)"), values)
    }

    /// Substring, whatever its case; the text is not a pattern.
    pub fn contains(self, column: &'static str, text: impl Into<String>) -> Self {
        self.push(format!("strpos(lower({column}), lower(?)) > 0"), text.into())
    }

    /// Any condition over one value, which may be used several times.
    pub fn and(self, condition: &'static str, value: impl ToSql + Sync + Send + 'static) -> Self {
        self.push(condition.to_owned(), value)
    }

    /// A condition without a value.
    pub fn holds(mut self, condition: &'static str) -> Self {
        self.conditions.push(condition.to_owned());
        self
    }

    /// Both filters.
    pub fn join(mut self, other: Self) -> Self {
        let offset = self.values.len();
        self.conditions.extend(other.conditions.into_iter().map(|text| shifted(&text, offset)));
        self.values.extend(other.values);
        self
    }

    /// At least one of these filters.
    pub fn any(alternatives: impl IntoIterator<Item = Self>) -> Self {
        let mut any = Self::default();
        let mut texts = Vec::new();
        for one in alternatives {
            texts.push(shifted(&one.sql(), any.values.len()));
            any.values.extend(one.values);
        }
        any.conditions.push(format!("({})", texts.join(" OR ")));
        any
    }

    /// There is a row of `from` (a table and a condition) that the filter holds for.
    pub fn exists(from: &'static str, inner: Self) -> Self {
        let condition = format!("EXISTS (SELECT FROM {from} AND {})", inner.sql());
        Self { conditions: vec![condition], values: inner.values }
    }

    /// Whether it leaves nothing out.
    pub fn is_about_all(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Its text in a statement whose first values are those of `other`.
    pub fn sql_after(&self, other: &Self) -> String {
        shifted(&self.sql(), other.values.len())
    }

    /// Whether a condition is on this column.
    pub fn mentions(&self, column: &str) -> bool {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        self.conditions.iter().any(|text| text.split(|c| !is_word(c)).any(|word| word == column))
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub fn sql(&self) -> String {
        if self.conditions.is_empty() { "true".into() } else { self.conditions.join(" AND ") }
    }

    pub fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }

    fn push(mut self, condition: String, value: impl ToSql + Sync + Send + 'static) -> Self {
        self.values.push(Box::new(value));
        self.conditions.push(condition.replace('?', &format!("${}", self.values.len())));
        self
    }
}

/// `$1` becomes `$3` when two values stand before it.
fn shifted(condition: &str, offset: usize) -> String {
    let mut parts = condition.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = part[..digits].parse().unwrap_or_default();
        text.push_str(&format!("${}{}", number + offset, &part[digits..]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_joined_and_their_values_numbered() {
        let filter = Filter::default()
            .equals("a", 1)
            .and("(b = ? OR ? IS NULL)", "x")
            .join(Filter::default().one_of("c", vec![1_i64]).holds("d IS NULL").and("e < ?", 2));
        assert_eq!(filter.sql(), "a = $1 AND (b = $2 OR $2 IS NULL) AND c = ANY($3) AND d IS NULL AND e < $4");
        assert_eq!(filter.values().len(), 4);
        assert_eq!(Filter::default().sql(), "true");
        let any = Filter::any([Filter::default().equals("a", 1), Filter::default().equals("b", 2).equals("c", 3)]);
        assert_eq!(Filter::default().equals("x", 0).join(any).sql(), "x = $1 AND (a = $2 OR b = $3 AND c = $4)");
    }

    #[test]
    fn a_filter_knows_which_columns_it_speaks_of() {
        let filter = Filter::default().equals("workspace_status", 1);
        assert!(filter.mentions("workspace_status") && !filter.mentions("status"));
    }
}
