//! Records that could not be stored: they are deleted with the logs of their person or trace. Where nobody could read whose one is,
//! it goes if it has the name, or the organisation, anywhere in its bytes.

use super::ErasureSubject;
use crate::http::ApiError;
use tokio_postgres::GenericClient;
use uuid::Uuid;

pub async fn erase(db: &impl GenericClient, organisation: Uuid, subject: &ErasureSubject) -> Result<(), ApiError> {
    const OF_USER: &str = "DELETE FROM rejected_records WHERE organisation_id = $1
        AND (user_name = $2 OR user_name IS NULL AND position(convert_to($2, 'UTF8') IN record) > 0)";
    const OF_TRACE: &str = "DELETE FROM rejected_records WHERE organisation_id = $1 AND trace_id = $2";
    const UNREAD: &str =
        "DELETE FROM rejected_records WHERE organisation_id IS NULL AND position(uuid_send($1) IN record) > 0";
    let sql = match subject {
        ErasureSubject::User(_) => OF_USER,
        ErasureSubject::Trace(_) => OF_TRACE,
    };
    db.execute(sql, &[&organisation, &subject.name()]).await?;
    db.execute(UNREAD, &[&organisation]).await?;
    Ok(())
}
