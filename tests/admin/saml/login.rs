//! The way of a browser: to the identity provider and back, once, in the same browser, for the organisation it was begun
//! for, and for nobody who does not belong there.

use super::encrypted::{Content, hidden};
use super::idp::{Facts, Idp};
use crate::service::Service;
use admin::saml::metadata::key_of;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::DeflateDecoder;
use harness::{Answer, client::whole};
use http::Method;
use openssl::rsa::Padding;
use serde_json::{Value, json};
use shared::bootstrap::FirstKeys;
use std::io::Read as _;
use uuid::Uuid;

const AUTH: &str = "/admin/organisation/auth-settings";

pub struct Site {
    pub service: Service,
    pub idp: Idp,
}

/// A login that was begun: the browser's cookie, and what the identity provider is to say.
pub struct Begun {
    pub cookie: String,
    pub facts: Facts,
}

impl Site {
    pub async fn start() -> Self {
        let site = Self { service: Service::start().await, idp: Idp::new() };
        site.trust(&site.service.home, &site.idp, json!({})).await;
        site.prove(site.service.home.organisation_id, "acme.test").await;
        site
    }

    pub async fn trust(&self, organisation: &FirstKeys, idp: &Idp, more: Value) {
        let mut saml = json!({ "metadata_xml": idp.metadata() });
        saml.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let admin = self.service.client().with_key(&organisation.admin_key.key);
        let set = admin.put(AUTH, &json!({ "saml": saml })).await;
        assert_eq!(set.status, 200, "{}", set.text());
    }

    pub async fn prove(&self, organisation: Uuid, domain: &str) {
        const PROVE: &str =
            "INSERT INTO verified_domains (organisation_id, domain, method) VALUES ($1, $2, 'operator')";
        self.service.database.client().await.execute(PROVE, &[&organisation, &domain]).await.unwrap();
    }

    pub async fn our_metadata(&self, organisation: Uuid) -> String {
        let answer = self.service.client().get(&format!("/auth/saml/{organisation}/metadata")).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/samlmetadata+xml"));
        answer.text()
    }

    pub async fn begin(&self, organisation: Uuid) -> Begun {
        self.begin_for(organisation, "").await
    }

    async fn begin_for(&self, organisation: Uuid, query: &str) -> Begun {
        let answer = self.service.client().get(&format!("/auth/saml/{organisation}/login{query}")).await;
        assert_eq!(answer.status, 303, "{}", answer.text());
        let location = answer.header("location").to_owned();
        assert!(location.starts_with("https://idp.test/sso?SAMLRequest="), "{location}");
        self.begun(organisation, &answer, &request_in_redirect(&location)).await
    }

    async fn begun(&self, organisation: Uuid, answer: &Answer, request: &str) -> Begun {
        let metadata = self.our_metadata(organisation).await;
        let facts = Facts {
            request_id: between(request, " ID=\"", "\"").to_owned(),
            assertion_id: format!("_{}", Uuid::new_v4()),
            consumer_url: between(request, "AssertionConsumerServiceURL=\"", "\"").to_owned(),
            audience: between(&metadata, "entityID=\"", "\"").to_owned(),
            ..Facts::usual(&self.idp)
        };
        let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
        assert!(cookie.starts_with("gateway_login="), "{cookie}");
        Begun { cookie, facts }
    }

    pub async fn post(&self, organisation: Uuid, cookie: &str, xml: &str) -> Answer {
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("SAMLResponse", &STANDARD.encode(xml))
            .finish();
        let request = self.service.client().request(Method::POST, &format!("/auth/saml/{organisation}/acs"));
        let request = request.header("content-type", "application/x-www-form-urlencoded").header("cookie", cookie);
        whole(request.body(form)).await
    }

    async fn people(&self, email: &str) -> i64 {
        const COUNT: &str = "SELECT count(*) FROM users WHERE email = $1 AND status = 'active'";
        self.service.database.client().await.query_one(COUNT, &[&email]).await.unwrap().get(0)
    }
}

pub fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    text.split_once(start).unwrap_or_else(|| panic!("{start} in {text}")).1.split_once(end).unwrap().0
}

fn request_in_redirect(location: &str) -> String {
    let query = location.split_once('?').unwrap().1;
    let packed = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "SAMLRequest").unwrap().1;
    let mut request = String::new();
    DeflateDecoder::new(&*STANDARD.decode(packed.as_bytes()).unwrap()).read_to_string(&mut request).unwrap();
    request
}

