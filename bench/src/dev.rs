//! The development supervisor behind `make run` and `make test`: it brings up Postgres and, for `run` and `stack`, both
//! services and the mock provider, and takes all of it down again.

pub mod run;
pub mod settings;
pub mod stack;
pub mod test;

mod banner;
mod children;
mod folder;
mod keys;
mod sign_in;

pub use settings::Settings;
