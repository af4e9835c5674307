//! Makes targets of the leaves of a plan, and knows where it depends on the model whether a target may be asked. The
//! relay lane's way from target to target is in `passage`.

use super::guards::Guards;
use crate::catalog::inference_profiles::InferenceProfiles;
use crate::catalog::providers::Providers;
use crate::catalog::resolve::TargetResolver;
use crate::catalog::secrets::mapping::check_hosts;
use crate::catalog::target::{Credential, Target};
use crate::identity::identify::Principal;
use crate::net::custom_hosts::Hosts;
use crate::net::dial::Dialer;
use crate::request::headers::{Aliases, GatewayHeaders};
use crate::request::refusal::Refusal;
use crate::routing::plan::{Plan, ProviderSource};
use crate::snapshot::Snapshot;
use chrono::{DateTime, Utc};
use shared::providers::Address;
use shared::secrets::seal::Sealer;
use std::sync::Arc;
use std::time::Duration;

pub struct Router {
    pub snapshot: Arc<Snapshot>,
    pub providers: Providers,
    pub hosts: Hosts,
    pub dialer: Arc<Dialer>,
    pub sealer: Arc<Sealer>,
    pub aliases: Arc<Aliases>,
    pub guards: Guards,
    pub profiles: InferenceProfiles,
    /// Longest wait for the head of an answer, and longest silence inside it, where nobody says another.
    pub first_byte: Duration,
    pub stream_idle: Duration,
    /// Whether policies hold at all.
    pub has_policies: bool,
}

impl Router {
    pub(crate) fn resolver(&self, now: DateTime<Utc>) -> TargetResolver<'_> {
        TargetResolver {
            snapshot: &self.snapshot,
            providers: &self.providers,
            hosts: &self.hosts,
            dialer: &self.dialer,
            sealer: &self.sealer,
            profiles: &self.profiles,
            first_byte: self.first_byte,
            stream_idle: self.stream_idle,
            now,
        }
    }

    /// The target at an address that its row has for some of what it offers; none for one that is not at the provider's
    /// own: whoever said another stays there.
    pub(crate) fn at_address(&self, target: &Target, url: &str) -> Result<Option<Target>, Refusal> {
        match self.is_at_home(target) {
            true => self.moved(target, url).map(Some),
            false => Ok(None),
        }
    }

    /// The same with places in the address.
    pub(crate) fn at_base(&self, target: Target, base: Option<&Address>) -> Result<Target, Refusal> {
        let Some(base) = base.filter(|_| self.is_at_home(&target)) else { return Ok(target) };
        let url = base.fill(|place| target.placed(place));
        let url = url.map_err(|place| {
            let row = &target.provider.row;
            Refusal::missing_place(&target.provider.name, &place, row.fields_of(&place))
        })?;
        self.moved(&target, &url)
    }

    fn is_at_home(&self, target: &Target) -> bool {
        // An account at an address of its own has its key for that address alone.
        if target.has_own_base() {
            return false;
        }
        let home = match &target.provider.row.address {
            Some(address) => {
                let own = address.fill(|place| target.placed(place)).ok();
                own.and_then(|own| self.hosts.origin(&self.dialer, &own).ok())
            }
            None => target.provider.origin.clone(),
        };
        home.is_some_and(|home| home == target.origin)
    }

    fn moved(&self, target: &Target, url: &str) -> Result<Target, Refusal> {
        let origin = self.hosts.origin(&self.dialer, url).map_err(Refusal::invalid_custom_host)?;
        if let Credential::Stored(stored) = &target.credential {
            check_hosts(&stored.mapped, &stored.integration, &origin, &target.provider)?;
        }
        Ok(Target { origin, ..target.clone() })
    }

    /// Whether models are forbidden or limited, for this caller at this target.
    pub(crate) fn is_model_deciding(&self, target: &Target, caller: &Principal) -> bool {
        let is_restricted = match &target.credential {
            Credential::Stored(stored) => {
                let integration = &stored.integration;
                let models = || self.snapshot.models_of(&integration.id);
                !integration.allow_all_models
                    || models().iter().flat_map(|list| list.iter()).any(|model| !model.enabled)
            }
            Credential::Given(_) => false,
        };
        is_restricted || self.has_model_policies(caller)
    }

    /// Whether the model could decide something, whatever the target will be.
    pub(crate) fn may_need_model(&self, plan: &Plan, headers: &GatewayHeaders<'_>, caller: &Principal) -> bool {
        may_be_stored(plan, headers) || self.has_model_policies(caller)
    }

    pub(crate) fn has_model_policies(&self, caller: &Principal) -> bool {
        let policies = || self.snapshot.policies(&caller.workspace.id);
        self.has_policies && policies().is_some_and(|policies| policies.asks_about_models)
    }
}

/// Whether a leaf could lead to an integration, whose models may be restricted. Without a provider in the headers the
/// model may name one.
pub(crate) fn may_be_stored(plan: &Plan, headers: &GatewayHeaders<'_>) -> bool {
    let is_named = headers.names_plain_provider() && headers.virtual_key.is_none();
    plan.leaves().any(|leaf| match leaf.source {
        ProviderSource::Named(_) => false,
        ProviderSource::Stored(_) => true,
        ProviderSource::Request => !is_named,
    })
}