fn session_cookie(answer: &Answer) -> String {
    let cookies = answer.headers.get_all("set-cookie").iter().map(|line| line.to_str().unwrap());
    let mut sessions = cookies.filter(|line| line.starts_with("gateway_session="));
    let session = sessions.next_back().expect("a session");
    session.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn somebody_of_a_proved_domain_signs_in_and_is_provisioned() {
    let site = Site::start().await;
    let home = site.service.home.organisation_id;
    let begun = site.begin(home).await;
    let answer = site.post(home, &begun.cookie, &site.idp.answer(&begun.facts)).await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/v1/auth/session"), "{}", answer.text());
    assert_eq!(site.people("ada@acme.test").await, 1);
    let browser = site.service.client().with("cookie", session_cookie(&answer));
    let session = browser.get("/auth/session").await;
    assert_eq!((session.status.as_u16(), session.json().to_string().contains("ada@acme.test")), (200, true));
    // A second time, as the same person.
    let begun = site.begin(home).await;
    let answer = site.post(home, &begun.cookie, &site.idp.answer(&begun.facts)).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert_eq!(site.people("ada@acme.test").await, 1);
    let trail = site.service.trail(home).await;
    let logins = trail.iter().filter(|row| row["resource_type"] == "sessions" && row["action"] == "create");
    assert_eq!(logins.count(), 2);
}

#[tokio::test]
async fn requests_are_signed_and_assertions_encrypted_if_the_organisation_wants_it() {
    let site = Site::start().await;
    let home = site.service.home.organisation_id;
    let more = json!({ "sign_requests": true, "want_encrypted": true, "binding": "post" });
    site.trust(&site.service.home, &site.idp, more).await;
    let page = site.service.client().get(&format!("/auth/saml/{home}/login")).await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.header("content-security-policy").contains("script-src 'sha256-"));
    let page_text = page.text();
    assert!(page_text.contains("action=\"https://idp.test/post\""), "{page_text}");
    let request = STANDARD.decode(between(&page_text, "value=\"", "\"")).unwrap();
    let request = String::from_utf8(request).unwrap();
    assert!(request.contains("<ds:SignatureValue>"), "{request}");
    let begun = site.begun(home, &page, &request).await;
    let plain = site.post(home, &begun.cookie, &site.idp.answer(&begun.facts)).await;
    assert_eq!(plain.status, 403, "{}", plain.text());
    let page = site.service.client().get(&format!("/auth/saml/{home}/login")).await;
    let request = STANDARD.decode(between(&page.text(), "value=\"", "\"")).unwrap();
    let begun = site.begun(home, &page, &String::from_utf8(request).unwrap()).await;
    let metadata = site.our_metadata(home).await;
    let certificate = between(&metadata, "<ds:X509Certificate>", "</ds:X509Certificate>");
    let signed = site.idp.sign(&site.idp.assertion(&begun.facts));
    let inside = hidden(&signed, &key_of(certificate).unwrap(), Content::Gcm, Padding::PKCS1_OAEP);
    let answer = site.post(home, &begun.cookie, &site.idp.response(&begun.facts, &inside)).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
}

#[tokio::test]
async fn several_certificates_are_believed_while_one_replaces_the_other() {
    let site = Site::start().await;
    let home = site.service.home.organisation_id;
    let next = Idp::new();
    let fields = json!({ "saml": {
        "entity_id": site.idp.entity_id, "sso_url": "https://idp.test/sso",
        "certificates": [site.idp.certificate, next.certificate],
    } });
    let set = site.service.administrator().put(AUTH, &fields).await;
    assert_eq!(set.status, 200, "{}", set.text());
    for idp in [&site.idp, &next] {
        let begun = site.begin(home).await;
        let answer = site.post(home, &begun.cookie, &idp.answer(&begun.facts)).await;
        assert_eq!(answer.status, 303, "{}", answer.text());
    }
    let stranger = Idp::new();
    let begun = site.begin(home).await;
    let answer = site.post(home, &begun.cookie, &stranger.answer(&begun.facts)).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
}

