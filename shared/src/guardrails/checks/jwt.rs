//! `jwt`: the caller has a token that one of these keys signed, still valid, with the claims that are asked for. The keys are
//! given with the check (`jwks`), or stand behind an address (`jwksUri`): then whoever has a dialer fetches and keeps them. Or
//! whoever issued the token is asked about it each time (`introspectEndpoint`, RFC 7662). Why a token is refused is told in
//! general words, and nothing of it is repeated.
//!
//! Claims may become headers for the checks behind it (`extractClaims`): see `extracted`.

mod extracted;

use super::listed::Expected;
use crate::guardrails::check::Check;
use crate::guardrails::fault::{Fault, FaultKind};
use crate::guardrails::parameters::Parameters;
use crate::guardrails::remote::{Answers, Question, RemoteAnswer, RemoteCall, RemoteCheck, RemoteContext};
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use crate::identity::jwt::{Unverified, WebKeySet};
use extracted::ExtractedClaims;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A fetch of keys has its own, shorter limit.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Keys that were withdrawn, and tokens, are good for no longer, whatever the check says.
const MAX_CACHE_TIME: u64 = 24 * 60 * 60;
const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
/// How an issuer takes a token that it is asked about.
pub const INTROSPECTION_TYPES: &[&str] = &[FORM, JSON];

enum Keys {
    Given(WebKeySet),
    Behind {
        url: String,
        cached_for: Duration,
    },
    /// Nobody's: the issuer says whether the token holds, and what it claims.
    Asked {
        url: String,
        is_json: bool,
        /// How long an answer is given again; none is if this is nothing.
        cached_for: Duration,
    },
}

/// Longer ones are no tokens.
const MAX_TOKEN: usize = 16 << 10;

struct Jwt {
    keys: Keys,
    header: HeaderName,
    tolerance: i64,
    longest_age: Option<i64>,
    required: Vec<String>,
    values: Vec<(String, Expected)>,
    /// Claims that a header of the same name must repeat.
    repeated: Vec<HeaderName>,
    extracted: ExtractedClaims,
    /// By which a token may be signed.
    algorithms: Vec<String>,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    let unusable = |path: &str, why: String| Fault::new(FaultKind::Unusable, path, why);
    let given = match parameters.get("jwks") {
        Some(Value::String(text)) => Some(WebKeySet::parse(text.as_bytes())),
        Some(set) => Some(WebKeySet::from_json(set)),
        None => None,
    };
    let given = given.transpose().map_err(|why| unusable("jwks", format!("is not a key set: {why}")))?;
    let keys = match (given, parameters.get("jwksUri"), parameters.get("introspectEndpoint")) {
        (Some(set), ..) => Keys::Given(set),
        (None, Some(_), _) => Keys::Behind {
            url: super::webhook::address(parameters, "jwksUri")?,
            cached_for: cache_time(parameters, "cacheMaxAge", MAX_CACHE_TIME),
        },
        (None, None, Some(_)) => Keys::Asked {
            url: super::webhook::address(parameters, "introspectEndpoint")?,
            is_json: parameters.text("introspectContentType") == Some(JSON),
            cached_for: cache_time(parameters, "introspectCacheMaxAge", 0),
        },
        (None, None, None) => {
            let why = "is required, the key set itself, or `jwksUri`, its address, or `introspectEndpoint`";
            return Err(Fault::new(FaultKind::Missing, "jwks", why));
        }
    };
    let name = parameters.text_or("headerKey", "Authorization");
    let header = HeaderName::from_bytes(name.as_bytes());
    let header = header.map_err(|_| unusable("headerKey", "is not the name of a header".into()))?;
    let age = parameters.text_or("maxTokenAge", "1d");
    let longest_age = seconds(&age).ok_or_else(|| unusable("maxTokenAge", "must be as 30s, 15m, 12h or 1d".into()))?;
    let mut values = Vec::new();
    for (claim, rule) in parameters.get("claimValues").and_then(Value::as_object).into_iter().flatten() {
        let path = format!("claimValues.{claim}");
        let Some(wanted) = rule.get("values") else {
            return Err(Fault::new(FaultKind::Missing, format!("{path}.values"), "is required"));
        };
        let match_type = rule.get("matchType").and_then(Value::as_str).unwrap_or("exact");
        values.push((claim.clone(), Expected::new(wanted, match_type, &path)?));
    }
    let repeated = parameters
        .texts("headerPayloadMatch")
        .iter()
        .map(|name| HeaderName::from_bytes(name.as_bytes()))
        .collect::<Result<Vec<_>, _>>();
    let repeated =
        repeated.map_err(|_| unusable("headerPayloadMatch", "has a name that is no name of a header".into()))?;
    let mut algorithms = parameters.texts("algorithms");
    if algorithms.is_empty() {
        algorithms.push("RS256".to_owned());
    }
    Ok(Box::new(Jwt {
        keys,
        algorithms,
        repeated,
        header,
        tolerance: parameters.count("clockTolerance", 5) as i64,
        longest_age: Some(longest_age),
        required: parameters.texts("requiredClaims"),
        values,
        extracted: ExtractedClaims::read(parameters)?,
    }))
}

