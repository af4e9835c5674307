//! Whether a request says only what its operation knows. Silence about a mistyped name is the worst answer (a budget
//! that was never set, a filter that let everything through), so our own clients get 400 with everything that is wrong
//! at once. Clients of other products repeat path parameters in bodies; what they send beyond ours is ignored, and
//! listed in `x-gateway-warnings`.

use crate::audit::mask;
use crate::http::{ApiError, FieldFault, json, schema_check};
use crate::identity::call::RequestOrigin;
use crate::resources::accepted::{self, Accepted};
use shared::routes::Method;

/// Parameters that are told to be unknown: as many as somebody reads.
const MAX_UNKNOWN_NAMES: usize = 50;

/// Runs before the handler, and after everything that decides whether there may be one.
pub fn conform(origin: &RequestOrigin) -> Result<(), ApiError> {
    if origin.operation.is_of_protocol() {
        return Ok(());
    }
    let Some(accepted) = accepted::by(origin.operation) else { return Ok(()) };
    let mut faults = Vec::new();
    let mut unknown: Vec<FieldFault> = in_query(origin, accepted).collect();
    // What is no JSON at all is the handler's to refuse.
    if origin.operation.method != Method::Get
        && !origin.body.is_empty()
        && let Ok(body) = json::value(&origin.body)
        && (body.is_object() || body.is_array())
    {
        let checked = schema_check::check(&accepted.body, &body, mask::hides);
        // What is wrong with the body as a whole is the handler's to say, too.
        faults.extend(checked.faults.into_iter().filter(|fault| !fault.field.is_empty()));
        unknown.extend(checked.unknown);
    }
    if origin.is_lenient {
        unknown.iter().for_each(|one| origin.warn(one.sentence()));
    } else {
        faults.extend(unknown);
    }
    if faults.is_empty() { Ok(()) } else { Err(ApiError::Faults(faults)) }
}

fn in_query<'a>(origin: &'a RequestOrigin, accepted: &'a Accepted) -> impl Iterator<Item = FieldFault> + 'a {
    let unknown = origin.query.names().filter(|name| !accepted.reads_parameter(name));
    // Each is compared with every name that is known, and strangers send queries too.
    unknown.take(MAX_UNKNOWN_NAMES).map(|name| {
        let shown: String = name.chars().take(100).collect();
        FieldFault::unknown(shown, name, "a parameter of this operation", accepted.parameters())
    })
}
