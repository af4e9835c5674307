//! A check that a vendor runs, by the row of its wire.

use super::super::check::Check;
use super::super::checks::elsewhere::not_asked;
use super::super::fault::{Fault, FaultKind};
use super::super::parameters::{Parameters, texts};
use super::super::remote::{
    Answers, MAX_CALLS, MAX_WAIT, Question, RemoteAnswer, RemoteCall, RemoteCheck, RemoteContext,
};
use super::super::subject::Subject;
use super::super::table::{CheckSpec, ParameterKind};
use super::super::text::Scope;
use super::super::verdict::Verdict;
use super::places::{Places, text_of};
use super::reading::{Judged, Reading};
use super::signing::authorise;
use super::wire::{Auth, Wire};
use super::wires::WIRES;
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};
use std::time::Duration;

pub struct VendorCheck {
    spec: &'static CheckSpec,
    /// With the bodies of their calls, read.
    wires: Vec<(&'static Wire, Value)>,
    /// With what holds where nothing was said.
    parameters: Map<String, Value>,
    is_inverted: bool,
}

const USUAL_TIMEOUT: u64 = 5000;

impl VendorCheck {
    pub fn compile(spec: &'static CheckSpec, sent: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
        let rows = WIRES.iter().filter(|wire| wire.id == spec.id);
        let wires: Vec<_> = rows.filter_map(|wire| Some((wire, serde_json::from_str(wire.body).ok()?))).collect();
        if wires.is_empty() {
            return Err(Fault::new(FaultKind::Unusable, "", "is not asked by this version of the gateway"));
        }
        let parameters = spec.parameters.iter().filter_map(|parameter| {
            let usual = || serde_json::from_str(parameter.default).ok();
            let value: Value = sent.get(parameter.name).cloned().or_else(usual)?;
            // Lists may be written as one text with commas.
            let is_list = matches!(parameter.kind, ParameterKind::Texts | ParameterKind::Choices(_));
            let value = if is_list { texts(&value).into() } else { value };
            Some((parameter.name.to_owned(), value))
        });
        Ok(Box::new(Self { spec, wires, parameters: parameters.collect(), is_inverted: sent.flag("not") }))
    }

    fn wire(&self, subject: &Subject<'_>) -> Option<&(&'static Wire, Value)> {
        self.wires.iter().find(|(wire, _)| wire.when.fits(subject))
    }

    fn redacts(&self) -> bool {
        ["redact", "pii_redact", "secrets_redact"]
            .iter()
            .any(|name| self.parameters.get(*name) == Some(&Value::Bool(true)))
    }

    /// Whoever takes things out looks at all that leaves, as our own do, whatever the hook says.
    fn places_scope(&self, subject: &Subject<'_>) -> Scope {
        if self.redacts() { Scope::All } else { subject.scope }
    }

    fn texts(&self, subject: &Subject<'_>) -> Result<Vec<String>, Box<Verdict>> {
        if let Some(text) = subject.text {
            return Ok(vec![text.to_owned()]);
        }
        let places = subject.places(self.places_scope(subject));
        match places.is_cut {
            true if self.redacts() => {
                return Err(Verdict::unreplaced("TooMany", "the body has more texts than are looked at").into());
            }
            true => return Err(Verdict::too_many_texts().into()),
            false => {}
        }
        let mut texts: Vec<String> = places.texts(subject.json()).map(str::to_owned).collect();
        if !self.redacts() {
            texts.extend(places.names().map(str::to_owned));
            // Nothing is put back, so that many may be one.
            if texts.len() > MAX_CALLS {
                texts = vec![texts.join("\n")];
            }
        }
        Ok(texts)
    }

    fn call(&self, wire: &Wire, body: &Value, places: &Places<'_>) -> Result<RemoteCall, Box<Verdict>> {
        let url = wire.addresses.iter().find_map(|address| places.address(address));
        let Some(url) = url else {
            let why = "the stored credentials of this vendor lack its address, or what it is made of";
            return Err(Verdict::error("BadCredentials", why).into());
        };
        let body = places.body(body).unwrap_or_default();
        let mut call = RemoteCall::post(url, &body);
        for (name, place) in wire.headers {
            let Some(value) = places.find(place).as_ref().and_then(text_of) else { continue };
            let Ok(value) = HeaderValue::from_str(&value) else { continue };
            call.put(HeaderName::from_static(name), value);
        }
        authorise(&mut call, wire.auth, places)?;
        Ok(call)
    }

