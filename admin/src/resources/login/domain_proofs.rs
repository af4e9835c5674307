//! How a mail domain becomes an organisation's own: it claims the domain, publishes a token in its DNS (or the operator
//! vouches), and from then on nobody else can have it. Looked up by `domains`, written here alone.

use crate::http::ApiError;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// What a TXT record of the domain begins with.
pub const RECORD: &str = "portcullis-verification=";

/// By what a domain was proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProofMethod {
    Dns,
    Operator,
}

impl ProofMethod {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Operator => "operator",
        }
    }
}

/// A domain as it is stored; none if it is no name of one.
pub fn normal(domain: &str) -> Option<String> {
    let domain = domain.strip_suffix('.').unwrap_or(domain).to_ascii_lowercase();
    is_domain(&domain).then_some(domain)
}

pub fn is_domain(domain: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    domain.len() <= 253 && domain.contains('.') && domain.split('.').all(is_label)
}

/// Whether one of the records is the proof for this token.
pub fn is_proved(records: &[String], token: &str) -> bool {
    records.iter().any(|record| record.trim().strip_prefix(RECORD) == Some(token))
}

/// Makes a domain an organisation's own, under the id of its claim if it has one. Whoever proved it before keeps it.
pub async fn prove(
    db: &impl GenericClient,
    organisation: Uuid,
    domain: &str,
    method: ProofMethod,
) -> Result<Uuid, ApiError> {
    const UNCLAIM: &str = "DELETE FROM domain_claims WHERE organisation_id = $1 AND domain = $2 RETURNING id";
    const PROVE: &str = "INSERT INTO verified_domains (id, organisation_id, domain, method) VALUES ($1, $2, $3, $4)
        ON CONFLICT (domain) DO NOTHING";
    const OWNER: &str = "SELECT id, organisation_id FROM verified_domains WHERE domain = $1";
    let claim = db.query_opt(UNCLAIM, &[&organisation, &domain]).await?;
    let id = match claim {
        Some(row) => row.try_get("id")?,
        None => Uuid::new_v4(),
    };
    if db.execute(PROVE, &[&id, &organisation, &domain, &method.as_str()]).await? == 1 {
        return Ok(id);
    }
    let taken = || ApiError::Conflict("Another organisation of this installation has proved this domain".into());
    let row = db.query_opt(OWNER, &[&domain]).await?.ok_or_else(taken)?;
    match row.try_get::<_, Uuid>("organisation_id")? == organisation {
        true => Ok(row.try_get("id")?),
        false => Err(taken()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_a_name_with_a_dot_in_lower_case() {
        for (sent, expected) in [
            ("Acme.test", Some("acme.test")),
            ("acme.test.", Some("acme.test")),
            ("mail.acme.test", Some("mail.acme.test")),
            ("acme", None),
            ("a b.test", None),
            ("-a.test", None),
            ("a..test", None),
            ("", None),
            ("acmé.test", None),
        ] {
            assert_eq!(normal(sent).as_deref(), expected, "{sent}");
        }
    }

    #[test]
    fn only_the_whole_token_is_a_proof() {
        let records = |text: &str| vec!["v=spf1 -all".to_owned(), text.to_owned()];
        assert!(is_proved(&records("portcullis-verification=abc"), "abc"));
        for other in
            ["portcullis-verification=abcd", "portcullis-verification=ab", "abc", "x portcullis-verification=abc"]
        {
            assert!(!is_proved(&records(other), "abc"), "{other}");
        }
    }
}
