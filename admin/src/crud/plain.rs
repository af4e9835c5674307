//! Plain resources: one table that a type names column by column, one shape of body for POST and PUT, rows that are
//! archived. Such a type implements `PlainResource` and is a `Resource` by that; whatever does more implements
//! `Resource` itself.

use super::{Action, Resource, Verb};
use crate::http::{ApiError, Field};
use crate::identity::Call;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shared::db::table::{Columns, RowError, Table, Tenancy, row};
use tokio_postgres::Row;
use uuid::Uuid;

pub trait PlainResource: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The fields that a client may send, each a `Field`: a create says with `needed` which ones it cannot do without.
    type Body: DeserializeOwned + Send + Sync;

    /// As in `Resource`.
    const OBJECT: &'static str;
    const PATH: &'static str;
    /// The name of its table.
    const ROWS: &'static str;
    const TENANCY: Tenancy;

    /// Its id, and the workspace it belongs to, if it is not the organisation's.
    fn place(&self) -> (Uuid, Option<Uuid>);

    /// Checks a body and turns what was sent into columns.
    fn columns(verb: Verb, body: Self::Body) -> Result<Columns, ApiError>;

    fn may_change(&self, _: &Call) -> Result<(), ApiError> {
        Ok(())
    }
}

impl<P: PlainResource> Resource for P {
    type Create = P::Body;
    type Update = P::Body;
    const OBJECT: &'static str = <P as PlainResource>::OBJECT;
    const PATH: &'static str = <P as PlainResource>::PATH;
    const TABLE: Table = Table::of_fields::<P>(P::ROWS, P::TENANCY);

    fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }

    fn id(&self) -> Uuid {
        self.place().0
    }

    fn workspace_id(&self) -> Option<Uuid> {
        self.place().1
    }

    async fn create(_: &Action<'_>, body: P::Body) -> Result<Columns, ApiError> {
        P::columns(Verb::Create, body)
    }

    async fn update(_: &Action<'_>, _: &Self, body: P::Body) -> Result<Columns, ApiError> {
        P::columns(Verb::Update, body)
    }

    fn may_change(&self, call: &Call) -> Result<(), ApiError> {
        PlainResource::may_change(self, call)
    }
}

/// A text that a create must have, and that an update keeps where it is not sent or null.
pub fn needed(verb: Verb, name: &str, sent: Field<String>) -> Result<Option<String>, ApiError> {
    match sent {
        Field::Value(text) => Ok(Some(text)),
        Field::Absent if verb == Verb::Create => Err(ApiError::field(name, "is required")),
        Field::Null if verb == Verb::Create => Err(ApiError::field(name, "must be a string")),
        Field::Absent | Field::Null => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_create_cannot_do_without_a_needed_text() {
        for (sent, on_create, on_update) in [
            (Field::Value("a"), Ok(Some("a")), Ok(Some("a"))),
            (Field::Absent, Err("is required"), Ok(None)),
            (Field::Null, Err("must be a string"), Ok(None)),
        ] {
            for (verb, expected) in [(Verb::Create, on_create), (Verb::Update, on_update)] {
                let sent = sent.clone().try_map(|text| Ok::<_, ()>(text.to_owned())).unwrap();
                let found = needed(verb, "name", sent);
                match (found, expected) {
                    (Ok(text), Ok(expected)) => assert_eq!(text.as_deref(), expected, "{verb:?}"),
                    (Err(ApiError::Invalid { message, .. }), Err(expected)) => {
                        assert_eq!(message, expected, "{verb:?}")
                    }
                    (found, _) => panic!("{verb:?}: {found:?}"),
                }
            }
        }
    }
}
