//! Whose people an e-mail address is of: the organisation that proved its domain. The nearest proved domain decides, so
//! that who owns a part of a domain is not overruled by who owns the rest.

use crate::http::ApiError;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// The organisation that people with this address belong to; none where nobody proved the domain, or only one above it
/// whose organisation does not take people of subdomains.
pub async fn owner(db: &impl GenericClient, email: &str) -> Result<Option<Uuid>, ApiError> {
    const FIND: &str = "SELECT d.organisation_id, d.domain, EXISTS (
            SELECT FROM organisations o, jsonb_array_elements(coalesce(o.auth_settings -> 'allowed_domains', '[]')) a
            WHERE o.id = d.organisation_id AND a ->> 'domain' = d.domain AND a -> 'allow_subdomains' = 'true')
            AS takes_subdomains
        FROM verified_domains d WHERE d.domain = ANY($1) ORDER BY char_length(d.domain) DESC LIMIT 1";
    let candidates = candidates(email);
    let Some(domain) = candidates.first() else { return Ok(None) };
    let Some(row) = db.query_opt(FIND, &[&candidates]).await? else { return Ok(None) };
    let is_exact = row.try_get::<_, &str>("domain")? == domain;
    let owner: Uuid = row.try_get("organisation_id")?;
    Ok((is_exact || row.try_get("takes_subdomains")?).then_some(owner))
}

/// The domain of an address in lower case; none if it has none that could be proved.
pub fn domain_of(email: &str) -> Option<String> {
    let (_, domain) = email.rsplit_once('@')?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let fits = domain.len() <= 253 && domain.contains('.') && domain.bytes().all(is_plain);
    fits.then(|| domain.to_ascii_lowercase())
}

/// The domain and those above it, nearest first.
fn candidates(email: &str) -> Vec<String> {
    let Some(domain) = domain_of(email) else { return Vec::new() };
    let above = domain.match_indices('.').map(|(at, _)| domain[at + 1..].to_owned()).filter(|one| one.contains('.'));
    std::iter::once(domain.clone()).chain(above).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_looked_for_from_the_nearest_to_the_widest() {
        for (email, expected) in [
            ("ada@Acme.test", &["acme.test"][..]),
            ("ada@mail.eu.acme.test", &["mail.eu.acme.test", "eu.acme.test", "acme.test"]),
            ("ada@localhost", &[]),
            ("ada", &[]),
            ("a@b@acme.test", &["acme.test"]),
            ("ada@acme.test\0", &[]),
        ] {
            assert_eq!(candidates(email), expected, "{email}");
        }
    }
}
