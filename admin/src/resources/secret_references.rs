//! References to secrets in an outside manager. What opens the manager is sealed when it comes in and never shown
//! again, not even to who sent it. A slug that is taken is 400 here, because clients of this resource expect it.

mod auth_config;
mod docs;
mod workspaces;

use crate::crud::{self, Action, Resource, Routes, Verb};
use crate::http::{ApiError, Field, FieldFault, PageSizes, Time, text};
use crate::identity::Call;
use auth_config::AuthConfig;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::db::table::{Columns, Filter, OnDelete, RowError, SelectList, Table, Tenancy};
use shared::model::SecretReference as Stored;
use shared::secrets::{ManagerKind, allowed_hosts};
use std::collections::BTreeMap;
use tokio_postgres::Row;
use uuid::Uuid;

pub fn routes() -> Routes {
    crud::routes::<SecretReference>().describe(docs::docs())
}

#[derive(Serialize)]
pub struct SecretReference {
    id: Uuid,
    organisation_id: Uuid,
    name: String,
    slug: String,
    description: Option<String>,
    manager_type: String,
    /// What may be shown: masks in place of secrets.
    auth_config: Value,
    secret_path: String,
    secret_key: Option<String>,
    allow_all_workspaces: bool,
    /// Slugs.
    allowed_workspaces: Vec<String>,
    /// Beside the provider's own; see `shared::secrets::allowed_hosts`.
    allowed_hosts: Vec<String>,
    tags: Value,
    created_by: Option<Uuid>,
    created_at: Time,
    last_updated_at: Time,
    #[serde(skip)]
    sealed_auth_config: Vec<u8>,
}

#[derive(Deserialize)]
pub struct NewReference {
    name: String,
    slug: Option<String>,
    description: Option<String>,
    manager_type: String,
    auth_config: Map<String, Value>,
    secret_path: String,
    secret_key: Option<String>,
    allow_all_workspaces: Option<bool>,
    allowed_workspaces: Option<Vec<String>>,
    allowed_hosts: Option<Vec<String>>,
    tags: Option<BTreeMap<String, Option<String>>>,
    organisation_id: Option<Uuid>,
}

/// `slug` and `manager_type` never change and are ignored.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct ReferenceChange {
    name: Option<String>,
    description: Field<String>,
    auth_config: Option<Map<String, Value>>,
    secret_path: Option<String>,
    secret_key: Field<String>,
    allow_all_workspaces: Option<bool>,
    allowed_workspaces: Option<Vec<String>>,
    allowed_hosts: Field<Vec<String>>,
    tags: Field<BTreeMap<String, Option<String>>>,
    organisation_id: Option<Uuid>,
}

impl Resource for SecretReference {
    type Create = NewReference;
    type Update = ReferenceChange;
    const OBJECT: &'static str = "secret-reference";
    const PATH: &'static str = "/secret-references";
    const PAGES: PageSizes = PageSizes { default: 20, most: 100 };
    const UNIQUE: &'static str = "slug";
    const TABLE: Table = Table {
        name: "secret_references",
        columns: SelectList::Sql(
            "id, organisation_id, name, slug, description, manager_type, auth_config, sealed_auth_config,
            secret_path, secret_key, allow_all_workspaces, allowed_hosts, tags, created_by, created_at, last_updated_at,
            (SELECT coalesce(array_agg(w.slug ORDER BY w.slug), '{}') FROM workspaces w
             WHERE w.id = ANY (secret_references.allowed_workspaces)) AS allowed_slugs",
        ),
        slug: Some("slug"),
        tenancy: Tenancy::Organisation,
        // Nothing is left of credentials that are not wanted any more.
        on_delete: OnDelete::Delete,
    };