#[tokio::test]
async fn replayed_assertion_an_answer_and_an_assertion_are_taken_once() {
    let site = Site::start().await;
    let home = site.service.home.organisation_id;
    let begun = site.begin(home).await;
    let xml = site.idp.answer(&begun.facts);
    assert_eq!(site.post(home, &begun.cookie, &xml).await.status, 303);
    assert_eq!(site.post(home, &begun.cookie, &xml).await.status, 403, "the request was answered");
    let again = site.begin(home).await;
    let facts = Facts { assertion_id: begun.facts.assertion_id, ..again.facts };
    let answer = site.post(home, &again.cookie, &site.idp.answer(&facts)).await;
    assert!(answer.text().contains("used before"), "{}", answer.text());
    let trail = site.service.trail(home).await;
    let refused = trail.iter().filter(|row| row["resource_type"] == "sessions" && row["response_status_code"] == 403);
    assert_eq!(refused.count(), 2, "both are in the trail");
}

#[tokio::test]
async fn login_csrf_an_answer_in_another_browser_or_to_no_request_is_refused() {
    let site = Site::start().await;
    let home = site.service.home.organisation_id;
    let (mine, theirs) = (site.begin(home).await, site.begin(home).await);
    let xml = site.idp.answer(&mine.facts);
    for cookie in ["", "gateway_login=planted", &theirs.cookie] {
        assert_eq!(site.post(home, cookie, &xml).await.status, 403, "{cookie}");
    }
    let unsolicited = xml.replacen(&format!("InResponseTo=\"{}\" ", mine.facts.request_id), "", 1);
    let answer = site.post(home, &theirs.cookie, &unsolicited).await;
    assert!(answer.text().contains("answers no request"), "{}", answer.text());
    assert_eq!(site.people("ada@acme.test").await, 0);
}

#[tokio::test]
async fn walk_one_organisations_identity_provider_signs_nobody_in_to_another() {
    let site = Site::start().await;
    let (home, other) = (site.service.home.organisation_id, site.service.organisation().await);
    let evil = Idp::new();
    site.trust(&other, &evil, json!({})).await;
    let theirs = other.organisation_id;
    // Signed by theirs, for a login of ours.
    let begun = site.begin(home).await;
    assert_eq!(site.post(home, &begun.cookie, &evil.answer(&begun.facts)).await.status, 403);
    // A login of theirs, posted to ours.
    let begun = site.begin(theirs).await;
    let answer = site.post(home, &begun.cookie, &evil.answer(&begun.facts)).await;
    assert!(answer.text().contains("another organisation"), "{}", answer.text());
    // A login of theirs about one of our people: a person of theirs at most, and not even that.
    let begun = site.begin(theirs).await;
    let answer = site.post(theirs, &begun.cookie, &evil.answer(&begun.facts)).await;
    assert_eq!(answer.status, 403, "acme.test is proved by another: {}", answer.text());
    // Both trust one identity provider, whose metadata anybody may have: what it says to one is not said to the other.
    site.trust(&other, &site.idp, json!({})).await;
    let begun = site.begin(theirs).await;
    let answer = site.post(theirs, &begun.cookie, &site.idp.answer(&begun.facts)).await;
    assert_eq!(answer.status, 403, "acme.test is proved by another: {}", answer.text());
    for (is_sent_here, words) in [(false, "another address"), (true, "another audience")] {
        let (ours, asked) = (site.begin(home).await, site.begin(theirs).await);
        let consumer_url = if is_sent_here { ours.facts.consumer_url } else { asked.facts.consumer_url.clone() };
        let facts = Facts { request_id: ours.facts.request_id, consumer_url, ..asked.facts };
        let answer = site.post(home, &ours.cookie, &site.idp.answer(&facts)).await;
        assert!(answer.status == 403 && answer.text().contains(words), "{}", answer.text());
    }
    assert_eq!(site.people("ada@acme.test").await, 0);
    assert_eq!(site.service.client().get(&format!("/auth/saml/{}/login", Uuid::new_v4())).await.status, 404);
}

#[tokio::test]
async fn nobody_comes_in_by_an_address_that_nobody_knows() {
    let site = Site::start().await;
    let home = site.service.home.organisation_id;
    let mut begun = site.begin(home).await;
    begun.facts.email = "eve@elsewhere.test".into();
    let answer = site.post(home, &begun.cookie, &site.idp.answer(&begun.facts)).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert_eq!(site.people("eve@elsewhere.test").await, 0);
    let trail = site.service.trail(home).await;
    assert!(trail.iter().any(|row| row["resource_type"] == "sessions" && row["response_status_code"] == 403));
}