fn cache_time(parameters: &Parameters<'_>, name: &str, usual: u64) -> Duration {
    Duration::from_secs(parameters.count(name, usual).min(MAX_CACHE_TIME))
}

impl Check for Jwt {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        match &self.keys {
            Keys::Given(keys) => self.verify(subject, keys),
            Keys::Behind { .. } | Keys::Asked { .. } => super::elsewhere::not_asked(),
        }
    }

    fn remote(&self) -> Option<&dyn RemoteCheck> {
        (!matches!(self.keys, Keys::Given(_))).then_some(self)
    }
}

impl RemoteCheck for Jwt {
    fn timeout(&self) -> Duration {
        TIMEOUT
    }

    /// A token that cannot be one makes nobody fetch keys.
    fn ask(&self, subject: &Subject<'_>, _: &RemoteContext<'_>) -> Result<Question, Box<Verdict>> {
        match &self.keys {
            Keys::Given(_) => Err(self.run(subject).into()),
            Keys::Behind { url, cached_for } => {
                let kid = self.token(subject)?.kid().to_owned();
                Ok(Question::KeySet { url: url.clone(), kid, cached_for: *cached_for })
            }
            Keys::Asked { url, is_json, cached_for } => {
                let token = self.sent(subject)?;
                let text = std::str::from_utf8(token).ok().filter(|text| !text.is_empty() && text.len() <= MAX_TOKEN);
                let Some(text) = text else { return Err(Self::refuse("the token was refused (malformed)").into()) };
                let mut call = RemoteCall::post(url.clone(), &json!({ "token": text }));
                if !is_json {
                    call.body = format!("token={}", escaped(text)).into_bytes();
                    call.put(CONTENT_TYPE, HeaderValue::from_static(FORM));
                }
                Ok(match cached_for.is_zero() {
                    true => Question::Calls(vec![call]),
                    false => Question::CachedCall { call, cached_for: *cached_for },
                })
            }
        }
    }

    fn read(&self, subject: &Subject<'_>, answers: &Answers) -> Verdict {
        match answers {
            Answers::KeySet(keys) => self.verify(subject, keys),
            Answers::Addresses(_) | Answers::Images(_) => RemoteAnswer::senseless("it is no key set"),
            Answers::Calls(_) if matches!(self.keys, Keys::Behind { .. }) => {
                RemoteAnswer::senseless("it is no key set")
            }
            Answers::Calls(answers) => match answers.first() {
                Some(answer) => self.introspected(subject, answer),
                None => RemoteAnswer::senseless("there is none"),
            },
        }
    }
}