    fn from_row(row: &Row) -> Result<Self, RowError> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            name: row.try_get("name")?,
            slug: row.try_get("slug")?,
            description: row.try_get("description")?,
            manager_type: row.try_get("manager_type")?,
            auth_config: row.try_get("auth_config")?,
            secret_path: row.try_get("secret_path")?,
            secret_key: row.try_get("secret_key")?,
            allow_all_workspaces: row.try_get("allow_all_workspaces")?,
            allowed_workspaces: row.try_get("allowed_slugs")?,
            allowed_hosts: row.try_get("allowed_hosts")?,
            tags: row.try_get("tags")?,
            created_by: row.try_get("created_by")?,
            created_at: row.try_get("created_at")?,
            last_updated_at: row.try_get("last_updated_at")?,
            sealed_auth_config: row.try_get("sealed_auth_config")?,
        })
    }

    fn id(&self) -> Uuid {
        self.id
    }

    async fn create(action: &Action<'_>, body: NewReference) -> Result<Columns, ApiError> {
        own_organisation(action, body.organisation_id)?;
        let kinds = ManagerKind::ALL.map(ManagerKind::as_str);
        let wrong = || ApiError::Faults(vec![FieldFault::not_among("manager_type", &body.manager_type, &kinds)]);
        let kind = ManagerKind::parse(&body.manager_type).ok_or_else(wrong)?;
        let name = text::name("name", body.name)?;
        let config = AuthConfig::checked(kind, body.auth_config, action.app.lends_identity)?;
        let served = workspaces::first(action, body.allow_all_workspaces, body.allowed_workspaces).await?;
        let slug = free_slug(action, body.slug, &name).await?;
        let id = Uuid::new_v4();
        Ok(Columns::default()
            .set("id", id)
            .set("name", name)
            .set("slug", slug)
            .set("description", body.description.map(described).transpose()?)
            .set("manager_type", kind.as_str())
            .set("auth_config", config.shown())
            .set("sealed_auth_config", config.sealed(action, id).await?)
            .set("secret_path", path(body.secret_path)?)
            .set("secret_key", body.secret_key.map(key).transpose()?)
            .set("allow_all_workspaces", served.is_empty())
            .set("allowed_workspaces", served)
            .set("allowed_hosts", hosts(body.allowed_hosts.unwrap_or_default())?)
            .set("tags", json!(body.tags.unwrap_or_default()))
            .set("created_by", action.call.caller.actor_id()))
    }

    async fn update(action: &Action<'_>, current: &Self, body: ReferenceChange) -> Result<Columns, ApiError> {
        own_organisation(action, body.organisation_id)?;
        let mut columns = Columns::default()
            .set_if("name", body.name.map(|name| text::name("name", name)).transpose()?)
            .set_if("description", body.description.try_map(described)?.sent())
            .set_if("secret_path", body.secret_path.map(path).transpose()?)
            .set_if("secret_key", body.secret_key.try_map(key)?.sent())
            .set_if("allowed_hosts", body.allowed_hosts.try_map(hosts)?.sent().map(Option::unwrap_or_default))
            .set_if("tags", body.tags.sent().map(|tags| json!(tags.unwrap_or_default())));
        let served = workspaces::changed(action, current, body.allow_all_workspaces, body.allowed_workspaces).await?;
        if let Some(served) = served {
            columns = columns.set("allow_all_workspaces", served.is_empty()).set("allowed_workspaces", served);
        }
        if let Some(sent) = body.auth_config {
            let stored = AuthConfig::opened(action, current).await?;
            let config = stored.merged(sent, action.app.lends_identity)?;
            columns = columns
                .set("auth_config", config.shown())
                .set("sealed_auth_config", config.sealed(action, current.id).await?);
        }
        Ok(columns)
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        let query = call.query();
        let mut filter = Filter::default();
        let kinds = query.choices("manager_type", &ManagerKind::ALL.map(ManagerKind::as_str))?;
        if !kinds.is_empty() {
            filter = filter.one_of("manager_type", kinds);
        }
        if let Some(part) = query.text("search") {
            filter = filter.contains("name", text::sized("search", part.to_owned(), 1..=255)?);
        }
        if let Some(tags) = query.text("tags") {
            let tags: Option<Map<String, Value>> = serde_json::from_str(tags).ok();
            let tags = tags.ok_or_else(|| ApiError::field("tags", "must be a JSON object"))?;
            filter = filter.and("tags @> ?", Value::Object(tags));
        }
        Ok(filter)
    }

    async fn after(&self, verb: Verb, action: &Action<'_>) -> Result<(), ApiError> {
        if verb == Verb::Delete { refuse_while_used(action, self).await } else { Ok(()) }
    }

    /// A list shows less than the object itself.
    fn shown(&self, call: &Call) -> Value {
        let mut shown = crud::shown(Self::OBJECT, self);
        shown["status"] = "ACTIVE".into();
        if call.origin.operation.is_list()
            && let Some(fields) = shown.as_object_mut()
        {
            fields.retain(|name, _| LISTED.contains(&name.as_str()));
        }
        shown
    }

    fn created(&self, _: &Call) -> Value {
        json!({ "id": self.id, "slug": self.slug, "object": Self::OBJECT })
    }
}