/// Whatever token the browser brings, the session gets one that nobody has seen.
#[tokio::test]
async fn session_fixation_a_planted_session_is_not_the_one_that_begins() {
    let site = Site::start().await;
    let home = site.service.home.organisation_id;
    let begun = site.begin(home).await;
    let cookies = format!("{}; gateway_session=planted", begun.cookie);
    let answer = site.post(home, &cookies, &site.idp.answer(&begun.facts)).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert_ne!(session_cookie(&answer), "gateway_session=planted");
    assert_eq!(site.service.client().with("cookie", "gateway_session=planted").get("/auth/session").await.status, 401);
}

#[tokio::test]
async fn open_redirect_a_login_leads_nowhere_else_and_messages_are_bounded() {
    let site = Site::start().await;
    let home = site.service.home.organisation_id;
    for place in ["https://evil.test", "//evil.test", "/\\evil.test"] {
        let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("return_to", place).finish();
        let answer = site.service.client().get(&format!("/auth/saml/{home}/login?{query}")).await;
        assert_eq!(answer.status, 400, "{place}");
    }
    let begun = site.begin(home).await;
    let long = format!("<a>{}</a>", "x".repeat(250 << 10));
    assert_eq!(site.post(home, &begun.cookie, &long).await.status, 403, "beyond what is decoded");
    let longer = "x".repeat(512 << 10);
    assert_eq!(site.post(home, &begun.cookie, &longer).await.status, 413);
    let answer = site.service.client().post(&format!("/auth/saml/{home}/acs"), &json!({ "SAMLResponse": 1 })).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
}

#[tokio::test]
async fn external_entities_and_xml_bombs_are_refused_in_answers_and_in_metadata() {
    let site = Site::start().await;
    let home = site.service.home.organisation_id;
    for entity in ["SYSTEM \"file:///etc/passwd\"", "\"&x;&x;&x;&x;&x;&x;&x;&x;&x;&x;\""] {
        let head = format!("<!DOCTYPE r [<!ENTITY x {entity}>]>");
        let begun = site.begin(home).await;
        let xml = site.idp.answer(&begun.facts).replace("ada@acme.test", "&x;");
        let answer = site.post(home, &begun.cookie, &format!("{head}{xml}")).await;
        assert_eq!(answer.status, 403, "{}", answer.text());
        assert!(answer.text().contains("document type or entities"), "{}", answer.text());
        let metadata = format!("{head}{}", site.idp.metadata());
        let set = site.service.administrator().put(AUTH, &json!({ "saml": { "metadata_xml": metadata } })).await;
        assert_eq!(set.status, 400, "{}", set.text());
    }
}

#[tokio::test]
async fn the_usual_address_to_sign_in_leads_to_saml_where_that_is_set_up() {
    let site = Site::start().await;
    let home = site.service.home.organisation_id;
    let answer = site.service.client().get("/auth/login?email=ada@acme.test&return_to=/console").await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert_eq!(answer.header("location"), format!("/v1/auth/saml/{home}/login?return_to=%2Fconsole"));
    let nobodys = site.service.client().get("/auth/login?email=ada@elsewhere.test").await;
    assert_eq!(nobodys.status, 404, "{}", nobodys.text());
}

#[tokio::test]
async fn a_browser_that_is_refused_is_led_where_it_wanted_with_the_reason() {
    let site = Site::start().await;
    let home = site.service.home.organisation_id;
    let begun = site.begin_for(home, "?return_to=/console%3Ftab%3Dkeys").await;
    let late = Facts { audience: "https://other.test".into(), ..begun.facts };
    let answer = site.post(home, &begun.cookie, &site.idp.answer(&late)).await;
    let led = (answer.status.as_u16(), answer.header("location"));
    assert_eq!(led, (303, "/console?tab=keys&error=sign_in_refused"), "{}", answer.text());
    assert!(!answer.headers.contains_key("set-cookie"), "{:?}", answer.headers);
    let other = site.service.organisation().await.organisation_id;
    let nowhere = site.service.client().get(&format!("/auth/saml/{other}/login?return_to=/console")).await;
    assert_eq!((nowhere.status.as_u16(), nowhere.header("location")), (303, "/console?error=sign_in_refused"));
    assert_eq!(site.service.client().get(&format!("/auth/saml/{other}/login")).await.status, 404);
}
