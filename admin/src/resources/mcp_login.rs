//! Logging in to MCP servers with a browser: a small OAuth 2.1 authorisation server for MCP clients, on top of people's
//! sessions. What a client gets in the end is a key of the person that can do nothing but `mcp.invoke` and ends after some
//! hours, so everything that holds for keys holds for it: roles, limits, logs, and that it can be ended.

pub mod client_id;
pub mod codes;
pub mod request;

use crate::app::App;
use crate::http::ApiError;
use crate::mcp_oauth::access::may_use;
use tokio_postgres::GenericClient;
use url::Url;
use uuid::Uuid;

/// Who agreed, and where they act if the client does not say for which server it asks.
#[derive(Debug, Clone, Copy)]
pub struct Person {
    pub organisation: Uuid,
    pub user: Uuid,
    pub workspace: Option<Uuid>,
}

/// The workspace of the MCP server that a client asks for (RFC 8707); of the merged one, the person's own. None when there
/// is no such server, or the person may not use it.
pub async fn workspace_of(
    app: &App,
    db: &impl GenericClient,
    person: Person,
    resource: Option<&str>,
) -> Result<Option<Uuid>, ApiError> {
    const FIND: &str = "SELECT id, workspace_id FROM mcp_servers
                        WHERE organisation_id = $1 AND slug = $2 AND status = 'active'";
    let Some(resource) = resource else { return Ok(person.workspace) };
    let Some(slug) = server_of(resource, &[&*app.mcp_base_url, &*app.public_url]) else { return Ok(None) };
    let Some(slug) = slug else { return Ok(person.workspace) };
    let Some(row) = db.query_opt(FIND, &[&person.organisation, &slug]).await? else { return Ok(None) };
    let is_open = may_use(db, person.organisation, row.try_get("id")?, person.user).await?;
    Ok(if is_open { Some(row.try_get("workspace_id")?) } else { None })
}

/// The slug in a resource of ours: none of other hosts and paths, `Some(None)` for the merged server.
fn server_of(resource: &str, bases: &[&str]) -> Option<Option<String>> {
    let resource = Url::parse(resource).ok()?;
    let origin = |base: &&str| Url::parse(base).map(|url| url.origin());
    if !bases.iter().any(|base| origin(base).is_ok_and(|own| own == resource.origin())) {
        return None;
    }
    let segments: Vec<&str> = resource.path_segments()?.filter(|segment| !segment.is_empty()).collect();
    match segments.as_slice() {
        [] | ["mcp"] => Some(None),
        ["mcp", slug] | [slug, "mcp"] => Some(Some((*slug).to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_of_ours_names_a_server_or_all_of_them() {
        for (resource, expected) in [
            ("https://gw.example/tools/mcp", Some(Some("tools"))),
            ("https://gw.example/mcp/tools", Some(Some("tools"))),
            ("https://gw.example/mcp", Some(None)),
            ("https://gw.example", Some(None)),
            ("https://evil.example/tools/mcp", None),
            ("http://gw.example/tools/mcp", None),
            ("https://gw.example/v1/chat", None),
            ("tools", None),
        ] {
            let found = server_of(resource, &["https://gw.example"]);
            assert_eq!(found, expected.map(|slug| slug.map(str::to_owned)), "{resource}");
        }
    }
}
