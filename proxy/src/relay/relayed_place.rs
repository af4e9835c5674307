//! Where a provider has what a relayed path means: the same path, another one, or one that is made of the account's places,
//! with the caller's query behind it.

use crate::catalog::target::Target;
use crate::engine::{path_and_query, translate};
use crate::request::refusal::Refusal;
use http::Method;
use pingora_http::RequestHeader;
use shared::providers::{Family, Way};

pub(crate) struct RelayedPlace {
    pub path_and_query: String,
    /// It asks for a deployment, and the model stands nowhere else.
    pub names_deployment: bool,
}

pub(crate) fn relayed_place(
    target: &Target,
    path: &str,
    head: &RequestHeader,
    model: Option<&str>,
) -> Result<RelayedPlace, Refusal> {
    let row = &target.provider.row;
    let model = model.unwrap_or_default();
    let family = Family::from_path(&head.method, path);
    if let Some((family, _)) = family
        && let Some(Way::Mapped(wire)) = row.way(family, model)
    {
        // Where the collection is: the rest is for its codec.
        let path_and_query = translate::fill(&wire.path, target, [model; 2], None)?;
        return Ok(RelayedPlace { path_and_query, names_deployment: false });
    }
    if let Some((family, rest)) = family
        && let Some(Way::Placed(template)) = row.way(family, model)
    {
        let names_deployment = template.has("deployment");
        let filled = translate::fill(template, target, [model; 2], None)?;
        let path_and_query = joined(&filled, rest, head.uri.query().unwrap_or_default(), names_deployment);
        return Ok(RelayedPlace { path_and_query, names_deployment });
    }
    match row.upstream_path(&head.method, path) {
        Ok(place) => Ok(RelayedPlace { path_and_query: path_and_query(&place, head), names_deployment: false }),
        Err(why) => Err(Refusal::endpoint_not_supported(&target.provider.name, why)),
    }
}

/// How it would be asked, for whoever wants to know: the path, and the codec of what is kept in a form of its own. None where
/// the path is the same for every request.
pub(crate) fn explained_place(
    target: &Target,
    method: &Method,
    path: &str,
    model: &str,
) -> Option<Result<(String, Option<String>), Refusal>> {
    let (family, rest) = Family::from_path(method, path)?;
    match target.provider.row.way(family, model)? {
        Way::Placed(template) => {
            let filled = translate::fill(template, target, [model; 2], None);
            Some(filled.map(|filled| (joined(&filled, rest, "", false), None)))
        }
        Way::Mapped(wire) => {
            let filled = translate::fill(&wire.path, target, [model; 2], None);
            Some(filled.map(|filled| (filled, Some(wire.codec.to_string()))))
        }
        Way::Native(_) | Way::Translated(_) | Way::Reshaped(_) => None,
    }
}

/// What follows the family stands before the row's query, the caller's behind it. Of a name that both say the caller's
/// counts.
fn joined(filled: &str, rest: &str, query: &str, names_deployment: bool) -> String {
    let (path, own) = filled.split_once('?').unwrap_or((filled, ""));
    let name = |pair: &str| pair.split('=').next().unwrap_or_default().to_ascii_lowercase();
    let sent = query.split('&').filter(|pair| !(pair.is_empty() || names_deployment && name(pair) == "model"));
    let sent: Vec<&str> = sent.collect();
    let own = own.split('&').filter(|pair| !pair.is_empty() && !sent.iter().any(|sent| name(sent) == name(pair)));
    let pairs: Vec<&str> = own.chain(sent.iter().copied()).collect();
    match pairs.is_empty() {
        true => [path, rest].concat(),
        false => [path, rest, "?", &pairs.join("&")].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn the_rest_of_a_path_and_both_queries_find_their_places() {
        for (filled, rest, query, names_deployment, expected) in [
            ("/files?api-version=1", "/f-1/content", "", false, "/files/f-1/content?api-version=1"),
            ("/files?api-version=1", "", "purpose=batch", false, "/files?api-version=1&purpose=batch"),
            ("/files?api-version=1", "", "Api-Version=2&x", false, "/files?Api-Version=2&x"),
            ("/v1/files", "/f", "", false, "/v1/files/f"),
            (
                "/realtime?api-version=1&deployment=d",
                "",
                "model=m&y=2",
                true,
                "/realtime?api-version=1&deployment=d&y=2",
            ),
        ] {
            assert_eq!(joined(filled, rest, query, names_deployment), expected);
        }
    }
}
