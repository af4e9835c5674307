//! Anthropic's betas, which clients ask for in `anthropic-beta`: where each target is told of them is data of its row. What a
//! target does not know is left out and named, so that a new client's turn is a poorer one and no refusal.

use crate::catalog::target::Target;
use crate::request::text_bounds::cut;
use http::{HeaderName, HeaderValue};
use shared::providers::Betas;

pub const HEADER: &str = "anthropic-beta";

/// No client asks for more.
const MAX_BETAS: usize = 64;
/// Of those that are named as left out, and characters of each.
const MAX_NAMED: usize = 16;
const MAX_NAME: usize = 64;

/// Headers of the account and the request that go to a target: an account says by itself what its provider knows, a caller
/// does not.
pub(super) fn is_header_for(target: &Target, name: &HeaderName, is_of_account: bool) -> bool {
    name != HEADER
        || match target.provider.row.betas {
            Betas::Header => true,
            Betas::Unknown => is_of_account,
            Betas::Body(_) => false,
        }
}

/// The betas that values of the header name, each once.
pub(super) fn names<'h>(values: impl Iterator<Item = &'h HeaderValue>) -> Vec<&'h str> {
    let mut names: Vec<&str> = Vec::new();
    for name in values.flat_map(|value| value.to_str().unwrap_or_default().split(',')).map(str::trim) {
        if !name.is_empty() && !names.contains(&name) && names.len() < MAX_BETAS {
            names.push(name);
        }
    }
    names
}

/// Those of the body, as the target calls them, and those that it does not know.
pub(super) fn in_body<'b>(target: &'b Target, asked: &[&'b str]) -> (Vec<&'b str>, Vec<&'b str>) {
    let Betas::Body(known) = &target.provider.row.betas else { return (Vec::new(), asked.to_vec()) };
    let (mut own, mut unknown) = (Vec::new(), Vec::new());
    for name in asked {
        match known.get(*name) {
            Some(name) if own.contains(&name.as_str()) => {}
            Some(name) => own.push(name.as_str()),
            None => unknown.push(*name),
        }
    }
    (own, unknown)
}

/// How those that a target is not told of are named in the warnings.
pub(crate) fn left_out(names: &[&str]) -> Option<String> {
    let listed: Vec<&str> = names.iter().take(MAX_NAMED).map(|name| cut(name, MAX_NAME)).collect();
    (!listed.is_empty()).then(|| format!("{HEADER} ({})", listed.join(" ")))
}
