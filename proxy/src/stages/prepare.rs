//! Target and caller's head → the head that goes upstream on the engine lane: our own few headers, the provider's
//! credential, and what the caller asked to forward. Nothing else of the client's leaves.

use crate::headers::{Aliases, GatewayHeaders};
use crate::refusal::Refusal;
use crate::target::{Credential, Target};
use http::{HeaderName, HeaderValue, Uri, header};
use pingora_http::RequestHeader;

/// Never forwarded on request: they frame or encode the message, belong to a hop, or open a cloud's metadata
/// service.
const NOT_FORWARDED: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept-encoding",
    "cookie",
    "metadata-flavor",
    "x-aws-ec2-metadata-token",
    "x-google-metadata-request",
];

/// Built as plain parts: Pingora's own setters also keep each header's spelling, which HTTP does not need. The dialer
/// adds `Host` and the framing.
pub fn upstream_head(
    target: &Target,
    path: &str,
    sent: &RequestHeader,
    headers: &GatewayHeaders<'_>,
    forward: Option<&[String]>,
    aliases: &Aliases,
) -> Result<RequestHeader, Refusal> {
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = http::Method::POST;
    parts.uri = uri(target, path, sent.uri.query())?;
    let map = &mut parts.headers;
    map.reserve(12);
    map.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Compressed bytes could not be looked into on the way back.
    map.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (name, value) in &target.provider.row.headers {
        map.insert(name.clone(), value.clone());
    }
    for (name, value) in &target.headers {
        map.insert(name.clone(), value.clone());
    }
    for (name, value) in [
        ("openai-organization", headers.openai_organization),
        ("openai-project", headers.openai_project),
        ("openai-beta", headers.openai_beta.or(headers.bare_openai_beta)),
        ("anthropic-beta", headers.anthropic_beta.or(headers.bare_anthropic_beta)),
        ("anthropic-version", headers.anthropic_version.or(headers.bare_anthropic_version)),
    ] {
        if let Some(value) = value {
            map.insert(HeaderName::from_static(name), value.clone());
        }
    }
    for name in forwarded(headers.forward_headers, forward, aliases)? {
        if sent.headers.contains_key(&name) {
            map.remove(&name);
        }
        for value in sent.headers.get_all(&name) {
            map.append(name.clone(), value.clone());
        }
    }
    // Last, so that no forwarded header can replace it.
    map.remove(header::AUTHORIZATION);
    map.remove("x-api-key");
    for (name, value) in credentials(target)? {
        map.insert(name, value);
    }
    Ok(RequestHeader::from(parts))
}

/// The provider's place with the caller's query, which some endpoints take options from.
fn uri(target: &Target, path: &str, query: Option<&str>) -> Result<Uri, Refusal> {
    let base = target.origin.base_path();
    let written = match query {
        None => Uri::try_from([base, path].concat()),
        Some(query) => Uri::try_from([base, path, "?", query].concat()),
    };
    written.map_err(|_| Refusal::internal())
}

/// Puts the credential where the provider looks for it, in place of whatever the client sent there.
pub fn authenticate(head: &mut RequestHeader, target: &Target) -> Result<(), Refusal> {
    head.remove_header(&header::AUTHORIZATION);
    head.remove_header("x-api-key");
    for (name, value) in credentials(target)? {
        head.insert_header(name, value).map_err(|_| Refusal::internal())?;
    }
    Ok(())
}

/// The one place where a stored credential is opened: into the headers of one request, of its own provider.
fn credentials(target: &Target) -> Result<Vec<(HeaderName, HeaderValue)>, Refusal> {
    let auth = &target.provider.row.auth;
    match &target.credential {
        Credential::Given(sent) => Ok(sent.as_ref().and_then(|sent| auth.header(sent)).into_iter().collect()),
        Credential::Stored(stored) => {
            let opened = stored.open()?;
            let custom = opened.configurations.get("custom_headers").and_then(serde_json::Value::as_object);
            let custom = custom
                .into_iter()
                .flatten()
                .filter_map(|(name, value)| Some((HeaderName::try_from(name).ok()?, secret(value.as_str()?)?)));
            let key = opened.key.as_deref().and_then(secret).and_then(|key| auth.header(&key));
            Ok(custom.chain(key).collect())
        }
    }
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// What the header lists, else what the config lists.
fn forwarded(
    header: Option<&HeaderValue>,
    config: Option<&[String]>,
    aliases: &Aliases,
) -> Result<Vec<HeaderName>, Refusal> {
    match (header, config) {
        (None, Some(names)) => names.iter().map(|name| forwarded_name(name, aliases)).collect(),
        _ => forwarded_names(header, aliases),
    }
}

/// `a, b` or `["a","b"]`; names may be written with `_`.
fn forwarded_names(value: Option<&HeaderValue>, aliases: &Aliases) -> Result<Vec<HeaderName>, Refusal> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let text = value.to_str().map_err(|_| Refusal::invalid_forward_headers("?"))?.trim();
    let names: Vec<String> = match text.starts_with('[') {
        true => serde_json::from_str(text).map_err(|_| Refusal::invalid_forward_headers(text))?,
        false => text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
    };
    names.into_iter().map(|name| forwarded_name(&name, aliases)).collect()
}

fn forwarded_name(name: &str, aliases: &Aliases) -> Result<HeaderName, Refusal> {
    let refused = || Refusal::invalid_forward_headers(name);
    let parsed = HeaderName::try_from(name.replace('_', "-").to_ascii_lowercase()).map_err(|_| refused())?;
    let is_allowed = !NOT_FORWARDED.contains(&parsed.as_str()) && !aliases.is_ours(&parsed);
    if is_allowed { Ok(parsed) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarded_names_are_checked_one_by_one() {
        let aliases = Aliases::new(&["x-acme-".into()]).unwrap();
        for (text, accepted) in [
            ("x-one, X_Two", Some(vec!["x-one", "x-two"])),
            (r#"["x-one"]"#, Some(vec!["x-one"])),
            ("", Some(vec![])),
            ("x-gateway-forward-headers", None),
            ("x-acme-api-key", None),
            ("Metadata-Flavor", None),
            ("host", None),
            ("transfer_encoding", None),
            ("cookie", None),
            ("bad name", None),
        ] {
            let value = HeaderValue::from_static(text);
            let names = forwarded_names(Some(&value), &aliases).ok();
            let names = names.as_ref().map(|names| names.iter().map(HeaderName::as_str).collect::<Vec<_>>());
            assert_eq!(names, accepted, "{text}");
        }
    }
}
