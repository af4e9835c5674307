//! A leaf of the plan and what the request says → the target of one attempt: which provider, at which address, with
//! which credential, under which name of the model. A stored credential is bound to the address it was stored for.

mod misnamed;
mod sent_fields;

pub(crate) use sent_fields::extras;

use crate::catalog::account::{complete_project, described_account, service_project, stored_project};
use crate::catalog::choose_plan::{Keeping, blocks_inline, keeps_to_config};
use crate::catalog::inference_profiles::{InferenceProfiles, ProfileKey};
use crate::catalog::placement::PlacementFields;
use crate::catalog::providers::{Provider, Providers};
use crate::catalog::secrets::mapping::{check_hosts, mapped};
use crate::catalog::target::{Credential, Stored, Target};
use crate::catalog::workspace_provider::{self, WorkspaceProvider};
use crate::identity::identify::{Principal, service_key, strip_bearer};
use crate::net::custom_hosts::Hosts;
use crate::net::dial::{Dialer, Origin};
use crate::request::headers::GatewayHeaders;
use crate::request::realtime_head;
use crate::request::refusal::{Inline, Refusal};
use crate::routing::plan::{Leaf, PLACING, ProviderSource, WAYS};
use crate::snapshot::Snapshot;
use chrono::{DateTime, Utc};
use http::HeaderValue;
use sent_fields::is_meant_for;
use serde_json::Value;
use shared::config::Placement;
use shared::model::IntegrationModel;
use shared::nearest::nearest;
use shared::providers::ProviderEntry;
use shared::secrets::seal::data_key::DataKey;
use shared::secrets::seal::{SealError, Sealed, Sealer};
use shared::telemetry::LogLimit;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

const OTHER_ADDRESS: &str = "a stored credential goes to its own address alone";
const NO_PROVIDER: &str = "it holds a credential and does not name the provider that the credential is for";

/// Everything a target is found in.
pub struct TargetResolver<'e> {
    pub snapshot: &'e Snapshot,
    pub providers: &'e Providers,
    pub hosts: &'e Hosts,
    pub dialer: &'e Dialer,
    pub sealer: &'e Arc<Sealer>,
    pub profiles: &'e InferenceProfiles,
    pub first_byte: Duration,
    pub stream_idle: Duration,
    pub now: DateTime<Utc>,
}

/// A target, and the model's name there when it differs from what stands in the body.
pub struct Resolved {
    pub target: Target,
    pub model: Option<String>,
}

