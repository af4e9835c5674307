//! Target and caller's head → the head that goes upstream on the engine lane: our own few headers, the provider's
//! credential, and what the caller asked to forward. Nothing else of the client's leaves.

use super::betas::{self, is_header_for};
use crate::catalog::account::stored_account;
use crate::catalog::signing::{AccountCredential, BadAccount};
use crate::catalog::target::{Credential, Target};
use crate::net::dial::UpstreamRequest;
use crate::request::headers::{Aliases, GatewayHeaders};
use crate::request::refusal::Refusal;
use http::{HeaderName, HeaderValue, Method, header};
use pingora_http::RequestHeader;
use shared::headers::forwarded_headers;
use std::sync::Arc;

/// Where clients may have put the gateway's key, or what has become the credential.
static KEYS: [HeaderName; 3] =
    [header::AUTHORIZATION, HeaderName::from_static("x-api-key"), HeaderName::from_static("x-goog-api-key")];

/// What of a caller's own headers is meant for the provider, found once for all the heads that are built.
#[derive(Debug, Default)]
pub struct ProviderHeaders {
    named: Vec<(HeaderName, HeaderValue)>,
    /// Names of others.
    forward: Option<HeaderValue>,
}

impl ProviderHeaders {
    pub fn from_headers(headers: &GatewayHeaders<'_>) -> Self {
        let named = [
            ("openai-organization", headers.openai_organization),
            ("openai-project", headers.openai_project),
            ("openai-beta", headers.openai_beta.or(headers.bare_openai_beta)),
            (betas::HEADER, headers.anthropic_beta.or(headers.bare_anthropic_beta)),
            ("anthropic-version", headers.anthropic_version.or(headers.bare_anthropic_version)),
        ];
        let named = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let named = named.map(|(name, value)| (HeaderName::from_static(name), value.clone()));
        Self { named: named.collect(), forward: headers.forward_headers.cloned() }
    }

    /// What goes along with a call because of the request or its account, in one order. No credential is among it.
    pub(super) fn known(
        &self,
        target: &Target,
        sent: &RequestHeader,
        forward: Option<&[String]>,
        aliases: &Aliases,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, Refusal> {
        let mut known: Vec<(HeaderName, HeaderValue)> = self.sent_to(target).cloned().collect();
        for name in forwarded(self.forward.as_ref(), forward, aliases)? {
            if !KEYS.contains(&name) {
                known.extend(sent.headers.get_all(&name).iter().map(|value| (name.clone(), value.clone())));
            }
        }
        known.retain(|(_, value)| !value.is_sensitive());
        known.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
        Ok(known)
    }

    /// The betas of Anthropic's that a request asks for, and that its target is not sent in a header.
    pub(crate) fn betas_outside_header<'h>(&'h self, target: &'h Target) -> Vec<&'h str> {
        let is_withheld = |((name, _), is_of_account): &(&(HeaderName, HeaderValue), bool)| {
            name == betas::HEADER && !is_header_for(target, name, *is_of_account)
        };
        betas::names(self.with_account(target).filter(is_withheld).map(|((_, value), _)| value))
    }

    /// Headers of the account and of the request, and whether they are the account's. The later replace the earlier.
    fn with_account<'h>(&'h self, target: &'h Target) -> impl Iterator<Item = (&'h (HeaderName, HeaderValue), bool)> {
        target.headers.iter().map(|header| (header, true)).chain(self.named.iter().map(|header| (header, false)))
    }

    /// Those of them that the target takes.
    fn sent_to<'h>(&'h self, target: &'h Target) -> impl Iterator<Item = &'h (HeaderName, HeaderValue)> {
        let all = self.with_account(target);
        all.filter(|((name, _), is_of_account)| is_header_for(target, name, *is_of_account)).map(|(header, _)| header)
    }

    /// The version of Anthropic's interface that a target is asked in, where the caller or its account says one.
    pub(crate) fn anthropic_version<'h>(&'h self, target: &'h Target) -> Option<&'h str> {
        let version = self.named.iter().chain(&target.headers).find(|(name, _)| name == "anthropic-version");
        version.and_then(|(_, value)| value.to_str().ok())
    }
}

/// What a head must still be given, once all else of it and its body are final.
pub type Unsigned = Option<Arc<AccountCredential>>;

