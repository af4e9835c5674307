//! Mail domains of an organisation: claimed, proved by a DNS record (or by the operator, see `cli`), listed and given up.
//! Of a proved domain people are provisioned at their first login and by SCIM; nobody else can prove it meanwhile.

mod docs;

use super::login::domain_proofs;
use super::login::domain_proofs::{ProofMethod, RECORD};
use crate::app::App;
use crate::crud::{Action, Answer, Change, Routes};
use crate::http::{ApiError, Time};
use crate::identity::{Call, tenancy};
use crate::outbound::dns_txt;
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::identity::api_key;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

pub fn routes() -> Routes {
    Routes::default()
        .get("/admin/domains", list)
        .post("/admin/domains", claim)
        .post("/admin/domains/{domainId}/verify", verify)
        .delete("/admin/domains/{domainId}", give_up)
        .describe(docs::docs())
}

/// Domains of one organisation, claimed and proved.
const MAX_DOMAINS: i64 = 100;

#[derive(Deserialize)]
struct NewDomain {
    domain: String,
}

/// Claimed and proved ones together.
const ALL: &str = "SELECT id, domain, token, created_at AS since, NULL AS method FROM domain_claims
        WHERE organisation_id = $1
    UNION ALL SELECT id, domain, NULL, verified_at, method FROM verified_domains WHERE organisation_id = $1";

fn shown(row: &Row) -> Result<Value, ApiError> {
    let domain: String = row.try_get("domain")?;
    let since: Time = row.try_get("since")?;
    let token: Option<String> = row.try_get("token")?;
    let record = token.map(|token| json!({ "type": "TXT", "name": domain, "value": format!("{RECORD}{token}") }));
    Ok(json!({
        "object": "domain",
        "id": row.try_get::<_, Uuid>("id")?,
        "domain": domain,
        "status": if record.is_some() { "pending" } else { "verified" },
        "method": row.try_get::<_, Option<String>>("method")?,
        "dns_record": record,
        "since": since,
    }))
}

async fn list(State(app): State<App>, call: Call) -> Answer {
    let db = app.db.get().await?;
    let sql = format!("{ALL} ORDER BY domain LIMIT {}", 2 * MAX_DOMAINS);
    let rows = db.query(&sql, &[&call.caller.organisation_id()]).await?;
    let domains = rows.iter().map(shown).collect::<Result<Vec<_>, _>>()?;
    Ok(Json(json!({ "object": "list", "total": domains.len(), "data": domains })))
}

async fn found(db: &impl GenericClient, organisation: Uuid, id: &str) -> Result<Value, ApiError> {
    let missing = || ApiError::NotFound("domain");
    let id = tenancy::id(id).ok_or_else(missing)?;
    let sql = format!("SELECT * FROM ({ALL}) AS all_of_them WHERE id = $2");
    shown(&db.query_opt(&sql, &[&organisation, &id]).await?.ok_or_else(missing)?)
}

async fn claim(State(app): State<App>, call: Call) -> Answer {
    const COUNT: &str = "SELECT (SELECT count(*) FROM domain_claims WHERE organisation_id = $1)
        + (SELECT count(*) FROM verified_domains WHERE organisation_id = $1)";
    const CLAIM: &str = "INSERT INTO domain_claims (organisation_id, domain, token)
        SELECT $1::uuid, $2::text, $3::text WHERE NOT EXISTS (SELECT FROM verified_domains WHERE organisation_id = $1 AND domain = $2)
        ON CONFLICT (organisation_id, domain) DO NOTHING RETURNING id";
    let body: NewDomain = call.body()?;
    let domain = domain_proofs::normal(&body.domain);
    let domain = domain.ok_or_else(|| ApiError::field("domain", "must be a domain name"))?;
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let organisation = action.organisation_id();
    let count: i64 = action.tx.query_one(COUNT, &[&organisation]).await?.try_get(0)?;
    if count >= MAX_DOMAINS {
        return Err(ApiError::Conflict(format!("An organisation has at most {MAX_DOMAINS} domains")));
    }
    let token = api_key::generate("");
    let Some(row) = action.tx.query_opt(CLAIM, &[&organisation, &domain, &token]).await? else {
        return Err(ApiError::Conflict("This organisation has claimed this domain already".into()));
    };
    let id: Uuid = row.try_get("id")?;
    let made = found(&action.tx, organisation, &id.to_string()).await?;
    action.commit(Change { resource_id: id.to_string(), before: None, after: Some(made.clone()) }).await?;
    Ok(Json(made))
}

/// The DNS is asked without a connection to the database in hand.
async fn verify(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    let organisation = call.caller.organisation_id();
    let before = found(&*app.db.get().await?, organisation, &id).await?;
    let (domain, record) = (before["domain"].as_str().unwrap_or_default(), before["dns_record"]["value"].as_str());
    let Some(token) = record.and_then(|record| record.strip_prefix(RECORD)) else { return Ok(Json(before)) };
    let unread = |why: String| ApiError::invalid(format!("The DNS records of {domain} cannot be read: {why}"));
    let records = dns_txt::lookup(app.outbound.dns_server(), domain).await.map_err(unread)?;
    if !domain_proofs::is_proved(&records, token) {
        let message = format!("{domain} has no TXT record {RECORD}{token}; a new one may take a while to be seen");
        return Err(ApiError::invalid(message));
    }
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    // Given up, and perhaps claimed with another token, while the DNS was asked.
    let current = found(&action.tx, organisation, &id).await?;
    if current != before {
        return Err(ApiError::Conflict("The domain has changed meanwhile; try again".into()));
    }
    let id = domain_proofs::prove(&action.tx, organisation, domain, ProofMethod::Dns).await?;
    let after = found(&action.tx, organisation, &id.to_string()).await?;
    let change = Change { resource_id: id.to_string(), before: Some(before.clone()), after: Some(after.clone()) };
    action.commit(change).await?;
    Ok(Json(after))
}

/// Members of the domain stay; nobody new comes by it.
async fn give_up(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    const CLAIM: &str = "DELETE FROM domain_claims WHERE organisation_id = $1 AND id::text = $2";
    const PROOF: &str = "DELETE FROM verified_domains WHERE organisation_id = $1 AND id::text = $2";
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let organisation = action.organisation_id();
    let before = found(&action.tx, organisation, &id).await?;
    let id = before["id"].as_str().unwrap_or_default().to_owned();
    action.tx.execute(CLAIM, &[&organisation, &id]).await?;
    action.tx.execute(PROOF, &[&organisation, &id]).await?;
    action.commit(Change { resource_id: id, before: Some(before), after: None }).await?;
    Ok(Json(json!({})))
}
