//! Records that could not be stored: they are deleted with the logs of their person or trace. Those that nobody could read name
//! neither, and expire.

use super::ErasureSubject;
use crate::http::ApiError;
use tokio_postgres::GenericClient;
use uuid::Uuid;

pub async fn erase(db: &impl GenericClient, organisation: Uuid, subject: &ErasureSubject) -> Result<(), ApiError> {
    const OF_USER: &str = "DELETE FROM rejected_records WHERE organisation_id = $1 AND user_name = $2";
    const OF_TRACE: &str = "DELETE FROM rejected_records WHERE organisation_id = $1 AND trace_id = $2";
    let sql = match subject {
        ErasureSubject::User(_) => OF_USER,
        ErasureSubject::Trace(_) => OF_TRACE,
    };
    db.execute(sql, &[&organisation, &subject.name()]).await?;
    Ok(())
}
