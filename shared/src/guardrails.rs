//! Guardrails: checks of what a request asks and of what an answer says. Pure: no socket, no clock of its own, so that the
//! proxy (live) and admin (`POST /guardrails/test`) run the same code.
//!
//! `table` lists every check with its parameters; `validate` refuses by it what nobody could run, all faults at once.
//! `compile` makes a `Check` of an id and its parameters, once; it is run on a `Subject` and says a `Verdict`. Checks that ask
//! somebody else (`remote`: webhooks, vendors, key sets) say what is to be asked and what an answer means: whoever has a dialer
//! calls.
//!
//! Everything here is bounded, because tenants write the patterns and the schemas and callers the texts: see `pattern` and
//! `schema`.

mod check;
mod checks;
mod data;
mod declared_tools;
mod fault;
mod json_in_text;
mod lanes;
mod parameters;
mod pattern;
pub mod remote;
mod request_type;
mod schema;
mod subject;
mod table;
mod text;
mod validate;
mod vendors;
mod verdict;

pub use check::{Check, Replaced, compile, fails_on_error};
pub use checks::placeholders::Placeholders;
pub use data::{Data, JudgedText, put_number, put_text, put_value};
pub use fault::{Fault, FaultKind};
pub use request_type::{REQUEST_TYPES, is_request_type};
pub use subject::{Hook, Shape, Subject};
pub use table::{CheckSpec, Hooks, ParameterKind, ParameterSpec, Runs, TABLE, all, check, ids};
pub use text::{Scope, TextPlaces, TokenPlaces, other_letters, token_places, with_readings};
pub use validate::{MAX_CHECKS, remote_checks, validate, validate_parameters};
pub use verdict::{CheckError, ErrorKind, HeaderChange, Verdict};
