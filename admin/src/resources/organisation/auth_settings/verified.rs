//! Which of the domains in the settings are proved. What a client says of that is not believed: it is looked up.

use crate::http::ApiError;
use serde_json::Value;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// Marks `allowed_domains` of settings as they are shown.
pub async fn mark(db: &impl GenericClient, organisation: Uuid, shown: &mut [&mut Value]) -> Result<(), ApiError> {
    const PROVED: &str = "SELECT domain FROM verified_domains WHERE organisation_id = $1";
    let rows = db.query(PROVED, &[&organisation]).await?;
    let proved = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
    for settings in shown {
        for domain in settings["allowed_domains"].as_array_mut().into_iter().flatten() {
            let is_proved = proved.iter().any(|one| domain["domain"] == one.as_str());
            domain["verified"] = is_proved.into();
        }
    }
    Ok(())
}
