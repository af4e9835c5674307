//! What a workspace has, looked up by name: the plan a request follows, the provider behind `@slug`, its credential and
//! models; and the target of one attempt that is made of these (`resolve`). Stored prompts (`prompts`), and credentials that must
//! be computed (`signing`).

pub mod account;
pub mod choose_plan;
pub mod inference_profiles;
pub mod models;
mod other_spellings;
pub mod placement;
mod plain_names;
pub mod prompts;
pub mod providers;
pub mod resolve;
pub mod secrets;
pub mod signing;
pub mod target;
pub mod workspace_provider;
