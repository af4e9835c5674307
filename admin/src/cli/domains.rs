//! Mail domains by the operator's word: for organisations whose DNS nobody can write into, and when two quarrel about one.

use crate::app::settings::Settings;
use crate::audit::{self, AuditRecord};
use crate::resources::login::domain_proofs;
use crate::resources::login::domain_proofs::ProofMethod;
use anyhow::Context as _;
use serde_json::json;
use shared::db;
use uuid::Uuid;

const NO_DOMAIN: &str = "that is no domain name";

pub async fn verify(settings: &Settings, organisation: Uuid, domain: &str) -> anyhow::Result<String> {
    const KNOWN: &str = "SELECT FROM organisations WHERE id = $1";
    let domain = domain_proofs::normal(domain).context(NO_DOMAIN)?;
    let mut client = db::connect(&settings.database).await?;
    client.query_opt(KNOWN, &[&organisation]).await?.context("there is no such organisation")?;
    let tx = client.transaction().await?;
    let id = domain_proofs::prove(&tx, organisation, &domain, ProofMethod::Operator).await;
    let id = id.map_err(|refused| anyhow::anyhow!("{refused}"))?;
    let mut record = AuditRecord::by_system(organisation, "organisation", "update");
    record.resource_id = Some(id.to_string());
    record.after = Some(json!({ "domain": domain, "status": "verified", "by": "gateway-admin domains verify" }));
    audit::record(&tx, &record).await?;
    tx.commit().await?;
    Ok(format!("{domain} is the organisation's"))
}

pub async fn release(settings: &Settings, domain: &str) -> anyhow::Result<String> {
    const RELEASE: &str = "DELETE FROM verified_domains WHERE domain = $1 RETURNING id, organisation_id";
    let domain = domain_proofs::normal(domain).context(NO_DOMAIN)?;
    let mut client = db::connect(&settings.database).await?;
    let tx = client.transaction().await?;
    let row = tx.query_opt(RELEASE, &[&domain]).await?.context("nobody has proved this domain")?;
    let (id, organisation): (Uuid, Uuid) = (row.try_get("id")?, row.try_get("organisation_id")?);
    let mut record = AuditRecord::by_system(organisation, "organisation", "update");
    record.resource_id = Some(id.to_string());
    record.before = Some(json!({ "domain": domain, "status": "verified" }));
    record.after = Some(json!({ "domain": domain, "by": "gateway-admin domains release" }));
    audit::record(&tx, &record).await?;
    tx.commit().await?;
    Ok(format!("{domain} is nobody's; it was of organisation {organisation}"))
}
