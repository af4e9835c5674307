//! `If-Match` on a change: whether the object, which the transaction holds by now, is still as the caller saw it. If not,
//! the refusal says who changed what.

use super::Action;
use crate::http::etag::{self, IfMatch};
use crate::http::{ApiError, ChangedSince, Time};
use serde_json::Value;
use std::collections::BTreeSet;
use uuid::Uuid;

pub async fn require(action: &Action<'_>, id: Uuid, changed_at: Time) -> Result<(), ApiError> {
    let origin = &action.call.origin;
    let Some(wanted) = IfMatch::sent(&origin.headers)? else { return Ok(()) };
    if wanted.holds(&etag::tag(id, changed_at)) {
        origin.mark_compared();
        return Ok(());
    }
    Err(ApiError::Changed(last_change(action, id, changed_at).await?.into()))
}

/// From the audit trail, which is written with the change: near the time that the object has.
async fn last_change(action: &Action<'_>, id: Uuid, changed_at: Time) -> Result<ChangedSince, ApiError> {
    const LAST: &str =
        "SELECT a.user_type, coalesce(k.name, nullif(concat_ws(' ', u.first_name, u.last_name), ''), u.email)
                AS name, coalesce(a.api_key_id, a.user_id) AS by_id, a.before, a.after
            FROM audit_logs a
            LEFT JOIN users u ON u.id = a.user_id AND u.organisation_id = a.organisation_id
            LEFT JOIN api_keys k ON k.id = a.api_key_id AND k.organisation_id = a.organisation_id
        WHERE a.organisation_id = $1 AND a.resource_type = $2 AND a.resource_id = $3 AND a.response_status_code < 300
          AND a.created_at BETWEEN $4::timestamptz - interval '1 minute' AND $4::timestamptz + interval '1 minute'
        ORDER BY a.created_at DESC, a.id DESC LIMIT 1";
    let kind = action.call.origin.operation.audit.map_or("", |name| name.resource_type);
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&action.organisation_id(), &kind, &id.to_string(), &changed_at.0];
    let Some(row) = action.tx.query_opt(LAST, &values).await? else {
        return Ok(ChangedSince {
            at: changed_at.to_string(),
            by_type: None,
            by_id: None,
            by_name: None,
            fields: Vec::new(),
        });
    };
    let (before, after): (Option<Value>, Option<Value>) = (row.try_get("before")?, row.try_get("after")?);
    Ok(ChangedSince {
        at: changed_at.to_string(),
        by_type: row.try_get("user_type")?,
        by_id: row.try_get("by_id")?,
        by_name: row.try_get("name")?,
        fields: differing(before.as_ref(), after.as_ref()),
    })
}

/// The fields that the change set, without those that every change sets.
fn differing(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    const ALWAYS: [&str; 2] = ["last_updated_at", "version_id"];
    let (Some(Value::Object(before)), Some(Value::Object(after))) = (before, after) else { return Vec::new() };
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    changed.filter(|name| !ALWAYS.contains(&name.as_str())).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_change_set_is_told_by_name() {
        let before = json!({ "name": "a", "tags": [1], "last_updated_at": "t1", "gone": 1 });
        let after = json!({ "name": "b", "tags": [1], "last_updated_at": "t2", "new": 1 });
        assert_eq!(differing(Some(&before), Some(&after)), ["gone", "name", "new"]);
        assert!(differing(None, Some(&after)).is_empty());
    }
}
