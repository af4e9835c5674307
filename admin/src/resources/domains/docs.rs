//! Domains' operations in the document.

use crate::openapi::{Doc, schema};
use serde_json::json;

pub fn docs() -> Vec<Doc> {
    let record = schema::object("DomainRecord")
        .need("type", schema::fixed("TXT").says("The kind of record."))
        .need("name", schema::any_text().eg("example.com").says("Where it must be published: at the domain itself."))
        .need("value", schema::any_text().eg("portcullis-verification=Zk3…").says("What it must hold."));
    let domain = schema::object("MailDomain")
        .need("object", schema::fixed("domain"))
        .need("id", schema::uuid().says("The id of the domain."))
        .need("domain", schema::any_text().eg("example.com").says("The domain, in lower case."))
        .need("status", schema::choice(&["pending", "verified"]).says("Whether it is proved."))
        .need("method", schema::any_text().eg("dns").or_null().says("How it was proved: dns or operator."))
        .need(
            "dns_record",
            record.or_null().says("The record that proves a pending domain.").eg(json!({
                "type": "TXT", "name": "example.com", "value": "portcullis-verification=Zk3…"
            })),
        )
        .need("since", schema::time().says("When it was claimed, or proved."));
    let new = schema::object("NewMailDomain")
        .need("domain", schema::text(1..=254).eg("example.com").says("The domain, without anything before or after."));
    let listed = schema::object("")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX).says("How many there are."))
        .need("data", schema::list(domain.clone()).says("The domains, by name."));
    vec![
        Doc::get("/admin/domains", "List the organisation's mail domains").answer(listed),
        Doc::post("/admin/domains", "Claim a mail domain")
            .details("Publish the record of the answer, then verify the domain.")
            .body(new)
            .answer(domain.clone())
            .also(409),
        Doc::post("/admin/domains/{domainId}/verify", "Verify a mail domain by its DNS record")
            .details("A domain that another organisation has proved cannot be had (409).")
            .answer(domain)
            .also(409),
        Doc::remove("/admin/domains/{domainId}", "Give up a mail domain").details("Members stay."),
    ]
}