impl Jwt {
    /// What stands in the header, without its scheme.
    fn sent<'t>(&self, subject: &Subject<'t>) -> Result<&'t [u8], Box<Verdict>> {
        let Some(sent) = subject.headers.get(&self.header) else {
            return Err(Self::refuse("the request has no token in this header").into());
        };
        let sent = sent.as_bytes();
        Ok(match sent.get(..7) {
            Some(scheme) if scheme.eq_ignore_ascii_case(b"bearer ") => &sent[7..],
            _ => sent,
        })
    }

    fn token<'t>(&self, subject: &Subject<'t>) -> Result<Unverified<'t>, Box<Verdict>> {
        let refused = |kind: &str| Box::new(Self::refuse(&format!("the token was refused ({kind})")));
        let token = Unverified::parse(self.sent(subject)?).map_err(|rejection| refused(rejection.kind()))?;
        if token.is_signed_by(&self.algorithms) { Ok(token) } else { Err(refused("algorithm")) }
    }

    fn verify(&self, subject: &Subject<'_>, keys: &WebKeySet) -> Verdict {
        let token = match self.token(subject) {
            Ok(token) => token,
            Err(refused) => return *refused,
        };
        let claims = match token.claims_signed_by(keys) {
            Ok(claims) => claims,
            Err(rejection) => return Self::refuse(&format!("the token was refused ({})", rejection.kind())),
        };
        self.admitted(subject, &claims, true)
    }

    /// What the issuer says of a token. Its answer need not say when the token was issued.
    fn introspected(&self, subject: &Subject<'_>, answer: &RemoteAnswer) -> Verdict {
        let json = match answer.json() {
            Ok(json) => json,
            Err(verdict) => return *verdict,
        };
        let Some(claims) = json.as_object() else { return RemoteAnswer::senseless("it is no object") };
        match claims.get("active").and_then(Value::as_bool) {
            None => RemoteAnswer::senseless("its `active` is neither true nor false"),
            Some(false) => Self::refuse("the issuer says that the token is not active"),
            Some(true) => self.admitted(subject, claims, false),
        }
    }

    fn admitted(&self, subject: &Subject<'_>, claims: &Map<String, Value>, needs_issue: bool) -> Verdict {
        match self.judge(claims, subject.now, needs_issue).and_then(|()| self.compare(claims, subject)) {
            Ok(()) => Verdict {
                headers: self.extracted.headers(claims),
                ..Verdict::new(true, "The token is valid.", json!({ "claims": claims.keys().collect::<Vec<_>>() }))
            },
            Err(why) => Self::refuse(&why),
        }
    }

    fn refuse(why: &str) -> Verdict {
        Verdict::new(false, format!("Not admitted: {why}."), Value::Null)
    }

    /// What headers must repeat of the claims.
    fn compare(&self, claims: &Map<String, Value>, subject: &Subject<'_>) -> Result<(), String> {
        for name in &self.repeated {
            let claim = match claims.iter().find(|(claim, _)| claim.eq_ignore_ascii_case(name.as_str())) {
                Some((_, Value::String(text))) => text.clone(),
                Some((_, value @ (Value::Number(_) | Value::Bool(_)))) => value.to_string(),
                _ => return Err(format!("the token lacks the claim {name}")),
            };
            if subject.headers.get(name).is_none_or(|sent| sent.as_bytes() != claim.as_bytes()) {
                return Err(format!("the header {name} is not as the token claims"));
            }
        }
        Ok(())
    }

    fn judge(&self, claims: &Map<String, Value>, now: i64, needs_issue: bool) -> Result<(), String> {
        let time = |name: &str| claims.get(name).and_then(Value::as_f64).map(|time| time as i64);
        if time("exp").is_some_and(|ends| ends.saturating_add(self.tolerance) < now) {
            return Err("the token has expired".into());
        }
        if time("nbf").is_some_and(|begins| begins.saturating_sub(self.tolerance) > now) {
            return Err("the token is not valid yet".into());
        }
        match (self.longest_age, time("iat")) {
            (Some(_), None) if needs_issue => return Err("the token does not say when it was issued".into()),
            (Some(age), Some(issued)) if issued.saturating_add(age).saturating_add(self.tolerance) < now => {
                return Err("the token is too old".into());
            }
            (_, Some(issued)) if issued.saturating_sub(self.tolerance) > now => {
                return Err("the token was issued later than now".into());
            }
            _ => {}
        }
        if let Some(missing) = self.required.iter().find(|name| !claims.contains_key(name.as_str())) {
            return Err(format!("the token lacks the claim {missing}"));
        }
        for (name, expected) in &self.values {
            let fits = claims.get(name).map_or(Ok(false), |value| expected.fits(value));
            if !fits.map_err(|costly| costly.to_string())? {
                return Err(format!("the claim {name} is not as required"));
            }
        }
        Ok(())
    }
}

/// As forms write it.
fn escaped(text: &str) -> String {
    let mut form = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => form.push(char::from(byte)),
            _ => form.push_str(&format!("%{byte:02X}")),
        }
    }
    form
}

/// `30s`, `15m`, `12h`, `1d`, or seconds.
fn seconds(text: &str) -> Option<i64> {
    let (number, unit) = match text.find(|letter: char| !letter.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let unit = match unit.trim() {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests;
