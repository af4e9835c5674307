//! Labels: names that prompt versions are found by, as `production`. Those of the organisation are seen by all its
//! workspaces; three exist everywhere and cannot be changed.

use crate::crud::{self, Action, Resource, Routes};
use crate::http::{ApiError, Field, Time, text};
use crate::identity::Call;
use crate::openapi::{Doc, schema};
use serde::{Deserialize, Serialize};
use shared::db::table::{Columns, OnDelete, RowError, SelectList, Table, Tenancy, row};
use tokio_postgres::Row;
use uuid::Uuid;

pub fn routes() -> Routes {
    crud::routes::<Label>().describe(docs())
}

fn docs() -> [Doc; 5] {
    let sent = schema::object("NewLabel")
        .need("name", schema::slug().eg("candidate"))
        .may("description", schema::text(0..=1000).eg("Ready to be tried").or_null())
        .may("color_code", schema::text(0..=32).eg("#3b82f6").or_null());
    let label = schema::shown("Label", "label")
        .with(&sent)
        .need("organisation_id", schema::uuid())
        .need("workspace_id", schema::uuid().or_null().says("Null for labels of the whole organisation."))
        .need("is_universal", schema::flag())
        .need("status", schema::choice(&["active", "archived"]))
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
        .whole();
    let change = schema::object("LabelChange").with(&sent).may("name", schema::slug().eg("candidate").or_null());
    [
        Doc::list::<Label>(&label).search(),
        Doc::create::<Label>(sent),
        Doc::read::<Label>(&label),
        Doc::update::<Label>(change.optional()),
        Doc::delete::<Label>(),
    ]
}

#[derive(Serialize, Deserialize)]
struct Label {
    id: Uuid,
    name: String,
    description: Option<String>,
    color_code: Option<String>,
    organisation_id: Uuid,
    workspace_id: Option<Uuid>,
    is_universal: bool,
    status: String,
    created_at: Time,
    last_updated_at: Time,
}

#[derive(Deserialize)]
struct NewLabel {
    name: String,
    description: Option<String>,
    color_code: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LabelChange {
    name: Option<String>,
    description: Field<String>,
    color_code: Field<String>,
}

impl Resource for Label {
    type Create = NewLabel;
    type Update = LabelChange;
    const OBJECT: &'static str = "label";
    const PATH: &'static str = "/labels";
    const TABLE: Table = Table {
        name: "labels",
        columns: SelectList::Fields(row::fields::<Label>),
        slug: None,
        tenancy: Tenancy::Either,
        on_delete: OnDelete::Archive,
    };

    fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        self.workspace_id
    }

    async fn create(_: &Action<'_>, body: NewLabel) -> Result<Columns, ApiError> {
        Ok(Columns::default()
            .set("name", checked_name(body.name)?)
            .set("description", body.description.map(checked_description).transpose()?)
            .set("color_code", body.color_code.map(checked_color).transpose()?))
    }

    async fn update(_: &Action<'_>, _: &Self, body: LabelChange) -> Result<Columns, ApiError> {
        Ok(Columns::default()
            .set_if("name", body.name.map(checked_name).transpose()?)
            .set_if("description", body.description.try_map(checked_description)?.sent())
            .set_if("color_code", body.color_code.try_map(checked_color)?.sent()))
    }

    fn may_change(&self, _: &Call) -> Result<(), ApiError> {
        if self.is_universal {
            Err(ApiError::invalid("This label exists everywhere and cannot be changed"))
        } else {
            Ok(())
        }
    }
}

/// A label stands after the `@` of a prompt's name, beside version numbers and `latest`.
fn checked_name(name: String) -> Result<String, ApiError> {
    let name = text::slug("name", name)?;
    if ["latest", "default"].contains(&name.as_str()) || name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ApiError::field("name", "must not be a number, `latest` or `default`"));
    }
    if ["production", "staging", "development"].contains(&name.as_str()) {
        return Err(ApiError::Conflict("There is a label with this name already".into()));
    }
    Ok(name)
}

fn checked_description(text: String) -> Result<String, ApiError> {
    text::sized("description", text, 0..=1000)
}

fn checked_color(text: String) -> Result<String, ApiError> {
    text::sized("color_code", text, 0..=32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_told_from_a_version() {
        for (name, status) in [
            ("candidate", None),
            ("v1_beta-2", None),
            ("12", Some(400)),
            ("latest", Some(400)),
            ("default", Some(400)),
            ("a@b", Some(400)),
            ("a b", Some(400)),
            ("", Some(400)),
            ("production", Some(409)),
        ] {
            assert_eq!(checked_name(name.into()).err().map(|error| error.status().as_u16()), status, "{name}");
        }
    }
}
