//! A login, end to end, at an OIDC provider that others wrote: npm `oidc-provider`. Its own cookies and pages, PKCE, keys,
//! claims beyond the ID token, a logout that begins here and ends there, and its word of that logout to us, which ends
//! whatever other session it had vouched for.

use super::{Browser, set_up};
use crate::service::Service;
use harness::node::Script;
use reqwest::redirect::Policy;
use serde_json::json;
use std::collections::BTreeMap;

const SCRIPT: &str = include_str!("oidc_provider.mjs");
const PACKAGES: [&str; 1] = ["oidc-provider@9.13.3"];
const SECRET: &str = "of-the-peer-0123456789abcdef";

/// A browser's visit to the provider, with the cookies it keeps there.
struct Visit {
    http: reqwest::Client,
    issuer: String,
    cookies: BTreeMap<String, String>,
}

impl Visit {
    fn new(issuer: &str) -> Self {
        let http = reqwest::Client::builder().redirect(Policy::none()).no_proxy().build().unwrap();
        Self { http, issuer: issuer.to_owned(), cookies: BTreeMap::new() }
    }

    async fn ask(&mut self, request: reqwest::RequestBuilder) -> (Option<String>, String) {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let answer = request.header("cookie", cookies.join("; ")).send().await.unwrap();
        for line in answer.headers().get_all("set-cookie") {
            let (name, value) = line.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        let location = answer.headers().get("location").map(|value| value.to_str().unwrap().to_owned());
        (location, answer.text().await.unwrap())
    }

    /// Follows redirects until one leads away from the provider.
    async fn until_it_leads_back(&mut self, location: &str) -> String {
        let mut url = location.to_owned();
        for _ in 0..10 {
            let (location, page) = self.ask(self.http.get(&url)).await;
            let location = location.unwrap_or_else(|| panic!("{url} is a page: {page}"));
            url = if location.starts_with('/') { format!("{}{location}", self.issuer) } else { location };
            if !url.starts_with(&self.issuer) {
                return url;
            }
        }
        panic!("it goes round in circles: {url}");
    }
}

/// The value of a hidden field in a page.
fn hidden<'p>(page: &'p str, name: &str) -> &'p str {
    let field = page.split("<input").find(|part| part.contains(&format!("name=\"{name}\""))).unwrap();
    field.split("value=\"").nth(1).unwrap().split('"').next().unwrap()
}

#[tokio::test]
async fn a_peer_that_others_wrote_signs_people_in_and_out_and_tells_of_a_logout() {
    let service = Service::start_with(&[super::TRUSTING, "--public-url=http://localhost:8787"]).await;
    let organisation = service.home.organisation_id;
    let callback = format!("http://localhost:8787/v1/auth/callback/{organisation}");
    let backchannel = format!("{}/v1/auth/backchannel-logout/{organisation}", service.origin);
    let start = move || Script::start(SCRIPT, &PACKAGES, &[&callback, "http://localhost:8787/", &backchannel, SECRET]);
    let script = tokio::task::spawn_blocking(start).await.unwrap();
    let issuer = script.greeting.clone();
    assert!(issuer.starts_with("http://127.0.0.1:"), "{issuer}");
    let oidc = json!({ "issuer": issuer, "client_id": "gateway", "client_secret": SECRET });
    set_up(&service, json!({ "oidc": oidc })).await;
    super::prove(&service, organisation, "home.test").await;

    // Two browsers' worth of sessions here, one there.
    let mut visit = Visit::new(&issuer);
    let (mut here, mut there) = (Browser::new(&service), Browser::new(&service));
    for browser in [&mut here, &mut there] {
        let location = super::begun(&service, browser).await;
        let back = visit.until_it_leads_back(&location).await;
        let answer = browser.follow(&back).await;
        assert_eq!(answer.status, 303, "{back}: {}", answer.text());
        let session = browser.get("/auth/session").await.json();
        assert_eq!(session["user"]["email"], "ada@home.test", "{session}");
        assert_eq!(session["user"]["last_name"], "Lovelace", "{session}");
    }

    here.learn_csrf().await;
    let answer = here.post("/auth/logout", &json!({})).await.json();
    let logout = answer["logout_url"].as_str().unwrap().to_owned();
    let (_, page) = visit.ask(visit.http.get(&logout)).await;
    let form = [("xsrf", hidden(&page, "xsrf").to_owned()), ("logout", "yes".to_owned())];
    let body: String = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let confirm = visit.http.post(format!("{issuer}/session/end/confirm")).body(body);
    let (location, page) = visit.ask(confirm.header("content-type", "application/x-www-form-urlencoded")).await;
    assert_eq!(location.as_deref(), Some("http://localhost:8787/"), "{page}");
    // It told us before it answered: the other browser's session is over, by its token and no call of ours.
    assert_eq!(there.get("/auth/session").await.status, 401);
    let row = super::trail(&service).await.pop().unwrap();
    assert_eq!((&row["after"]["issuer"], &row["after"]["ended_sessions"]), (&json!(issuer), &json!(1)), "{row}");
    assert_eq!((&row["action"], &row["response_status_code"]), (&json!("delete"), &json!(200)), "{row}");
}
