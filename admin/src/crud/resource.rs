//! The trait `Resource`: the facts about one resource that the five verbs need. Scopes and the name in the audit trail
//! stand in its rows of `shared::routes`.

use crate::crud::Action;
use crate::http::{ApiError, InUseBy, PageSizes};
use crate::identity::Call;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use shared::db::table::{Columns, Filter, RowError, Table};
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Create,
    Update,
    Delete,
}

/// A plain resource: one table, five operations. The struct is the row as the interface shows it.
pub trait Resource: Serialize + Send + Sync + Sized + 'static {
    /// Bodies of POST and PUT. They passed the check against the operation's description before, which finds unknown
    /// fields; what other products' clients add is ignored here. `workspace_id` is read by `crud`.
    type Create: DeserializeOwned + Send;
    type Update: DeserializeOwned + Send + Sync;

    /// As in the `object` field: `label`.
    const OBJECT: &'static str;
    /// As in the route table: `/labels`.
    const PATH: &'static str;
    const TABLE: Table;
    /// What collides when a create or update gets 409.
    const UNIQUE: &'static str = "name";
    const PAGES: PageSizes = PageSizes::USUAL;

    /// `row::read(row)` where every field is a column.
    fn from_row(row: &Row) -> Result<Self, RowError>;
    fn id(&self) -> Uuid;

    /// The workspace it belongs to; none for what belongs to the organisation.
    fn workspace_id(&self) -> Option<Uuid> {
        None
    }

    /// The workspace that the body of a create names.
    fn asked_workspace(body: &Map<String, Value>) -> Result<Option<String>, ApiError> {
        super::text_of(body, "workspace_id")
    }

    /// Checks a body and turns it into columns. `organisation_id` and `workspace_id` are added by `crud`; the latter not where
    /// rows may be of several workspaces.
    fn create(action: &Action<'_>, body: Self::Create) -> impl Future<Output = Result<Columns, ApiError>> + Send;

    /// Locks that must be taken before the row's own, so that two changes never wait for each other.
    fn before_update(_: &Action<'_>, _: &Self::Update) -> impl Future<Output = Result<(), ApiError>> + Send {
        async { Ok(()) }
    }

    /// Only columns that were sent; none at all is answered "Nothing to update".
    fn update(
        action: &Action<'_>,
        current: &Self,
        body: Self::Update,
    ) -> impl Future<Output = Result<Columns, ApiError>> + Send;

    /// What a list can be narrowed by, beside tenancy and status.
    fn filter(call: &Call) -> Result<Filter, ApiError> {
        let search = call.query().text("search");
        Ok(search.map_or_else(Filter::default, |text| Filter::default().contains("name", text)))
    }

    /// What else must hold of the row that a path names. Archived ones are not found unless this filters by `status`.
    fn named(_: &Call, _name: &str) -> Result<Filter, ApiError> {
        Ok(Filter::default())
    }

    /// Whether this caller may see the object, where its scopes depend on what it is.
    fn may_read(&self, _: &Call) -> Result<(), ApiError> {
        Ok(())
    }

    /// Whether this object can be changed or deleted at all.
    fn may_change(&self, _: &Call) -> Result<(), ApiError> {
        Ok(())
    }

    /// Who would miss it. While somebody would, a delete has to be forced.
    fn used_by(&self, _: &Action<'_>) -> impl Future<Output = Result<Vec<InUseBy>, ApiError>> + Send {
        async { Ok(Vec::new()) }
    }

    /// More work in the same transaction; an error undoes everything. On a delete, `self` is the row as it was.
    fn after(&self, _: Verb, _: &Action<'_>) -> impl Future<Output = Result<(), ApiError>> + Send {
        async { Ok(()) }
    }

    /// The object in a GET, in lists and in the audit trail: never a secret.
    fn shown(&self, _: &Call) -> Value {
        shown(Self::OBJECT, self)
    }

    /// The object in the audit trail, where that says more than lists do.
    fn recorded(&self, call: &Call) -> Value {
        self.shown(call)
    }

    /// The answer to a create.
    fn created(&self, _: &Call) -> Value {
        json!({ "id": self.id(), "object": Self::OBJECT })
    }

    /// The answer to an update.
    fn updated(&self, _: &Call) -> Value {
        json!({})
    }
}

/// A row with the `object` that every answer carries.
pub fn shown(object: &str, row: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(row).expect("a plain struct of plain values can be written as JSON");
    if let Value::Object(fields) = &mut value {
        fields.insert("object".into(), object.into());
    }
    value
}