    fn verdict(&self, subject: &Subject<'_>, texts: &[String], judged: Vec<Judged>) -> Verdict {
        let passes = judged.iter().all(|one| one.passes);
        let is_passed = passes != self.is_inverted;
        let first = judged.iter().find(|one| !one.passes).or(judged.first());
        let data = first.map(|one| one.data.clone()).unwrap_or_default();
        let transformed = judged.iter().find_map(|one| one.transformed.clone());
        let name = self.spec.name;
        let verdict = |passed: bool, data: Value| {
            let explanation = if passed { format!("{name} let it pass.") } else { format!("{name} found something.") };
            Verdict::new(passed, explanation, data)
        };
        // It must not pass as it is, and a stream's text cannot be replaced.
        if transformed.is_some() && passes && subject.is_stream() {
            return verdict(false, data);
        }
        if let Some(json) = transformed.filter(|_| passes && subject.text.is_none()) {
            return verdict(is_passed, data).with_transformed(json);
        }
        // A stream's text cannot be replaced: what was found in it stays a find.
        if passes || !self.redacts() || subject.text.is_some() {
            return verdict(is_passed, data);
        }
        let (redacted, is_left) = replaced(judged, texts);
        let mut redacted = redacted.into_iter();
        let changed = subject
            .places(self.places_scope(subject))
            .replace(subject.json(), |text| redacted.next().flatten().filter(|other| other != text));
        // Others find more than can be replaced; these nothing else, so none of it may go on.
        let replaces_all = self.spec.id.ends_with(".pii");
        match changed {
            _ if replaces_all && is_left => {
                Verdict::unreplaced("Unreplaced", format!("{name} found what it did not replace"))
            }
            Some(json) => verdict(!is_left || is_passed, data).with_transformed(json),
            None => verdict(is_passed, data),
        }
    }
}

/// What stands for each text, and whether something that was found stays where it is.
fn replaced(judged: Vec<Judged>, texts: &[String]) -> (Vec<Option<String>>, bool) {
    if judged.len() != texts.len() {
        let redacted: Vec<Option<String>> = judged.into_iter().flat_map(|one| one.redacted).collect();
        let is_whole = redacted.len() == texts.len();
        let is_changed = redacted.iter().zip(texts).any(|(other, text)| other.as_ref().is_some_and(|o| o != text));
        let is_left = !is_whole || !is_changed || redacted.iter().any(Option::is_none);
        return (if is_whole { redacted } else { Vec::new() }, is_left);
    }
    let mut is_left = false;
    let redacted = judged
        .into_iter()
        .zip(texts)
        .map(|(mut one, text)| {
            let last = one.redacted.pop().flatten();
            let other = last.filter(|other| one.redacted.is_empty() && other != text);
            is_left |= !one.passes && other.is_none();
            other
        })
        .collect();
    (redacted, is_left)
}

impl Check for VendorCheck {
    fn run(&self, _: &Subject<'_>) -> Verdict {
        not_asked()
    }

    /// Those that search the web look for what was asked last.
    fn scope(&self) -> Scope {
        match self.spec.plugin {
            Some("exa" | "tavily") => Scope::Judged,
            _ => Scope::All,
        }
    }

    fn remote(&self) -> Option<&dyn RemoteCheck> {
        Some(self)
    }
}

impl RemoteCheck for VendorCheck {
    fn plugin(&self) -> Option<&'static str> {
        self.spec.plugin
    }

    fn timeout(&self) -> Duration {
        let milliseconds = self.parameters.get("timeout").and_then(Value::as_f64).unwrap_or(USUAL_TIMEOUT as f64);
        Duration::from_millis(milliseconds as u64).min(MAX_WAIT)
    }

    fn ask(&self, subject: &Subject<'_>, context: &RemoteContext<'_>) -> Result<Question, Box<Verdict>> {
        let Some((wire, body)) = self.wire(subject) else { return Err(not_asked().into()) };
        // It must not stop what a missing plugin would: `failOnError` says otherwise.
        if context.credentials.is_none() && !matches!(wire.auth, Auth::None) {
            let missing = Verdict::error("NoCredentials", "no credentials of this vendor are stored (POST /plugins)");
            return Err(Verdict { verdict: true, ..missing }.into());
        }
        let texts = self.texts(subject)?;
        let text = texts.join("\n");
        if text.trim().is_empty() {
            return Err(Verdict::no_text().into());
        }
        let mut places =
            Places { parameters: &self.parameters, context, subject, text: &text, texts: &texts, each: "" };
        if !wire.is_for_each_text() {
            return Ok(Question::Calls(vec![self.call(wire, body, &places)?]));
        }
        if texts.len() > MAX_CALLS {
            let why = format!("the body has more than the {MAX_CALLS} texts that a vendor is asked about one by one");
            let bound =
                if self.redacts() { Verdict::unreplaced("TooMany", why) } else { Verdict::bound("TooMany", why) };
            return Err(bound.into());
        }
        let mut calls = Vec::with_capacity(texts.len());
        for each in &texts {
            places.each = each;
            calls.push(self.call(wire, body, &places)?);
        }
        Ok(Question::Calls(calls))
    }

    fn read(&self, subject: &Subject<'_>, answers: &Answers) -> Verdict {
        let Some((wire, _)) = self.wire(subject) else { return not_asked() };
        let texts = match self.texts(subject) {
            Ok(texts) => texts,
            Err(verdict) => return *verdict,
        };
        let is_each = wire.is_for_each_text();
        let expected = if is_each { texts.len() } else { 1 };
        if answers.calls().len() != expected {
            return RemoteAnswer::senseless("there is none");
        }
        let mut judged = Vec::with_capacity(expected);
        for (index, answer) in answers.calls().iter().enumerate() {
            let json = match answer.json() {
                Ok(json) => json,
                Err(verdict) => return *verdict,
            };
            let about = if is_each { &texts[index..=index] } else { &texts[..] };
            let reading = Reading { json: &json, parameters: &self.parameters, subject, texts: about, wire };
            match reading.judged() {
                Ok(one) => judged.push(one),
                Err(verdict) => return *verdict,
            }
        }
        self.verdict(subject, &texts, judged)
    }
}
