//! Objects of the gateway by kind: all of them, or the one that a person means by a name.

use crate::http::{Call, Client, Tagged, segment};
use crate::kinds::{Home, Identity, Kind, Listing};
use crate::outcome::Failure;
use crate::session::Session;
use serde_json::Value;

/// All rows of a kind in the session's workspace, or in all that its key can see.
pub async fn list(session: &Session, kind: &Kind) -> Result<Vec<Value>, Failure> {
    let client = &session.client;
    match (kind.listing, &session.workspace) {
        (Listing::Whole, _) => client.look_up_list(kind.path, &[]).await,
        (Listing::OneWorkspace, None) => {
            let mut rows = Vec::new();
            for workspace in visible_workspaces(client).await? {
                rows.extend(client.look_up_list(kind.path, &[("workspace_id".to_owned(), workspace)]).await?);
            }
            Ok(rows)
        }
        _ => client.look_up_list(kind.path, &session.in_workspace()).await,
    }
}

/// Ids of the workspaces that the key can see: its own, or all of the organisation.
pub async fn visible_workspaces(client: &Client) -> Result<Vec<String>, Failure> {
    let own = client.look_up(Call::get("/api-keys/self")).await?.body;
    if let Some(id) = own["workspace_id"].as_str() {
        return Ok(vec![id.to_owned()]);
    }
    let rows = client.look_up_list("/admin/workspaces", &[]).await?;
    Ok(rows.iter().filter_map(|row| row["id"].as_str()).map(str::to_owned).collect())
}

/// The object that is meant by an id, a slug or, where that is all people know it by, a name.
pub async fn find(session: &Session, kind: &Kind, name: &str) -> Result<Tagged, Failure> {
    let id = id_for(session, kind, name).await?;
    read(session, kind, &id).await
}

pub async fn id_for(session: &Session, kind: &Kind, name: &str) -> Result<String, Failure> {
    if kind.identity == Identity::Slug {
        return Ok(name.to_owned());
    }
    let rows = list(session, kind).await?;
    let by = |field: &str| rows.iter().filter(|row| row[field] == name).collect::<Vec<_>>();
    for field in ["id", "slug", "name"] {
        match by(field)[..] {
            [] => {}
            [row] => return Ok(row["id"].as_str().unwrap_or_default().to_owned()),
            _ => return Err(Failure::new(format!("several of kind {} are called `{name}`: use the id", kind.name))),
        }
    }
    Err(Failure::new(format!("there is no {} `{name}`", kind.name)))
}

async fn read(session: &Session, kind: &Kind, id: &str) -> Result<Tagged, Failure> {
    let call = Call::get(path_of(kind, id));
    session.client.look_up(call.query(object_query(session, kind))).await
}

pub fn path_of(kind: &Kind, id: &str) -> String {
    format!("{}/{}", kind.path, segment(id))
}

/// Slugs repeat between workspaces, so a read says which one is meant.
pub fn object_query(session: &Session, kind: &Kind) -> Vec<(String, String)> {
    if kind.home == Home::Organisation { Vec::new() } else { session.in_workspace() }
}
