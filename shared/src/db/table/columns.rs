//! Columns to write: names from the code, values to be bound. What was not sent is not in it, so an update touches
//! nothing that its sender did not name.

use super::BoundValue;
use tokio_postgres::types::ToSql;

#[derive(Debug, Default)]
pub struct Columns(Vec<(&'static str, BoundValue)>);

impl Columns {
    pub fn set(mut self, name: &'static str, value: impl ToSql + Sync + Send + 'static) -> Self {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, Box::new(value)));
        self
    }

    /// Sets the column when there is a value; `Some(None)` sets it to null.
    pub fn set_if<T: ToSql + Sync + Send + 'static>(self, name: &'static str, value: Option<T>) -> Self {
        match value {
            Some(value) => self.set(name, value),
            None => self,
        }
    }

    /// All columns of both; where both name one, the other's value.
    pub fn join(mut self, other: Self) -> Self {
        self.0.retain(|(name, _)| !other.names().any(|one| one == *name));
        self.0.extend(other.0);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }

    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.0.iter().map(|(_, value)| &**value as &(dyn ToSql + Sync)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sent_is_set_and_a_later_value_replaces_an_earlier_one() {
        let columns = Columns::default()
            .set("name", "one")
            .set_if("description", None::<String>)
            .set_if("color", Some(None::<String>))
            .set("name", "two");
        assert_eq!(columns.names().collect::<Vec<_>>(), ["color", "name"]);
        assert_eq!(format!("{:?}", columns.0[1].1), "\"two\"");
        let joined = columns.join(Columns::default().set("name", "three").set("size", 1));
        assert_eq!(joined.names().collect::<Vec<_>>(), ["color", "name", "size"]);
        assert_eq!(format!("{:?}", joined.0[1].1), "\"three\"");
    }
}
