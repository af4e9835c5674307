//! Which keys a caller may see and change: those of the kinds that its scopes name.

use super::ApiKeyRow;
use crate::http::ApiError;
use crate::identity::{Call, Caller, tenancy};
use shared::db::table::Filter;
use shared::model::KeyKind;
use shared::routes::{Method, Scopes};

const KINDS: [KeyKind; 3] = [KeyKind::OrganisationService, KeyKind::WorkspaceService, KeyKind::WorkspaceUser];

/// As stored; the table allows no other.
pub fn kind_of(text: &str) -> KeyKind {
    KINDS.into_iter().find(|kind| kind.as_str() == text).unwrap_or(KeyKind::WorkspaceUser)
}

/// The scopes of which one is enough to do `verb` to a key of this kind.
fn scopes(kind: KeyKind, verb: &str) -> Scopes {
    let index = match verb {
        "list" => 0,
        "read" => 1,
        "update" => 2,
        "delete" => 3,
        _ => 4,
    };
    let families: [&'static [&'static str]; 5] = match kind {
        KeyKind::OrganisationService => [
            &["organisation_service_api_keys.list"],
            &["organisation_service_api_keys.read"],
            &["organisation_service_api_keys.update"],
            &["organisation_service_api_keys.delete"],
            &["organisation_service_api_keys.rotate", "organisation_service_api_keys.update"],
        ],
        KeyKind::WorkspaceService => [
            &["workspace_service_api_keys.list"],
            &["workspace_service_api_keys.read"],
            &["workspace_service_api_keys.update"],
            &["workspace_service_api_keys.delete"],
            &["workspace_service_api_keys.rotate", "workspace_service_api_keys.update"],
        ],
        // A token is stored nowhere, so none is ever looked up; it would count as a person's.
        KeyKind::WorkspaceUser | KeyKind::Jwt => [
            &["workspace_user_api_keys.list"],
            &["workspace_user_api_keys.read"],
            &["workspace_user_api_keys.update"],
            &["workspace_user_api_keys.delete"],
            &["workspace_user_api_keys.rotate", "workspace_user_api_keys.update"],
        ],
    };
    Scopes::Any(families[index])
}

/// The route table asks for the scope of any kind; here the kind is known.
pub fn require(caller: &Caller, key: &ApiKeyRow, verb: &str) -> Result<(), ApiError> {
    let needs = scopes(key.kind, verb);
    let is_allowed = needs.are_met_by(&caller.scopes) || is_own(caller, key) && holds_for_own(caller, verb);
    if is_allowed { Ok(()) } else { Err(ApiError::MissingScope { needs }) }
}

/// Whether the caller may do it to this key by the scopes of keys of its kind, and not only because it is their own.
pub fn may_manage(caller: &Caller, key: &ApiKeyRow, verb: &str) -> bool {
    scopes(key.kind, verb).are_met_by(&caller.scopes)
}

/// A person's own, who is signed in: a key manages no other keys.
fn is_own(caller: &Caller, key: &ApiKeyRow) -> bool {
    caller.session.is_some() && key.user_id.is_some() && key.user_id == caller.user_id()
}

fn holds_for_own(caller: &Caller, verb: &str) -> bool {
    caller.session.is_some() && caller.holds(&format!("own_api_keys.{verb}"))
}

/// For update, delete and rotate, which ask different scopes.
pub fn may_change(key: &ApiKeyRow, call: &Call) -> Result<(), ApiError> {
    let verb = match call.origin.operation.method {
        Method::Put => "update",
        Method::Delete => "delete",
        _ => "rotate",
    };
    require(&call.caller, key, verb)?;
    if key.kind == KeyKind::OrganisationService {
        call.caller.require_recent_sign_in()?;
    }
    if verb == "delete" && call.caller.key.id.uuid() == key.id {
        return Err(ApiError::invalid("A key cannot delete itself"));
    }
    Ok(())
}

/// What a key can be, as lists show it.
pub const STATUSES: [&str; 5] = ["active", "exhausted", "expired", "archived", "suspended"];

/// All but keys of sessions, which come and go with these and are managed by nobody.
pub fn listed() -> Filter {
    Filter::default().holds("session_id IS NULL")
}

/// `type`, `status` and `ids`, within the kinds that the caller may list.
pub fn filter(call: &Call) -> Result<Filter, ApiError> {
    let query = call.query();
    let kinds = KINDS.into_iter().filter(|kind| scopes(*kind, "list").are_met_by(&call.caller.scopes));
    let mut kinds: Vec<String> = kinds.map(|kind| kind.as_str().to_owned()).collect();
    let asked = query.choices("type", &KINDS.map(KeyKind::as_str))?;
    if !asked.is_empty() {
        kinds.retain(|kind| asked.contains(kind));
    }
    let mut filter = Filter::default().one_of("kind", kinds);
    let is_asked = asked.is_empty() || asked.iter().any(|kind| kind == KeyKind::WorkspaceUser.as_str());
    if let Some(user) = call.caller.user_id().filter(|_| is_asked && holds_for_own(&call.caller, "list")) {
        filter = Filter::any([filter, Filter::default().equals("user_id", user)]);
    }
    filter = filter.join(listed());
    const STATUS: &str =
        "(CASE WHEN status <> 'archived' AND suspended_at IS NOT NULL THEN 'suspended' ELSE status END)";
    let statuses = query.choices("status", &STATUSES)?;
    if !statuses.is_empty() {
        filter = filter.one_of(STATUS, statuses);
    }
    let ids = query.list("ids");
    if !ids.is_empty() {
        let ids: Option<Vec<_>> = ids.iter().map(|id| tenancy::id(id)).collect();
        filter = filter.one_of("id", ids.ok_or_else(|| ApiError::field("ids", "must be UUIDs"))?);
    }
    Ok(filter)
}
