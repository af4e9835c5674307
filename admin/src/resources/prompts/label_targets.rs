//! Where the labels of a prompt point: to one version, or to several by weight (a split), so that a version is tried on a
//! part of the calls. Which of them a call meets is decided by `shared::prompt::split`, here as in the proxy.

use super::version::{self, PromptVersion};
use crate::crud::Action;
use crate::http::ApiError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::db::table::row;
use shared::prompt::split;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// The weight of a version that nobody gave one.
pub const USUAL_WEIGHT: u32 = 100;

#[derive(Debug, Serialize, Deserialize)]
pub struct LabelTarget {
    pub id: Uuid,
    pub name: String,
    /// One, or those of a split; the heaviest first.
    pub versions: Vec<TargetVersion>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetVersion {
    pub version: i32,
    pub version_id: Uuid,
    pub weight: u32,
}

/// A label that points to one version is shown as a split of one.
const TARGETS: &str = "SELECT l.id, l.name,
    (SELECT json_agg(json_build_object('version', v.number, 'version_id', v.id, 'weight', part.weight) ORDER BY part.place)
     FROM unnest(coalesce(a.split_versions, ARRAY[a.version_id]), coalesce(a.split_weights, ARRAY[100]))
          WITH ORDINALITY AS part (version_id, weight, place)
     JOIN prompt_versions v ON v.prompt_id = a.prompt_id AND v.id = part.version_id) AS versions
    FROM prompt_version_labels a JOIN labels l ON l.id = a.label_id WHERE a.prompt_id = $1";

/// A page of the labels of a prompt, by name.
pub async fn page(db: &impl GenericClient, prompt: Uuid, size: i64, offset: i64) -> Result<Vec<LabelTarget>, ApiError> {
    let sql = format!("{TARGETS} ORDER BY l.name, l.id LIMIT $2 OFFSET $3");
    let rows = db.query(&sql, &[&prompt, &size, &offset]).await?;
    rows.iter().map(|row| Ok(row::read(row)?)).collect()
}

pub async fn all(db: &impl GenericClient, prompt: Uuid) -> Result<Vec<LabelTarget>, ApiError> {
    page(db, prompt, i64::MAX, 0).await
}

/// The version that a label stands for: of a split, the one that this user or trace meets, and the heaviest for nobody.
pub async fn served(
    db: &impl GenericClient,
    prompt: Uuid,
    label: &str,
    user_or_trace: Option<&str>,
) -> Result<PromptVersion, ApiError> {
    // A label of the workspace wins over one of the organisation with the same name.
    let sql = format!("{TARGETS} AND l.name = $2 ORDER BY l.workspace_id NULLS LAST LIMIT 1");
    let row = db.query_opt(&sql, &[&prompt, &label]).await?.ok_or(version::NO_SUCH)?;
    let target: LabelTarget = row::read(&row)?;
    let weights: Vec<(i32, u32)> = target.versions.iter().map(|one| (one.version, one.weight)).collect();
    let chosen = match user_or_trace {
        Some(who) => split::choose(&weights, &split::sticky_key(prompt, label, who)),
        None => weights.first().map(|(version, _)| *version),
    };
    version::by_number(db, prompt, chosen.ok_or(version::NO_SUCH)?).await
}

/// Points a label to these versions, or to nothing, in one statement: nobody sees it half moved.
pub async fn point(
    action: &Action<'_>,
    prompt: Uuid,
    label: Uuid,
    mut versions: Vec<TargetVersion>,
) -> Result<(), ApiError> {
    const DETACH: &str =
        "DELETE FROM prompt_version_labels WHERE prompt_id = $1 AND label_id = $2 AND organisation_id = $3";
    const POINT: &str = "INSERT INTO prompt_version_labels
        (organisation_id, prompt_id, label_id, version_id, split_versions, split_weights) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (prompt_id, label_id) DO UPDATE
        SET version_id = $4, split_versions = $5, split_weights = $6, created_at = now()";
    let organisation = action.organisation_id();
    // The heaviest stands for all of them where only one is read.
    versions.sort_by_key(|one| (std::cmp::Reverse(one.weight), one.version));
    let Some(first) = versions.first().map(|one| one.version_id) else {
        action.tx.execute(DETACH, &[&prompt, &label, &organisation]).await?;
        return Ok(());
    };
    let is_split = versions.len() > 1;
    let ids: Option<Vec<Uuid>> = is_split.then(|| versions.iter().map(|one| one.version_id).collect());
    let weight = |one: &TargetVersion| i32::try_from(one.weight).unwrap_or(i32::MAX);
    let weights: Option<Vec<i32>> = is_split.then(|| versions.iter().map(weight).collect());
    action.tx.execute(POINT, &[&organisation, &prompt, &label, &first, &ids, &weights]).await?;
    Ok(())
}

/// Takes all labels from a version. A split goes on with the others.
pub async fn detach(action: &Action<'_>, prompt: Uuid, version: Uuid) -> Result<(), ApiError> {
    for target in all(&action.tx, prompt).await? {
        let left: Vec<_> = target.versions.iter().filter(|one| one.version_id != version).cloned().collect();
        if left.len() < target.versions.len() {
            point(action, prompt, target.id, left).await?;
        }
    }
    Ok(())
}

/// As the audit trail has it: the number of a version by the name of its label, or the versions of a split.
pub fn summary(targets: &[LabelTarget]) -> Value {
    let shown = targets.iter().map(|target| {
        let points_to = match target.versions.as_slice() {
            [one] => json!(one.version),
            several => several.iter().map(|one| json!({ "version": one.version, "weight": one.weight })).collect(),
        };
        (target.name.clone(), points_to)
    });
    json!({ "labels": shown.collect::<Map<String, Value>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trail_shows_versions_by_label_and_splits_with_their_weights() {
        let version = |version, weight| TargetVersion { version, version_id: Uuid::nil(), weight };
        let target = |name: &str, versions| LabelTarget { id: Uuid::nil(), name: name.into(), versions };
        let targets = [target("a", vec![version(3, 100)]), target("b", vec![version(3, 90), version(4, 10)])];
        let expected = json!({ "labels": {
            "a": 3, "b": [{ "version": 3, "weight": 90 }, { "version": 4, "weight": 10 }],
        }});
        assert_eq!(summary(&targets), expected);
    }
}