impl TargetResolver<'_> {
    pub fn resolve(
        &self,
        leaf: &Leaf,
        headers: &GatewayHeaders<'_>,
        caller: &Principal,
        model: Option<&str>,
    ) -> Result<Resolved, Refusal> {
        if (headers.custom_host.is_some() || !headers.placement.is_empty())
            && let Some(why) = keeps_to_config(self.snapshot, caller)
        {
            self.check_place(leaf, headers, why)?;
        }
        let mut resolved = match &leaf.source {
            ProviderSource::Named(name) => self.named(name, leaf, headers, model).map(plain),
            ProviderSource::Stored(slug) => self.stored(slug, leaf, headers, caller, model),
            ProviderSource::Request => self.requested(leaf, headers, caller, model),
        }?;
        let named = resolved.model.as_deref().or(model);
        if let Some(key) = ProfileKey::new(caller.workspace.id.uuid(), &resolved.target, named) {
            resolved.target.called = self.profiles.known(&key, Instant::now());
        }
        Ok(resolved)
    }

    /// Where a request must keep to its config, what its headers say of a place is what the config says. A stored account is at
    /// its own place whatever they say, and an address beside it is checked there.
    fn check_place(&self, leaf: &Leaf, headers: &GatewayHeaders<'_>, why: Keeping) -> Result<(), Refusal> {
        let is_stored = match &leaf.source {
            ProviderSource::Stored(_) => true,
            ProviderSource::Request => headers.names_stored(),
            ProviderSource::Named(_) => false,
        };
        if is_stored {
            return Ok(());
        }
        let is_placing = |suffix: &str| PLACING.iter().any(|field| *field == suffix.replace('-', "_"));
        for (suffix, value) in headers.placement.iter().filter(|(suffix, _)| is_placing(suffix)) {
            let sent = value.to_str().ok();
            if sent.is_none() || leaf.placement.text(&suffix.replace('-', "_")) != sent {
                return Err(why.refusal(Inline::ProviderUrl(suffix)));
            }
        }
        let Some(asked) = headers.custom_host else { return Ok(()) };
        let Some(own) = &leaf.custom_host else { return Err(why.refusal(Inline::CustomHost)) };
        let own = self.hosts.origin(self.dialer, own).map_err(Refusal::invalid_custom_host)?;
        let asked = asked.to_str().map_err(|_| Refusal::invalid_custom_host("it is not text"))?;
        match self.hosts.origin(self.dialer, asked).map_err(Refusal::invalid_custom_host)? == own {
            true => Ok(()),
            false => Err(why.refusal(Inline::CustomHost)),
        }
    }

    /// The model may name the provider; else the headers do; else the workspace's catalogue knows the model.
    fn requested(
        &self,
        leaf: &Leaf,
        headers: &GatewayHeaders<'_>,
        caller: &Principal,
        model: Option<&str>,
    ) -> Result<Resolved, Refusal> {
        let in_header = text(headers.virtual_key)?.or(text(headers.provider)?).or(headers.named_by_mode());
        if let Some((slug, _)) = model.and_then(split_model)
            // Some providers' models begin with an @ of their own.
            && (in_header.is_none() || self.snapshot.provider(caller.workspace.id, slug).is_some())
        {
            let found = self.stored(slug, leaf, headers, caller, model);
            return found.map_err(|refusal| self.misnamed(refusal, slug, "model", caller));
        }
        let Some(name) = in_header else {
            return match self.plain_name(leaf, headers, caller, model) {
                Some(provider) => self.stored(&provider.slug, leaf, headers, caller, model),
                None => Err(self.missing_provider(headers, caller, model)),
            };
        };
        let (slug, is_virtual) = (name.strip_prefix('@'), headers.virtual_key.is_some());
        if let Some(slug) = slug.or(is_virtual.then_some(name)) {
            let param = if is_virtual { "x-gateway-virtual-key" } else { "x-gateway-provider" };
            let found = self.stored(slug, leaf, headers, caller, model);
            return found.map_err(|refusal| self.misnamed(refusal, slug, param, caller));
        }
        // Whoever saved the credential did not say for whom it is, and a caller must not choose.
        if leaf.placement.has_saved_credential() {
            return Err(Refusal::invalid_config(NO_PROVIDER.into()));
        }
        if blocks_inline(self.snapshot, caller) {
            return Err(Refusal::inline_blocked(Inline::Provider));
        }
        self.named(name, leaf, headers, model).map(plain)
    }

    fn named(
        &self,
        name: &str,
        leaf: &Leaf,
        headers: &GatewayHeaders<'_>,
        model: Option<&str>,
    ) -> Result<Target, Refusal> {
        let provider = self.provider(name)?;
        let is_saved = leaf.placement.has_saved_credential();
        // Headers that say where an account is are meant for the provider that the request names.
        let is_meant =
            !is_saved && headers.provider.is_none_or(|named| named.as_bytes().trim_ascii() == name.as_bytes());
        let place = PlacementFields {
            config: Some(&leaf.placement),
            headers: is_meant.then_some(headers),
            handle: None,
            account: None,
            model,
        };
        let provider = varied(provider, &place, leaf, place.headers);
        let origin = match is_saved {
            true => self.bound_to(self.saved_home(leaf, &provider, &place)?, leaf, headers)?,
            false => match self.custom_host(leaf, headers)? {
                Some(origin) => origin,
                None => self.own_origin(&provider, &place)?,
            },
        };
        let mut placed = place.placed(&provider.row);
        let placement = self.placement(leaf)?;
        let key = placement.text("api_key").map(HeaderValue::try_from).transpose();
        let key = key.map_err(|_| Refusal::invalid_config("api_key is no header value".into()))?;
        let key = key.or_else(|| own_credential(headers, name));
        let fields = PlacementFields { config: Some(&*placement), ..place };
        complete_project(&mut placed, &provider, || service_project(&fields));
        let account = described_account(&provider, &fields, key.as_ref()).map(|account| account.map(Arc::new));
        let credential = Credential::Given(key);
        let named_model = place.get("azure_model_name").filter(|_| provider.name == "azure-openai");
        let called = place.fallback_model().or(named_model).map(str::to_owned);
        // Hardly any request has such headers, and there are many fields.
        let placing = place.headers.filter(|headers| !headers.placement.is_empty());
        let in_header = |field: &str| placing.filter(|_| is_meant_for(&provider.name, field))?.placement(field);
        let sent = extras(leaf, |field| in_header(field).map(Cow::Borrowed));
        let target = self.target(provider, origin, leaf, headers)?;
        Ok(Target { credential, account, headers: sent, placed, called, ..target })
    }

    fn stored(
        &self,
        slug: &str,
        leaf: &Leaf,
        headers: &GatewayHeaders<'_>,
        caller: &Principal,
        model: Option<&str>,
    ) -> Result<Resolved, Refusal> {
        // Not passed by in silence: the account is where it was stored to be.
        let placing = |name: &str| PLACING.iter().find(|field| **field == name);
        if let Some(field) = leaf.placement.names().find_map(placing) {
            let why = format!(
                "`{field}` belongs to the account of `@{slug}`: set it there, and not at a target that names it"
            );
            return Err(Refusal::invalid_config(why));
        }
        let entry = workspace_provider::find(self.snapshot, &caller.workspace, slug, self.now)?;
        let bare = model.and_then(split_model).filter(|(named, _)| *named == slug).map(|(_, bare)| bare);
        let known = bare.or(model).map(|model| entry.model(self.snapshot, model)).transpose()?.flatten();
        let integration = &entry.integration;
        let mapped = mapped(&**integration, &caller.workspace, self.snapshot)?;
        let provider = self.provider(&integration.ai_provider_id)?;
        let place = PlacementFields {
            config: None,
            headers: None,
            handle: Some(&entry.provider),
            account: Some(&integration.configurations),
            model: bare.or(model),
        };
        let provider = varied(provider, &place, leaf, Some(headers));
        let home = self.home(&entry, known.as_deref(), &provider, &place)?;
        let mut placed = place.placed(&provider.row);
        let origin = self.bound_to(home, leaf, headers)?;
        check_hosts(&mapped, integration, &origin, &provider)?;
        let of_account = |name: &str| integration.configurations.get(name).and_then(Value::as_str);
        let own = |name: &str| entry.provider.own_setting(name).or_else(|| of_account(name)).map(Cow::Borrowed);
        let stored = Stored {
            provider: entry.provider.clone(),
            data_key: self.data_key(integration.sealed.as_ref()),
            own_key: self.data_key(entry.provider.sealed.as_ref()),
            model: known.filter(|model| model.sealed.is_some()).map(|model| {
                let data_key = self.data_key(model.sealed.as_ref());
                (model, data_key)
            }),
            mapped,
            sealer: self.sealer.clone(),
            integration: entry.integration.clone(),
        };
        complete_project(&mut placed, &provider, || stored_project(integration, &stored.open().ok()?));
        let target = Target {
            headers: extras(leaf, own),
            placed,
            called: place.fallback_model().map(str::to_owned),
            credential: Credential::Stored(Arc::new(stored)),
            own_bearer: own_bearer(headers, caller, &provider.row),
            ..self.target(provider, origin, leaf, headers)?
        };
        Ok(Resolved { target, model: bare.map(str::to_owned) })
    }

    /// Where an integration's credential belongs: the model's own host, else the integration's, else the provider's.
    fn home(
        &self,
        entry: &WorkspaceProvider,
        model: Option<&IntegrationModel>,
        provider: &Provider,
        place: &PlacementFields<'_>,
    ) -> Result<Arc<Origin>, Refusal> {
        let host =
            |value: Option<&Value>| value.and_then(|value| value.get("custom_host")?.as_str().map(str::to_owned));
        let stored = host(model.and_then(|model| model.configurations.as_ref()))
            .or_else(|| host(Some(&entry.integration.configurations)));
        match stored {
            Some(url) => self.hosts.origin(self.dialer, &url).map_err(Refusal::invalid_custom_host),
            None => self.own_origin(provider, place),
        }
    }

    /// Where a saved config's credential belongs: the host that the config names, else the provider's.
    fn saved_home(
        &self,
        leaf: &Leaf,
        provider: &Provider,
        place: &PlacementFields<'_>,
    ) -> Result<Arc<Origin>, Refusal> {
        match &leaf.custom_host {
            Some(url) => self.hosts.origin(self.dialer, url).map_err(Refusal::invalid_custom_host),
            None => self.own_origin(provider, place),
        }
    }

    /// The provider's own address, with its places filled.
    fn own_origin(&self, provider: &Provider, place: &PlacementFields<'_>) -> Result<Arc<Origin>, Refusal> {
        let known = || provider.origin.clone().ok_or_else(|| Refusal::missing_custom_host(&provider.name));
        let Some(address) = &provider.row.address else { return known() };
        match address.fill(|name| provider.row.placed(name, |field| place.get(field))) {
            Ok(url) if provider.row.base_url.as_deref() == Some(&url) => known(),
            Ok(url) => self.hosts.origin(self.dialer, &url).map_err(Refusal::invalid_custom_host),
            Err(place) => Err(Refusal::missing_place(&provider.name, &place, provider.row.fields_of(&place))),
        }
    }

    /// The address that was asked for, as long as it is of the origin that a stored credential belongs to.
    fn bound_to(&self, home: Arc<Origin>, leaf: &Leaf, headers: &GatewayHeaders<'_>) -> Result<Arc<Origin>, Refusal> {
        match self.custom_host(leaf, headers)? {
            Some(asked) if asked != home => Err(Refusal::invalid_custom_host(OTHER_ADDRESS)),
            Some(asked) => Ok(asked),
            None => Ok(home),
        }
    }

    fn data_key(&self, sealed: Option<&Sealed>) -> Option<Arc<DataKey>> {
        let id = sealed?.data_key_id().ok()?;
        self.snapshot.data_key(&id)
    }

    /// The target's own fields, its credentials opened.
    fn placement<'l>(&self, leaf: &'l Leaf) -> Result<Cow<'l, Placement>, Refusal> {
        let opened = leaf.placement.opened(|place, sealed| {
            let id = sealed.data_key_id()?;
            let key = self.snapshot.data_key(&id).ok_or(SealError::UnknownDataKey(id))?;
            self.sealer.open_with(&key, place, sealed)
        });
        opened.map_err(|error| {
            static UNOPENED: LogLimit = LogLimit::new();
            if let Some(skipped) = UNOPENED.pass() {
                tracing::error!(%error, skipped, "a credential in a saved config cannot be opened");
            }
            Refusal::internal()
        })
    }

    fn provider(&self, name: &str) -> Result<Arc<Provider>, Refusal> {
        let known = self.providers.get(name).cloned();
        known.ok_or_else(|| Refusal::unknown_provider(name, nearest(name, self.providers.names())))
    }

    /// Of the header, else of the config.
    fn custom_host(&self, leaf: &Leaf, headers: &GatewayHeaders<'_>) -> Result<Option<Arc<Origin>>, Refusal> {
        let url = match headers.custom_host {
            Some(url) => url.to_str().map_err(|_| Refusal::invalid_custom_host("it is not text"))?,
            None => match &leaf.custom_host {
                Some(url) => url.as_str(),
                None => return Ok(None),
            },
        };
        self.hosts.origin(self.dialer, url).map(Some).map_err(Refusal::invalid_custom_host)
    }

    fn target(
        &self,
        provider: Arc<Provider>,
        origin: Arc<Origin>,
        leaf: &Leaf,
        headers: &GatewayHeaders<'_>,
    ) -> Result<Target, Refusal> {
        let timeout = timeout(headers)?.or(leaf.request_timeout);
        Ok(Target {
            provider,
            origin,
            credential: Credential::Given(None),
            own_bearer: None,
            account: Ok(None),
            headers: Vec::new(),
            placed: Vec::new(),
            called: None,
            timeout: timeout.unwrap_or(self.first_byte),
            is_ceiling: timeout.is_none(),
            stream_idle: leaf.stream_idle.unwrap_or(self.stream_idle),
        })
    }
}