/// The dialer adds `Host` and the framing. `path` comes with its query.
pub fn upstream_head(
    target: &Target,
    path: &str,
    sent: &RequestHeader,
    meant: &ProviderHeaders,
    forward: Option<&[String]>,
    aliases: &Aliases,
) -> Result<(UpstreamRequest, Unsigned), Refusal> {
    let base = target.origin.base_path();
    let place = [base, without_version_of(base, path)].concat();
    let mut request = UpstreamRequest::new(Method::POST, place).ok_or_else(Refusal::internal)?;
    request.add(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Compressed bytes could not be looked into on the way back.
    request.add(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let known = target.provider.row.headers.iter().chain(meant.sent_to(target));
    for (name, value) in known {
        request.put(name.clone(), value.clone());
    }
    for name in forwarded(meant.forward.as_ref(), forward, aliases)? {
        if sent.headers.contains_key(&name) {
            request.remove(&name);
        }
        for value in sent.headers.get_all(&name) {
            request.add(name.clone(), value.clone());
        }
    }
    // Bodies were made plain when they came.
    request.remove(&header::CONTENT_ENCODING);
    // Last, so that no forwarded header can replace it.
    KEYS.iter().for_each(|name| request.remove(name));
    let (known, unsigned) = credentials(target)?;
    for (name, value) in known {
        request.put(name, value);
    }
    Ok((request, unsigned))
}

/// A path without the version that the address ends in already: `/v1beta/models` at `https://host/v1beta`.
fn without_version_of<'p>(base: &str, path: &'p str) -> &'p str {
    let inner = path.strip_prefix('/').unwrap_or(path);
    let version = &inner[..inner.find(['/', '?']).unwrap_or(inner.len())];
    let is_version =
        version.strip_prefix('v').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    match is_version && base.strip_suffix(version).is_some_and(|before| before.ends_with('/')) {
        true => &inner[version.len()..],
        false => path,
    }
}

/// Puts the credential where the provider looks for it, in place of whatever the client sent there.
pub fn authenticate(head: &mut RequestHeader, target: &Target) -> Result<Unsigned, Refusal> {
    for name in &KEYS {
        head.remove_header(name);
    }
    let (known, unsigned) = credentials(target)?;
    for (name, value) in known {
        head.insert_header(name, value).map_err(|_| Refusal::internal())?;
    }
    Ok(unsigned)
}

/// What of a target's credential must be computed, where that is seldom so: to see ahead whether it can be.
pub fn computed(target: &Target) -> Result<Unsigned, Refusal> {
    match AccountCredential::is_made_for(&target.provider.name) {
        true => Ok(credentials(target)?.1),
        false => Ok(None),
    }
}

/// The one place where a stored credential is opened: into the headers of one request, of its own provider. What must be
/// computed of it comes apart.
fn credentials(target: &Target) -> Result<(Vec<(HeaderName, HeaderValue)>, Unsigned), Refusal> {
    let row = &target.provider.row;
    if let Some(own) = &target.own_bearer {
        return Ok((row.credential_header(own).into_iter().collect(), None));
    }
    match &target.credential {
        Credential::Given(sent) => match &target.account {
            Ok(None) => Ok((sent.as_ref().and_then(|sent| row.credential_header(sent)).into_iter().collect(), None)),
            Ok(Some(account)) => Ok(with_account(Vec::new(), account.clone())),
            Err(bad) => Err(bad_account(target, *bad)),
        },
        Credential::Stored(stored) => {
            let opened = stored.open()?;
            let custom = opened.configurations.get("custom_headers").and_then(serde_json::Value::as_object);
            let custom = custom
                .into_iter()
                .flatten()
                .filter_map(|(name, value)| Some((HeaderName::try_from(name).ok()?, secret(value.as_str()?)?)));
            let account = stored_account(&target.provider, &stored.integration, &opened);
            if let Some(account) = account.map_err(|bad| bad_account(target, bad))? {
                return Ok(with_account(custom.collect(), Arc::new(account)));
            }
            let key = opened.key.as_deref().and_then(secret).and_then(|key| row.credential_header(&key));
            Ok((custom.chain(key).collect(), None))
        }
    }
}

fn bad_account(target: &Target, bad: BadAccount) -> Refusal {
    Refusal::bad_account(&target.provider.name, bad)
}

/// A key that is sent as it is needs no more than its header.
fn with_account(
    mut known: Vec<(HeaderName, HeaderValue)>,
    account: Arc<AccountCredential>,
) -> (Vec<(HeaderName, HeaderValue)>, Unsigned) {
    match &*account {
        AccountCredential::Header(name, value) => {
            known.push((name.clone(), value.clone()));
            (known, None)
        }
        _ => (known, Some(account)),
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
    let parsed = forwarded_headers::parse(name).map_err(|_| refused())?;
    if aliases.is_ours(&parsed) { Err(refused()) } else { Ok(parsed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_stands_in_an_address_once() {
        for (base, path, expected) in [
            ("/v1beta", "/v1beta/models/m:generateContent", "/models/m:generateContent"),
            ("/proxy/v1", "/v1/chat/completions?x=1", "/chat/completions?x=1"),
            ("/v1", "/v1beta/models", "/v1beta/models"),
            ("", "/v1/messages", "/v1/messages"),
            ("/xv1", "/v1/messages", "/v1/messages"),
            ("/models", "/models/m", "/models/m"),
        ] {
            assert_eq!(without_version_of(base, path), expected, "{base} {path}");
        }
    }

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
            ("x-aws-ec2-metadata-token-ttl-seconds", None),
            ("bad name", None),
        ] {
            let value = HeaderValue::from_static(text);
            let names = forwarded_names(Some(&value), &aliases).ok();
            let names = names.as_ref().map(|names| names.iter().map(HeaderName::as_str).collect::<Vec<_>>());
            assert_eq!(names, accepted, "{text}");
        }
    }
}
