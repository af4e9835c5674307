//! Names to addresses, with our own cache: the system's resolver has none, and several requests for one name must ask
//! once. Addresses are judged by the caller, on every use, so a cached answer is no way around the guard.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;

use super::error::{Class, DialError};

/// Asks for a name's addresses. A function, so that tests answer in place of the network.
pub type Lookup = Box<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

type Addresses = Result<Arc<[IpAddr]>, DialError>;

/// A name that failed is asked again soon, but not by every request of a storm.
const FAILURE_TTL: Duration = Duration::from_secs(1);
/// Callers choose custom hosts, so the cache must not grow with their imagination.
const MAX_NAMES: usize = 4096;

pub struct NameResolver {
    lookup: Lookup,
    ttl: Duration,
    names: Mutex<HashMap<String, CachedName>>,
}

enum CachedName {
    Known { answer: Addresses, until: Instant },
    Asking(Shared<BoxFuture<'static, Addresses>>),
}

impl NameResolver {
    pub fn new(ttl: Duration) -> Self {
        Self::with_lookup(ttl, Box::new(|name| ask_the_system(name).boxed()))
    }

    pub fn with_lookup(ttl: Duration, lookup: Lookup) -> Self {
        Self { lookup, ttl, names: Mutex::default() }
    }

    /// All addresses of `name`, best first; never empty.
    pub async fn resolve(&self, name: &str, now: Instant) -> Addresses {
        let question = {
            let mut names = self.names.lock();
            match names.get(name) {
                Some(CachedName::Known { answer, until }) if now < *until => return answer.clone(),
                Some(CachedName::Asking(question)) => question.clone(),
                _ => {
                    make_room(&mut names, now);
                    let question = ask((self.lookup)(name.to_owned())).boxed().shared();
                    names.insert(name.to_owned(), CachedName::Asking(question.clone()));
                    question
                }
            }
        };
        let answer = question.await;
        let mut names = self.names.lock();
        // Whoever of the waiting is first keeps the answer; the others find it there.
        if let Some(entry @ CachedName::Asking(_)) = names.get_mut(name) {
            let ttl = if answer.is_ok() { self.ttl } else { FAILURE_TTL };
            *entry = CachedName::Known { answer: answer.clone(), until: now + ttl };
        }
        answer
    }

    /// The addresses of `name` that were found last, best first.
    pub fn known(&self, name: &str) -> Arc<[IpAddr]> {
        match self.names.lock().get(name) {
            Some(CachedName::Known { answer: Ok(addresses), .. }) => addresses.clone(),
            _ => Arc::default(),
        }
    }

    /// The next connections try `failed` last.
    pub fn demote(&self, name: &str, failed: IpAddr) {
        if let Some(CachedName::Known { answer: Ok(addresses), .. }) = self.names.lock().get_mut(name) {
            let (last, first): (Vec<_>, Vec<_>) = addresses.iter().copied().partition(|address| *address == failed);
            *addresses = first.into_iter().chain(last).collect();
        }
    }
}

async fn ask(lookup: BoxFuture<'static, io::Result<Vec<IpAddr>>>) -> Addresses {
    match lookup.await {
        Ok(addresses) if !addresses.is_empty() => Ok(addresses.into()),
        Ok(_) => Err(DialError::new(Class::Dns, "the provider's host name has no address")),
        Err(_) => Err(DialError::new(Class::Dns, "the provider's host name did not resolve")),
    }
}

async fn ask_the_system(name: String) -> io::Result<Vec<IpAddr>> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in tokio::net::lookup_host((name, 0)).await? {
        if !addresses.contains(&address.ip()) {
            addresses.push(address.ip());
        }
    }
    Ok(addresses)
}

fn make_room(names: &mut HashMap<String, CachedName>, now: Instant) {
    if names.len() < MAX_NAMES {
        return;
    }
    names.retain(|_, entry| matches!(entry, CachedName::Known { until, .. } if now < *until));
    if names.len() >= MAX_NAMES {
        names.clear();
    }
}

#[cfg(test)]
mod tests;