/// The provider as this account and this request meet it. How it is asked may be said of a stored account, too.
fn varied(
    provider: Arc<Provider>,
    place: &PlacementFields<'_>,
    leaf: &Leaf,
    headers: Option<&GatewayHeaders<'_>>,
) -> Arc<Provider> {
    let row = provider.row.clone();
    let of_request = PlacementFields { config: Some(&leaf.placement), headers, ..*place };
    provider.varied(|name| match name {
        "model" => place.model,
        name => row.placed(name, |field| match WAYS.contains(&field) {
            true => of_request.get(field),
            false => place.get(field),
        }),
    })
}

fn plain(target: Target) -> Resolved {
    Resolved { target, model: None }
}

/// `@slug/model`, cut at the first slash.
fn split_model(model: &str) -> Option<(&str, &str)> {
    model.strip_prefix('@')?.split_once('/').filter(|(slug, bare)| !slug.is_empty() && !bare.is_empty())
}

/// `Authorization` is the provider's credential when the request names that provider, or none. `x-api-key` and
/// `x-goog-api-key` are it only when the service key came in its own header; otherwise they may be the service key. That
/// one never leaves the gateway, also when a client sends it in several places. What AWS's clients sign for our address
/// is nobody's credential elsewhere.
fn own_credential(headers: &GatewayHeaders<'_>, provider: &str) -> Option<HeaderValue> {
    if headers.provider.is_some_and(|named| named.as_bytes().trim_ascii() != provider.as_bytes()) {
        return None;
    }
    let service_key = service_key(headers);
    let x_api_key = headers.api_key.and(headers.x_api_key);
    let x_goog_api_key = headers.api_key.and(headers.x_goog_api_key);
    let authorization = headers.authorization.filter(|value| !value.as_bytes().starts_with(b"AWS4-HMAC-"));
    let mut sent = [authorization, x_api_key, x_goog_api_key].into_iter().flatten();
    let sent = sent.find(|value| Some(strip_bearer(value)) != service_key).cloned();
    let offered = || headers.websocket_key.and_then(realtime_head::key).filter(|key| Some(*key) != service_key);
    sent.or_else(|| HeaderValue::from_bytes(offered()?).ok())
}

