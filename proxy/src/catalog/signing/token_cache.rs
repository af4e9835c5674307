//! Tokens, kept until they end. A request that finds a good token never waits: at four fifths of its life it is renewed
//! in the background, and a login service that is away costs nobody anything until the token has ended. A request that
//! finds none waits for the one fetch that is under way, for a limited time, and never twice: after a failure everybody
//! is told the same error at once, until a short pause has passed. A token that its provider refuses is retired before its
//! end, once in a while: it may have been revoked.
//!
//! Kept in this process alone, a bounded number of them; an identity is a hash (see `token_request`).

mod state;

use super::error::SigningError;
use super::token_request::{GrantedToken, TokenRequest};
use futures::FutureExt as _;
use http::HeaderValue;
use parking_lot::Mutex;
use shared::secrets::cloud::{CloudLogin, LoginError};
use shared::telemetry::{Brief, LogLimit};
use state::{FetchOutcome, Fetching, TokenLookup, TokenState};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// All that are kept.
const MAX_TOKENS: usize = 10_000;
/// What nobody asked for so long is no longer renewed.
const UNUSED: Duration = Duration::from_secs(3600);
const TICK: Duration = Duration::from_secs(5);

pub struct TokenCache {
    login: CloudLogin,
    /// For a whole fetch, and so for whoever waits for it.
    limit: Duration,
    most: usize,
    entries: Mutex<HashMap<[u8; 32], Arc<TokenEntry>>>,
}

struct TokenEntry {
    request: TokenRequest,
    state: Mutex<TokenState>,
}

impl TokenCache {
    pub fn new(login: CloudLogin, limit: Duration) -> Self {
        Self { login, limit, most: MAX_TOKENS, entries: Mutex::default() }
    }

    /// Waits only when there is no token, and then for one fetch at most.
    pub async fn token(self: &Arc<Self>, request: &TokenRequest) -> Result<Arc<GrantedToken>, SigningError> {
        let entry = self.entry(request);
        let fetching = {
            let (mut state, now) = (entry.state.lock(), Instant::now());
            state.used_at = now;
            match state.look(now) {
                TokenLookup::Good(token) => return Ok(token),
                TokenLookup::Aging(token) => {
                    drop(self.begin(&entry, &mut state));
                    return Ok(token);
                }
                TokenLookup::Failed(error) => return Err(error),
                TokenLookup::Fetching(fetching) => fetching,
                TokenLookup::Absent => self.begin(&entry, &mut state),
            }
        };
        fetching.await
    }

    /// A provider refused the token that was sent in this header. Whether another may be had.
    pub fn retire(&self, request: &TokenRequest, sent: &HeaderValue) -> bool {
        let is_sent = |token: &GrantedToken| matches!(token, GrantedToken::Bearer(value) if value == sent);
        self.entry(request).state.lock().retire(is_sent, Instant::now())
    }

    /// Renews what is in use ahead of its end, for ever.
    pub async fn run(self: Arc<Self>) {
        loop {
            tokio::time::sleep(TICK).await;
            self.renew(Instant::now());
        }
    }

    fn renew(self: &Arc<Self>, now: Instant) {
        let entries: Vec<Arc<TokenEntry>> = {
            let mut entries = self.entries.lock();
            entries.retain(|_, entry| now.saturating_duration_since(entry.state.lock().used_at) < UNUSED);
            entries.values().cloned().collect()
        };
        for entry in entries {
            let mut state = entry.state.lock();
            if matches!(state.look(now), TokenLookup::Aging(_)) {
                drop(self.begin(&entry, &mut state));
            }
        }
    }

    fn entry(&self, request: &TokenRequest) -> Arc<TokenEntry> {
        let identity = request.identity();
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get(&identity) {
            return entry.clone();
        }
        if entries.len() >= self.most {
            make_room(&mut entries);
        }
        let state = Mutex::new(TokenState::new(Instant::now()));
        let entry = Arc::new(TokenEntry { request: request.clone(), state });
        entries.insert(identity, entry.clone());
        entry
    }

    /// In a task of its own: the request that began a fetch may go away, others wait for it.
    fn begin(self: &Arc<Self>, entry: &Arc<TokenEntry>, state: &mut TokenState) -> Fetching {
        let (sender, receiver) = tokio::sync::oneshot::channel::<FetchOutcome>();
        let cut = || Err(SigningError::from(LoginError::Away("the login was cut short".into())));
        let fetching = receiver.map(move |outcome| outcome.unwrap_or_else(|_| cut())).boxed().shared();
        state.fetching = Some(fetching.clone());
        let (cache, entry) = (Arc::clone(self), Arc::clone(entry));
        tokio::spawn(async move {
            let fetch = tokio::time::timeout(cache.limit, entry.request.fetch(&cache.login));
            let fetched = fetch.await.unwrap_or_else(|_| Err(SigningError::Slow(cache.limit.as_millis())));
            if let Err(error) = &fetched {
                static NO_TOKEN: LogLimit = LogLimit::new();
                if let Some(skipped) = NO_TOKEN.pass() {
                    let (login, error) = (Brief(format!("{:?}", entry.request)), Brief(error));
                    tracing::warn!(%login, %error, skipped, "a provider's token could not be had");
                }
            }
            let outcome = entry.state.lock().settle(fetched, Instant::now());
            let _ = sender.send(outcome);
        });
        fetching
    }
}

/// A sixteenth of them goes: first what has no token, then what was not used for longest.
fn make_room(entries: &mut HashMap<[u8; 32], Arc<TokenEntry>>) {
    let mut order: Vec<(bool, Instant, [u8; 32])> = entries
        .iter()
        .map(|(identity, entry)| {
            let state = entry.state.lock();
            (state.has_token(), state.used_at, *identity)
        })
        .collect();
    order.sort_unstable();
    for (_, _, identity) in order.iter().take(entries.len() / 16 + 1) {
        entries.remove(identity);
    }
}

#[cfg(test)]
mod tests;
