//! Labels: names that prompt versions are found by, as `production`. Those of the organisation are seen by all its
//! workspaces; three exist everywhere and cannot be changed.

use crate::crud::{self, PlainResource, Routes, Verb, needed};
use crate::http::{ApiError, Field, Time, text};
use crate::identity::Call;
use crate::openapi::{Doc, schema};
use serde::{Deserialize, Serialize};
use shared::db::table::{Columns, Tenancy};
use shared::model::Status;
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
        .need("is_universal", schema::flag());
    Doc::five::<Label>(&label.archivable(), sent, "LabelChange")
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
    status: Status,
    created_at: Time,
    last_updated_at: Time,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LabelFields {
    name: Field<String>,
    description: Field<String>,
    color_code: Field<String>,
}

impl PlainResource for Label {
    type Body = LabelFields;
    const OBJECT: &'static str = "label";
    const PATH: &'static str = "/labels";
    const ROWS: &'static str = "labels";
    const TENANCY: Tenancy = Tenancy::Either;

    fn place(&self) -> (Uuid, Option<Uuid>) {
        (self.id, self.workspace_id)
    }

    fn columns(verb: Verb, body: LabelFields) -> Result<Columns, ApiError> {
        let sized = |name, most, field: Field<String>| field.try_map(|sent| text::sized(name, sent, 0..=most));
        Ok(Columns::default()
            .set_if("name", needed(verb, "name", body.name)?.map(checked_name).transpose()?)
            .set_if("description", sized("description", 1000, body.description)?.sent())
            .set_if("color_code", sized("color_code", 32, body.color_code)?.sent()))
    }

    fn may_change(&self, _: &Call) -> Result<(), ApiError> {
        match self.is_universal {
            true => Err(ApiError::invalid("This label exists everywhere and cannot be changed")),
            false => Ok(()),
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
