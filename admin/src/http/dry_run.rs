//! `?dry_run=true` on a change: all of it is done in its transaction and taken back, so that the answer is the one that
//! the change would have had. `crud::Action` takes it back, the gate marks the answer.

use crate::http::{ApiError, Query};
use shared::routes::{Method, Operation};

pub const DRY_RUN: &str = "dry_run";

/// Refused where it would not hold, also for clients whose unknown parameters are passed over: they must not change what
/// they only meant to try.
pub fn asked(operation: &Operation, query: &Query) -> Result<bool, ApiError> {
    let is_change = operation.method != Method::Get && !operation.is_of_protocol();
    let Some(sent) = query.text(DRY_RUN).filter(|_| is_change) else { return Ok(false) };
    let is_wanted = match sent {
        "true" => true,
        "false" => false,
        _ => return Err(ApiError::field(DRY_RUN, "must be true or false")),
    };
    match operation.may_be_tried() {
        true => Ok(is_wanted),
        false => Err(ApiError::field(DRY_RUN, "this operation cannot be tried")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::routes::operations;

    fn of(method: &str, path: &str) -> &'static Operation {
        operations().find(|one| one.method.as_str() == method && one.path == path).unwrap()
    }

    #[test]
    fn only_changes_that_can_be_taken_back_are_tried() {
        let sent = |text: &str| Query::parse(Some(&format!("dry_run={text}"))).unwrap();
        let config = of("POST", "/configs");
        assert!(asked(config, &sent("true")).unwrap());
        assert!(!asked(config, &sent("false")).unwrap());
        assert!(!asked(config, &Query::default()).unwrap());
        assert!(asked(config, &sent("yes")).is_err());
        for (method, path) in [
            ("POST", "/logs/erase"),
            ("POST", "/integrations/{slug}/test"),
            ("POST", "/mcp-integrations/{id}/sync"),
            ("POST", "/feedback"),
            ("POST", "/auth/logout"),
        ] {
            assert!(asked(of(method, path), &sent("true")).is_err(), "{method} {path}");
            assert!(asked(of(method, path), &sent("false")).is_err(), "{method} {path}");
        }
    }
}
