//! One assertion: for whom, by whom, until when, about whom. Whatever it must say and does not, refuses it.

use super::{ASSERTION, Expected, Refused, SKEW, Statement, Unbelievable};
use crate::saml::xml::{Document, ElementId};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

const BEARER: &str = "urn:oasis:names:tc:SAML:2.0:cm:bearer";
const MAX_NAME: usize = 1024;
const MAX_ATTRIBUTES: usize = 200;
const MAX_VALUES: usize = 1000;
const MAX_VALUE: usize = 2048;

/// The element was verified; what stands outside of it is not looked at.
pub fn read(document: &Document, assertion: ElementId, expected: &Expected<'_>) -> Result<Statement, Unbelievable> {
    if !document.is(assertion, ASSERTION, "Assertion") || document.attribute(assertion, "Version") != Some("2.0") {
        return Err(Refused("The assertion is not of SAML 2.0"));
    }
    let only = |name: &str| document.only(assertion, ASSERTION, name);
    let issuer = only("Issuer").and_then(|issuer| document.text(issuer));
    if issuer != Some(expected.from.entity_id.as_str()) {
        return Err(Refused("The assertion is by another identity provider"));
    }
    let assertion_id = document.attribute(assertion, "ID").filter(|id| (1..=MAX_NAME).contains(&id.len()));
    let assertion_id = assertion_id.ok_or(Refused("The assertion has no id"))?.to_owned();
    let subject = only("Subject").ok_or(Refused("The assertion is about nobody"))?;
    let confirmed_until = confirmed(document, subject, expected)?;
    let conditions = only("Conditions").ok_or(Refused("The assertion says neither for whom nor until when it is"))?;
    let conditioned_until = conditions_hold(document, conditions, expected)?;
    let session = authenticated(document, assertion, expected)?;
    let name = document.only(subject, ASSERTION, "NameID").ok_or(Refused("The assertion does not name its subject"))?;
    let text = document.text(name).filter(|text| (1..=MAX_NAME).contains(&text.len()));
    Ok(Statement {
        assertion_id,
        // As long as it could be taken again, by the widest reading of both.
        expires_at: conditioned_until.unwrap_or(confirmed_until).max(confirmed_until) + SKEW + SKEW,
        name: text.ok_or(Refused("The name of the subject is empty, too long or not plain"))?.to_owned(),
        name_format: document.attribute(name, "Format").unwrap_or_default().to_owned(),
        session,
        attributes: attributes(document, assertion)?,
    })
}

/// The bearer of the assertion is who was sent with our request, at our address, in time. Until when, if so.
fn confirmed(document: &Document, subject: ElementId, expected: &Expected<'_>) -> Result<DateTime<Utc>, Unbelievable> {
    let mut why = Refused("The assertion is not confirmed for its bearer");
    for confirmation in document.children(subject, ASSERTION, "SubjectConfirmation") {
        if document.attribute(confirmation, "Method") != Some(BEARER) {
            continue;
        }
        let Some(data) = document.only(confirmation, ASSERTION, "SubjectConfirmationData") else { continue };
        match bearer(document, data, expected) {
            Ok(until) => return Ok(until),
            Err(refused) => why = refused,
        }
    }
    Err(why)
}

fn bearer(document: &Document, data: ElementId, expected: &Expected<'_>) -> Result<DateTime<Utc>, Unbelievable> {
    if document.attribute(data, "Recipient") != Some(expected.to.consumer_url.as_str()) {
        return Err(Refused("The assertion was meant for another recipient"));
    }
    if document.attribute(data, "InResponseTo") != Some(expected.request_id) {
        return Err(Refused("The assertion answers another request"));
    }
    let until = time(document, data, "NotOnOrAfter")?.ok_or(Refused("The assertion is confirmed without an end"))?;
    let from = time(document, data, "NotBefore")?;
    in_time(from, Some(until), expected.now)?;
    Ok(until)
}

