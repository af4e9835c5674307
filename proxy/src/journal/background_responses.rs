//! A response that a provider makes in the background reports what it used when somebody reads it, and again each time.
//! The first report counts. Which ones have counted is remembered for the latest ones, in this process; where the memory is full,
//! the tenant that fills it most forgets its oldest.

use crate::runtime::tenant_share::{Tenant, heaviest_of};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

/// Of all tenants; some 30 bytes each.
const MAX_RESPONSES: usize = 65_536;

#[derive(Debug, Default)]
pub struct BackgroundResponses {
    /// Callers choose what is hashed, and cannot know how.
    hashing: RandomState,
    counted: Mutex<CountedResponses>,
}

#[derive(Debug, Default)]
struct CountedResponses {
    hashes: HashSet<u64>,
    /// The oldest of each tenant first.
    order: HashMap<Tenant, VecDeque<u64>>,
}

impl BackgroundResponses {
    /// Whether what this one reports has not counted before. From now on it has.
    pub fn is_first_report(&self, tenant: Tenant, provider: &str, path: &str) -> bool {
        let hash = self.hashing.hash_one((tenant, provider, path));
        let mut counted = self.counted.lock();
        if !counted.hashes.insert(hash) {
            return false;
        }
        counted.order.entry(tenant).or_default().push_back(hash);
        if counted.hashes.len() > MAX_RESPONSES {
            counted.forget_oldest();
        }
        true
    }
}

impl CountedResponses {
    /// Half of what the heaviest tenant has, so that tenants are rarely compared.
    fn forget_oldest(&mut self) {
        let held = self.order.iter().map(|(tenant, hashes)| (*tenant, hashes.len()));
        let Some(order) = heaviest_of(held).and_then(|tenant| self.order.get_mut(&tenant)) else { return };
        for hash in order.drain(..order.len().div_ceil(2)) {
            self.hashes.remove(&hash);
        }
        self.order.retain(|_, hashes| !hashes.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_response_of_each_workspace_counts_once() {
        let (responses, ours, theirs) = (BackgroundResponses::default(), Tenant::test(1, 1), Tenant::test(1, 2));
        for (tenant, provider, path, is_first) in [
            (ours, "openai", "/v1/responses/a", true),
            (ours, "openai", "/v1/responses/a", false),
            (ours, "openai", "/v1/responses/b", true),
            (theirs, "openai", "/v1/responses/a", true),
            (ours, "azure-openai", "/v1/responses/a", true),
            (ours, "openai", "/v1/responses/a", false),
        ] {
            assert_eq!(responses.is_first_report(tenant, provider, path), is_first, "{provider} {path}");
        }
    }

    #[test]
    fn a_tenant_that_fills_the_memory_forgets_its_own() {
        let (responses, quiet, loud) = (BackgroundResponses::default(), Tenant::test(1, 1), Tenant::test(2, 2));
        responses.is_first_report(quiet, "openai", "/v1/responses/a");
        for number in 0..2 * MAX_RESPONSES {
            responses.is_first_report(loud, "openai", &number.to_string());
        }
        assert!(!responses.is_first_report(quiet, "openai", "/v1/responses/a"));
        assert!(responses.is_first_report(loud, "openai", "0"), "its oldest is forgotten");
        let counted = responses.counted.lock();
        let remembered: usize = counted.order.values().map(VecDeque::len).sum();
        assert_eq!(remembered, counted.hashes.len());
        assert!(counted.hashes.len() <= MAX_RESPONSES);
    }
}
