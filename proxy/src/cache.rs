//! Answers that are kept, so that an equal request need not ask a provider again.
//!
//! - `key`: what makes two requests equal: what the provider would be sent, and whose request it is
//! - `known_digests`: what was worked out of requests that come again and again
//! - `eligible`: whether a request may be answered from here, and for how long its answer is kept
//! - `entry`: an answer and what is known of it, in memory and as bytes
//! - `memory`: entries in this process, weighed and fair between organisations and workspaces
//! - `remote`: entries in Redis, sealed, for all replicas
//! - `purges`: whether an entry counts no more
//! - `store`: the one type that the engine asks: memory, and what is behind it
//! - `flight`: equal requests that wait for one call
//! - `keeper`: gathers an answer while it is delivered
//! - `replay`: a kept answer as the client of this request wants it: whole, or as a stream
//! - `semantic`: requests that ask the same in other words

pub mod eligible;
pub mod entry;
pub mod flight;
pub mod keeper;
pub mod key;
pub mod known_digests;
pub mod memory;
pub mod purges;
pub mod remote;
pub mod replay;
pub mod semantic;
pub mod store;

pub use eligible::{CacheFacts, CacheHeaders, Caching};
pub use entry::{CacheKey, Entry, Tags};
pub use flight::{Boarding, Flight};
pub use keeper::{AnswerForm, CachedBody, Keeper, StoreTerms};
pub use purges::Purges;
pub use remote::{Remote, RemoteMeters, RemoteStore};
pub use semantic::{Learnt, Semantic};
pub use store::{Cache, Found};