/// For us, and now. Until when, if it says so.
fn conditions_hold(
    document: &Document,
    conditions: ElementId,
    expected: &Expected<'_>,
) -> Result<Option<DateTime<Utc>>, Unbelievable> {
    let (from, until) = (time(document, conditions, "NotBefore")?, time(document, conditions, "NotOnOrAfter")?);
    in_time(from, until, expected.now)?;
    let restrictions = document.children(conditions, ASSERTION, "AudienceRestriction");
    let is_ours = |restriction: &ElementId| {
        let audiences = document.children(*restriction, ASSERTION, "Audience");
        audiences.iter().any(|one| document.text(*one) == Some(expected.to.entity_id.as_str()))
    };
    // Each restriction must hold, and without one the assertion is for anybody.
    if restrictions.is_empty() || !restrictions.iter().all(is_ours) {
        return Err(Refused("The assertion was meant for another audience"));
    }
    let known = ["AudienceRestriction", "OneTimeUse", "ProxyRestriction"];
    let is_known = |one: ElementId| {
        &*document.element(one).namespace == ASSERTION && known.contains(&&*document.element(one).local)
    };
    match document.elements_in(conditions).all(is_known) {
        true => Ok(until),
        false => Err(Refused("The assertion has a condition that is not understood")),
    }
}

/// What the identity provider calls its session. Without a statement that somebody signed in, nobody did.
fn authenticated(
    document: &Document,
    assertion: ElementId,
    expected: &Expected<'_>,
) -> Result<Option<String>, Unbelievable> {
    let statements = document.children(assertion, ASSERTION, "AuthnStatement");
    let statement = statements.first().ok_or(Refused("The assertion does not say that anybody signed in"))?;
    in_time(None, time(document, *statement, "SessionNotOnOrAfter")?, expected.now)?;
    let session = document.attribute(*statement, "SessionIndex").filter(|id| (1..=MAX_NAME).contains(&id.len()));
    Ok(session.map(str::to_owned))
}

fn in_time(from: Option<DateTime<Utc>>, until: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Result<(), Unbelievable> {
    if from.is_some_and(|from| now + SKEW < from) {
        return Err(Refused("The assertion is not valid yet"));
    }
    match until {
        Some(until) if now - SKEW >= until => Err(Refused("The assertion has expired")),
        _ => Ok(()),
    }
}

fn time(document: &Document, of: ElementId, name: &str) -> Result<Option<DateTime<Utc>>, Unbelievable> {
    let Some(text) = document.attribute(of, name) else { return Ok(None) };
    let parsed = DateTime::parse_from_rfc3339(text).map(|time| Some(time.to_utc()));
    parsed.map_err(|_| Refused("The assertion has a time that is none"))
}

/// By name. What several statements or attributes of one name say is joined.
fn attributes(document: &Document, assertion: ElementId) -> Result<BTreeMap<String, Vec<String>>, Unbelievable> {
    const TOO_MUCH: Unbelievable = Refused("The assertion has too many attributes, or values that are too long");
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut values = 0;
    for statement in document.children(assertion, ASSERTION, "AttributeStatement") {
        for attribute in document.children(statement, ASSERTION, "Attribute") {
            let name = document.attribute(attribute, "Name").unwrap_or_default();
            if name.len() > MAX_NAME || (all.len() >= MAX_ATTRIBUTES && !all.contains_key(name)) {
                return Err(TOO_MUCH);
            }
            let list = all.entry(name.to_owned()).or_default();
            for value in document.children(attribute, ASSERTION, "AttributeValue") {
                // Values may be whole trees, which mean nothing here.
                let Some(text) = document.text(value) else { continue };
                values += 1;
                if text.len() > MAX_VALUE || values > MAX_VALUES {
                    return Err(TOO_MUCH);
                }
                list.push(text.to_owned());
            }
        }
    }
    Ok(all)
}
