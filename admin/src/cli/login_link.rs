//! A one-time link, printed. Whoever may run this command may read the database anyway; it is noted in the audit trail.

use crate::app::settings::Settings;
use crate::audit::{self, AuditRecord};
use crate::mail;
use crate::resources::login::links;
use crate::resources::login::links::Addressee;
use serde_json::json;
use shared::db;
use uuid::Uuid;

pub async fn create(settings: &Settings, email: &str, organisation: Option<Uuid>) -> anyhow::Result<String> {
    let mut client = db::connect(&settings.database).await?;
    let found = links::addressees(&client, email, organisation).await?;
    let to = match found.as_slice() {
        [one] => one,
        [] => anyhow::bail!("nobody with this e-mail address is active in {}", named(organisation)),
        several => anyhow::bail!("the person is in several organisations; name one of\n{}", listed(several)),
    };
    let tx = client.transaction().await?;
    let token = links::create(&tx, to).await?;
    let mut record = AuditRecord::by_system(to.organisation_id, "login_links", "create");
    record.resource_id = Some(to.user_id.to_string());
    record.after = Some(json!({ "user_id": to.user_id, "email": to.email, "by": "gateway-admin login-link" }));
    audit::record(&tx, &record).await?;
    tx.commit().await?;
    Ok(links::url(&mail::public_url(&settings.mail, settings.listen.proxy_port)?, &token))
}

fn named(organisation: Option<Uuid>) -> String {
    organisation.map_or_else(|| "any organisation".into(), |id| format!("the organisation {id}"))
}

fn listed(several: &[Addressee]) -> String {
    let lines = several.iter().map(|one| format!("--organisation {}  # {}", one.organisation_id, one.organisation));
    lines.collect::<Vec<_>>().join("\n")
}
