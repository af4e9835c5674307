//! The models behind profiles that accounts made, as their provider told them: by them the wire is chosen and the price.
//!
//! Kept in this process for an hour, a bounded number of them, and apart for each account at each address of each workspace:
//! what one tenant may see is not told to another, and what a caller's own server says counts for that server alone. Of a
//! profile whose fetch failed the model is not known, and nobody asks again at once.

use crate::catalog::target::{Credential, Target};
use parking_lot::Mutex;
use shared::model::id::IntegrationId;
use shared::providers::is_account_profile;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;
use uuid::Uuid;

const MAX_PROFILES: usize = 4096;
const CACHE_LIFETIME: Duration = Duration::from_secs(3600);
const UNKNOWN: Duration = Duration::from_secs(60);
/// AWS allows as many letters of an ARN.
const MAX_ARN: usize = 2048;

/// Filled by whoever comes first; all others wait for it. Without a model if that cannot be told.
pub type ProfileModel = Arc<OnceCell<Option<Box<str>>>>;

#[derive(Debug, Default)]
pub struct InferenceProfiles(Mutex<HashMap<ProfileKey, ProfileEntry>>);

/// Whose profile, asked for where.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProfileKey {
    workspace: Uuid,
    account: Option<IntegrationId>,
    authority: String,
    pub name: String,
}

#[derive(Debug)]
struct ProfileEntry {
    began: Instant,
    model: ProfileModel,
}

impl ProfileKey {
    /// None where the target's model is no such profile, or its model is known already.
    pub fn new(workspace: Uuid, target: &Target, model: Option<&str>) -> Option<Self> {
        target.provider.row.inference_profiles.as_ref().filter(|_| target.called.is_none())?;
        let name = model.filter(|name| name.len() <= MAX_ARN && is_account_profile(name))?;
        let account = match &target.credential {
            Credential::Stored(stored) => Some(stored.integration.id),
            Credential::Given(_) => None,
        };
        let origin = &target.origin;
        let authority = format!("{}://{}", origin.scheme().text(), origin.authority());
        Some(Self { workspace, account, authority, name: name.to_owned() })
    }
}

impl InferenceProfiles {
    /// The model, if it was told before.
    pub fn known(&self, key: &ProfileKey, now: Instant) -> Option<String> {
        let entries = self.0.lock();
        let entry = entries.get(key).filter(|entry| entry.is_fresh(now))?;
        entry.model.get()?.as_deref().map(str::to_owned)
    }

    /// Where the model is, or will be.
    pub fn model(&self, key: ProfileKey, now: Instant) -> ProfileModel {
        let mut entries = self.0.lock();
        if let Some(entry) = entries.get(&key).filter(|entry| entry.is_fresh(now)) {
            return entry.model.clone();
        }
        if entries.len() >= MAX_PROFILES {
            make_room(&mut entries, now);
        }
        let model = ProfileModel::default();
        entries.insert(key, ProfileEntry { began: now, model: model.clone() });
        model
    }
}

impl ProfileEntry {
    fn is_fresh(&self, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.began);
        match self.model.get() {
            // A fetch is under way, or whoever comes next begins another.
            None => true,
            Some(Some(_)) => age < CACHE_LIFETIME,
            Some(None) => age < UNKNOWN,
        }
    }
}

/// What is over goes, and else the oldest.
fn make_room(entries: &mut HashMap<ProfileKey, ProfileEntry>, now: Instant) {
    entries.retain(|_, entry| entry.is_fresh(now));
    if entries.len() < MAX_PROFILES {
        return;
    }
    let mut ages: Vec<Instant> = entries.values().map(|entry| entry.began).collect();
    ages.sort_unstable();
    if let Some(oldest) = ages.get(MAX_PROFILES / 16) {
        entries.retain(|_, entry| entry.began > *oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ProfileKey {
        ProfileKey { workspace: Uuid::nil(), account: None, authority: "https://x.test".into(), name: name.into() }
    }

    #[test]
    fn a_model_is_known_for_an_hour_and_a_failure_for_a_minute() {
        let (profiles, start) = (InferenceProfiles::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        assert_eq!(profiles.known(&key("a"), start), None);
        profiles.model(key("a"), start).set(Some("anthropic.claude".into())).unwrap();
        profiles.model(key("b"), start).set(None).unwrap();
        assert_eq!(profiles.known(&key("a"), at(3599)).as_deref(), Some("anthropic.claude"));
        assert_eq!(profiles.known(&key("a"), at(3600)), None);
        assert!(profiles.model(key("b"), at(59)).initialized(), "nobody asks again at once");
        assert!(!profiles.model(key("b"), at(60)).initialized());
        let other = ProfileKey { workspace: Uuid::max(), ..key("a") };
        assert_eq!(profiles.known(&other, start), None, "another tenant is told nothing");
    }

    #[test]
    fn all_who_ask_wait_for_the_same_fetch() {
        let (profiles, now) = (InferenceProfiles::default(), Instant::now());
        assert!(Arc::ptr_eq(&profiles.model(key("a"), now), &profiles.model(key("a"), now)));
        assert!(!Arc::ptr_eq(&profiles.model(key("a"), now), &profiles.model(key("b"), now)));
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let (profiles, start) = (InferenceProfiles::default(), Instant::now());
        for number in 0..MAX_PROFILES as u64 * 2 {
            let model = profiles.model(key(&number.to_string()), start + Duration::from_millis(number));
            model.set(Some("m".into())).unwrap();
            assert!(profiles.0.lock().len() <= MAX_PROFILES);
        }
        let last = key(&(MAX_PROFILES * 2 - 1).to_string());
        assert!(profiles.known(&last, start + Duration::from_secs(10)).is_some(), "the newest stay");
    }
}