static LISTED: &[&str] = &["id", "name", "slug", "manager_type", "status", "created_at", "last_updated_at", "object"];

/// Tables with `secret_mappings`: each one joins here with what one of its rows is called.
static USERS: &[(&str, &str)] = &[("integrations", "the integration"), ("mcp_integrations", "the MCP integration")];

async fn refuse_while_used(action: &Action<'_>, reference: &SecretReference) -> Result<(), ApiError> {
    for (table, kind) in USERS {
        let sql = format!(
            "SELECT slug FROM {table} WHERE organisation_id = $1 AND status <> 'archived'
                    AND (secret_mappings @> $2 OR secret_mappings @> $3) ORDER BY slug LIMIT 1"
        );
        let [by_id, by_slug] =
            [reference.id.to_string(), reference.slug.clone()].map(|name| json!([{ "secret_reference_id": name }]));
        if let Some(user) = action.tx.query_opt(&sql, &[&action.organisation_id(), &by_id, &by_slug]).await? {
            let slug: &str = user.try_get("slug")?;
            return Err(ApiError::invalid(format!("This secret reference is still used by {kind} `{slug}`")));
        }
    }
    Ok(())
}

fn own_organisation(action: &Action<'_>, sent: Option<Uuid>) -> Result<(), ApiError> {
    match sent {
        Some(id) if id != action.organisation_id() => {
            Err(ApiError::field("organisation_id", "must be the caller's organisation"))
        }
        _ => Ok(()),
    }
}

/// The slug that was sent if nobody has it, or one made of the name. Creates of one organisation wait for each other
/// here, so that the second of two equal ones is told the same as if it had come later.
async fn free_slug(action: &Action<'_>, sent: Option<String>, name: &str) -> Result<String, ApiError> {
    const HOLD: &str = "SELECT FROM organisations WHERE id = $1 FOR NO KEY UPDATE";
    const TAKEN: &str = "SELECT FROM secret_references WHERE organisation_id = $1 AND slug = $2";
    let slug = match &sent {
        Some(slug) => text::slug("slug", slug.clone())?,
        None => text::slugified(name),
    };
    action.tx.execute(HOLD, &[&action.organisation_id()]).await?;
    let is_taken = slug.is_empty() || action.tx.query_opt(TAKEN, &[&action.organisation_id(), &slug]).await?.is_some();
    match (is_taken, sent) {
        (false, _) => Ok(slug),
        (true, Some(_)) => Err(ApiError::field("slug", "is taken by another secret reference")),
        (true, None) => {
            Ok(format!("{}-{:06x}", if slug.is_empty() { "secret" } else { &slug }, rand::random::<u32>() >> 8))
        }
    }
}

fn hosts(sent: Vec<String>) -> Result<Vec<String>, ApiError> {
    if sent.len() > allowed_hosts::MAX_HOSTS {
        return Err(ApiError::field("allowed_hosts", format!("must be at most {} hosts", allowed_hosts::MAX_HOSTS)));
    }
    let each = sent.iter().enumerate().map(|(n, entry)| {
        let wrong =
            |rule| ApiError::field(format!("allowed_hosts[{n}]"), format!("must be a host or host:port: {rule}"));
        allowed_hosts::parse(entry).map_err(wrong)
    });
    each.collect()
}

fn described(text: String) -> Result<String, ApiError> {
    text::sized("description", text, 0..=1024)
}

fn path(text: String) -> Result<String, ApiError> {
    let path = text::sized("secret_path", text, 1..=1024)?;
    match path.split('/').any(|part| part == "..") || path.chars().any(char::is_control) {
        true => Err(ApiError::field("secret_path", "must not lead upwards or contain control characters")),
        false => Ok(path),
    }
}

fn key(text: String) -> Result<String, ApiError> {
    text::sized("secret_key", text, 1..=255)
}

/// Where the credentials of a reference are sealed to.
fn place(action: &Action<'_>, id: Uuid) -> shared::secrets::seal::SealedPlace {
    Stored::place(action.organisation_id(), id)
}