/// What a person signed in for at the provider, where the workspace lets it take the place of its own credential. The service
/// key came in its own header then, so that neither can be taken for the other.
fn own_bearer(headers: &GatewayHeaders<'_>, caller: &Principal, row: &ProviderEntry) -> Option<HeaderValue> {
    if !caller.workspace.allows_own_credentials {
        return None;
    }
    let service_key = headers.api_key.map(strip_bearer)?;
    let sent = headers.authorization.filter(|sent| row.is_bearer_form(sent) && strip_bearer(sent) != service_key)?;
    let mut own = sent.clone();
    own.set_sensitive(true);
    Some(own)
}

fn text(value: Option<&HeaderValue>) -> Result<Option<&str>, Refusal> {
    value.map(|value| value.to_str().map(str::trim).map_err(|_| Refusal::invalid_provider("?"))).transpose()
}

fn timeout(headers: &GatewayHeaders<'_>) -> Result<Option<Duration>, Refusal> {
    let Some(value) = headers.request_timeout else { return Ok(None) };
    let millis: Option<u64> = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    match millis {
        Some(millis @ 1..) => Ok(Some(Duration::from_millis(millis))),
        _ => Err(Refusal::invalid_header("x-gateway-request-timeout", "a whole number of milliseconds above 0")),
    }
}

#[cfg(test)]
mod credential_home_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_names_a_provider_by_everything_before_its_first_slash() {
        for (model, split) in [
            ("@prod/gpt-4o", Some(("prod", "gpt-4o"))),
            ("@prod/org/model", Some(("prod", "org/model"))),
            ("gpt-4o", None),
            ("org/model", None),
            ("@prod", None),
            ("@/m", None),
            ("@prod/", None),
        ] {
            assert_eq!(split_model(model), split, "{model}");
        }
    }
}
