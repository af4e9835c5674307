//! A cache of custom hosts that passed the guard. Parsing a URL by the dialer's strict rules costs more than the rest
//! of the plan together, and callers name the same few hosts in every request. Refused hosts are judged each time.

use crate::net::dial::{BadHost, Dialer, Origin};
use arc_swap::ArcSwap;
use foldhash::quality::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

/// Beyond this many the memory starts anew, so that nobody can fill it.
const MAX_HOSTS: usize = 256;

#[derive(Default)]
pub struct Hosts(ArcSwap<HashMap<Box<str>, Arc<Origin>, RandomState>>);

impl Hosts {
    pub fn origin(&self, dialer: &Dialer, url: &str) -> Result<Arc<Origin>, BadHost> {
        if let Some(known) = self.0.load().get(url) {
            return Ok(known.clone());
        }
        let origin = dialer.custom_host(url)?;
        self.0.rcu(|known| {
            let mut more = if known.len() < MAX_HOSTS { (**known).clone() } else { HashMap::default() };
            more.insert(url.into(), origin.clone());
            more
        });
        Ok(origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Settings {
        #[command(flatten)]
        upstream: shared::settings::Upstream,
    }

    #[test]
    fn a_host_is_read_once_a_refused_one_never_kept_and_the_memory_is_bounded() {
        let dialer = Dialer::new(&Settings::parse_from(["test"]).upstream).unwrap();
        let hosts = Hosts::default();
        let first = hosts.origin(&dialer, "https://one.example.com/v1").unwrap();
        let again = hosts.origin(&dialer, "https://one.example.com/v1").unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert!(hosts.origin(&dialer, "http://127.0.0.1").is_err());
        assert_eq!(hosts.0.load().len(), 1);
        for number in 0..MAX_HOSTS * 2 {
            hosts.origin(&dialer, &format!("https://h{number}.example.com")).unwrap();
        }
        assert!(hosts.0.load().len() <= MAX_HOSTS);
    }
}
