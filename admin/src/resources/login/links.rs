//! One-time links: how somebody gets in whom no identity provider vouches for, the first owner above all. No password is
//! stored anywhere; whoever reads the person's mail, or runs the operator's command, is believed once, for ten minutes.

use crate::http::ApiError;
use shared::identity::api_key::{self, KeyHash};
use tokio_postgres::{GenericClient, Transaction};
use uuid::Uuid;

pub const MINUTES: i32 = 10;
/// Links that one person is mailed within a quarter of an hour.
const MAX_MAILED: i64 = 3;

/// Somebody who may be sent a link.
#[derive(Debug)]
pub struct Addressee {
    pub organisation_id: Uuid,
    pub organisation: String,
    pub user_id: Uuid,
    pub email: String,
}

/// The active people with this address, in one organisation or in all.
pub async fn addressees(
    db: &impl GenericClient,
    email: &str,
    organisation: Option<Uuid>,
) -> Result<Vec<Addressee>, ApiError> {
    const FIND: &str = "SELECT u.id, u.email, o.id AS organisation_id, o.name AS organisation
        FROM users u JOIN organisations o ON o.id = u.organisation_id
        WHERE lower(u.email) = lower($1) AND u.status = 'active' AND ($2::uuid IS NULL OR o.id = $2)
        ORDER BY o.created_at, o.id LIMIT 20";
    let rows = db.query(FIND, &[&email, &organisation]).await?;
    let each = rows.iter().map(|row| {
        Ok(Addressee {
            organisation_id: row.try_get("organisation_id")?,
            organisation: row.try_get("organisation")?,
            user_id: row.try_get("id")?,
            email: row.try_get("email")?,
        })
    });
    each.collect()
}

/// Whether this person may be mailed one more link now, where their organisation lets people in that way. Whoever asks at
/// the same time waits for the end of the transaction, so that no more are made than are counted.
pub async fn may_mail(tx: &Transaction<'_>, to: &Addressee) -> Result<bool, ApiError> {
    const ALONE: &str = "SELECT FROM users WHERE id = $2 AND organisation_id = $1 FOR UPDATE";
    const COUNT: &str = "SELECT coalesce(o.auth_settings -> 'disable_login_links' = 'true', false) AS is_off,
            (SELECT count(*) FROM login_links l
             WHERE l.user_id = $2 AND l.organisation_id = $1 AND l.created_at > now() - interval '15 minutes') AS mailed
        FROM organisations o WHERE o.id = $1";
    tx.query_opt(ALONE, &[&to.organisation_id, &to.user_id]).await?;
    let row = tx.query_one(COUNT, &[&to.organisation_id, &to.user_id]).await?;
    Ok(!row.try_get::<_, bool>("is_off")? && row.try_get::<_, i64>("mailed")? < MAX_MAILED)
}

/// Makes a link and answers with its token, which is stored nowhere.
pub async fn create(db: &impl GenericClient, to: &Addressee) -> Result<String, ApiError> {
    const INSERT: &str = "INSERT INTO login_links (hash, organisation_id, user_id, expires_at)
        VALUES ($1, $2, $3, now() + make_interval(mins => $4))";
    let token = api_key::generate("");
    db.execute(INSERT, &[&hash(&token), &to.organisation_id, &to.user_id, &MINUTES]).await?;
    Ok(token)
}

/// Where the link leads. The token stands behind the `#`, which browsers send to nobody.
pub fn url(public_url: &str, token: &str) -> String {
    format!("{public_url}/auth/link#token={token}")
}

/// What became of a token that was sent.
#[derive(Debug)]
pub enum Redeemed {
    By(Addressee),
    /// It was a link once: it is too old, or its person is gone.
    TooLate {
        organisation_id: Uuid,
        user_id: Uuid,
    },
    Unknown,
}

/// Takes the link out, so that it is there for nobody else. The person must still be there.
pub async fn redeem(tx: &Transaction<'_>, token: &str) -> Result<Redeemed, ApiError> {
    const TAKE: &str = "WITH taken AS (
            DELETE FROM login_links WHERE hash = $1 RETURNING organisation_id, user_id, expires_at > now() AS is_live)
        SELECT t.user_id, t.organisation_id, u.email, o.name AS organisation,
            t.is_live AND u.status = 'active' AS is_in_time
        FROM taken t
        JOIN users u ON u.id = t.user_id AND u.organisation_id = t.organisation_id
        JOIN organisations o ON o.id = t.organisation_id";
    let Some(row) = tx.query_opt(TAKE, &[&hash(token)]).await? else { return Ok(Redeemed::Unknown) };
    let (organisation_id, user_id) = (row.try_get("organisation_id")?, row.try_get("user_id")?);
    if !row.try_get::<_, bool>("is_in_time")? {
        return Ok(Redeemed::TooLate { organisation_id, user_id });
    }
    let (organisation, email) = (row.try_get("organisation")?, row.try_get("email")?);
    Ok(Redeemed::By(Addressee { organisation_id, organisation, user_id, email }))
}

fn hash(token: &str) -> Vec<u8> {
    KeyHash::from_key(token.as_bytes()).0.to_vec()
}
