//! Mail domains: claimed by anybody, proved by who can write into their DNS, and then nobody else's.

use crate::scim::{TOKEN, person, provider};
use crate::service::Service;
use harness::{Client, Process};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UdpSocket;

const DOMAINS: &str = "/admin/domains";

/// A DNS server that has TXT records for every domain alike.
pub struct Dns {
    port: u16,
    records: Arc<Mutex<Vec<String>>>,
}

impl Dns {
    pub async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let records: Arc<Mutex<Vec<String>>> = Arc::default();
        let served = records.clone();
        tokio::spawn(async move {
            let mut buffer = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let texts = served.lock().unwrap().clone();
                socket.send_to(&answer(&buffer[..length], &texts), from).await.unwrap();
            }
        });
        Self { port, records }
    }

    pub fn flag(&self) -> String {
        format!("--dns-server=127.0.0.1:{}", self.port)
    }

    pub fn publish(&self, record: &str) {
        self.records.lock().unwrap().push(record.to_owned());
    }
}

fn answer(question: &[u8], texts: &[String]) -> Vec<u8> {
    let mut answer = question.to_vec();
    answer[2] |= 0x80;
    answer[7] = u8::try_from(texts.len()).unwrap();
    for text in texts {
        answer.extend_from_slice(&[0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60]);
        answer.extend_from_slice(&u16::try_from(text.len() + 1).unwrap().to_be_bytes());
        answer.push(u8::try_from(text.len()).unwrap());
        answer.extend_from_slice(text.as_bytes());
    }
    answer
}

async fn claimed(client: &Client, domain: &str) -> Value {
    let answer = client.post(DOMAINS, &json!({ "domain": domain })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn path(domain: &Value, more: &str) -> String {
    format!("{DOMAINS}/{}{more}", domain["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_domain_is_claimed_proved_and_given_up() {
    let dns = Dns::start().await;
    let service = Service::start_with(&[&dns.flag()]).await;
    let client = service.administrator();
    let made = claimed(&client, "Acme.test.").await;
    assert_eq!((&made["domain"], &made["status"]), (&json!("acme.test"), &json!("pending")));
    let record = made["dns_record"]["value"].as_str().unwrap();
    assert!(record.starts_with("portcullis-verification="), "{record}");
    assert_eq!(client.post(DOMAINS, &json!({ "domain": "acme.test" })).await.status, 409);
    dns.publish("v=spf1 -all");
    dns.publish(&record[..record.len() - 1]);
    let early = client.post(&path(&made, "/verify"), &json!({})).await;
    assert_eq!(early.status, 400, "{}", early.text());
    dns.publish(record);
    let proved = client.post(&path(&made, "/verify"), &json!({})).await;
    assert_eq!((proved.status.as_u16(), &proved.json()["status"]), (200, &json!("verified")), "{}", proved.text());
    assert_eq!(proved.json()["id"], made["id"]);
    let again = client.post(&path(&made, "/verify"), &json!({})).await.json();
    assert_eq!((&again["status"], &again["method"]), (&json!("verified"), &json!("dns")));
    let listed = client.get(DOMAINS).await.json();
    assert_eq!((&listed["total"], &listed["data"][0]["domain"]), (&json!(1), &json!("acme.test")));
    assert_eq!(client.delete(&path(&made, "")).await.status, 200);
    assert_eq!(client.get(DOMAINS).await.json()["total"], 0);
    for domain in ["acme", "a b.test", "-a.test", "", "https://acme.test"] {
        assert_eq!(client.post(DOMAINS, &json!({ "domain": domain })).await.status, 400, "{domain}");
    }
}

/// Domain take-over.
#[tokio::test]
async fn domain_take_over_a_proved_domain_cannot_be_had_by_another_organisation() {
    let dns = Dns::start().await;
    let service = Service::start_with(&[&dns.flag()]).await;
    let (owner, other) = (service.administrator(), service.organisation().await);
    let thief = service.client().with_key(&other.admin_key.key);
    let (mine, theirs) = (claimed(&owner, "acme.test").await, claimed(&thief, "acme.test").await);
    assert_ne!(mine["dns_record"], theirs["dns_record"]);
    dns.publish(mine["dns_record"]["value"].as_str().unwrap());
    assert_eq!(thief.post(&path(&theirs, "/verify"), &json!({})).await.status, 400, "the record is the owner's");
    assert_eq!(owner.post(&path(&mine, "/verify"), &json!({})).await.status, 200);
    // Even with a record of its own: whoever proved it first keeps it.
    dns.publish(theirs["dns_record"]["value"].as_str().unwrap());
    assert_eq!(thief.post(&path(&theirs, "/verify"), &json!({})).await.status, 409);
    for (path, what) in [(path(&mine, "/verify"), "verify"), (path(&mine, ""), "delete")] {
        let status = if what == "verify" {
            thief.post(&path, &json!({})).await.status
        } else {
            thief.delete(&path).await.status
        };
        assert_eq!(status, 404, "{what}");
    }
    let idp = provider(&service, &other, TOKEN).await;
    let refused = idp.post("/scim/Users", &person("ada")).await;
    assert_eq!(refused.status, 400, "acme.test is another organisation's: {}", refused.text());
}

#[tokio::test]
async fn scim_takes_people_of_proved_domains_once_there_are_any() {
    let dns = Dns::start().await;
    let service = Service::start_with(&[&dns.flag()]).await;
    let client = service.administrator();
    let idp = provider(&service, &service.home, TOKEN).await;
    let first = idp.post("/scim/Users", &person("ada")).await;
    assert_eq!(first.status, 201, "nobody has proved anything: {}", first.text());
    let made = claimed(&client, "other.test").await;
    dns.publish(made["dns_record"]["value"].as_str().unwrap());
    assert_eq!(client.post(&path(&made, "/verify"), &json!({})).await.status, 200);
    let refused = idp.post("/scim/Users", &person("bob")).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["scimType"]), (400, &json!("invalidValue")));
    let mut taken = person("bob");
    taken["userName"] = json!("bob@other.test");
    taken["emails"][0]["value"] = json!("bob@other.test");
    let taken = idp.post("/scim/Users", &taken).await;
    assert_eq!(taken.status, 201, "{}", taken.text());
}

#[tokio::test]
async fn a_dns_server_that_does_not_answer_is_said_so() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let flag = format!("--dns-server={}", silent.local_addr().unwrap());
    let service = Service::start_with(&[&flag]).await;
    let client = service.administrator();
    let made = claimed(&client, "acme.test").await;
    let answer = client.post(&path(&made, "/verify"), &json!({})).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("the DNS server did not answer"), "{}", answer.text());
}

/// Whether a command of `gateway-admin domains` succeeded, and what it said.
async fn operator(service: &Service, arguments: &[&str]) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let environment = [("DATABASE_URL".to_owned(), service.database.url())];
    let arguments = [&["domains"], arguments].concat();
    let mut process = Process::start("gateway-admin", &arguments, &environment, folder.path());
    let status = process.ended_within(Duration::from_secs(30)).await;
    (status.success(), process.log())
}

#[tokio::test]
async fn the_operator_vouches_for_a_domain_and_takes_it_away() {
    let service = Service::start().await;
    let (client, other) = (service.administrator(), service.organisation().await.organisation_id.to_string());
    let home = service.home.organisation_id.to_string();
    let made = claimed(&client, "acme.test").await;
    let verify = async |organisation: &str, domain: &str| {
        operator(&service, &["verify", "--organisation", organisation, "--domain", domain]).await
    };
    let (is_done, said) = verify(&home, "Acme.test").await;
    assert!(is_done, "{said}");
    let seen = client.get(DOMAINS).await.json();
    assert_eq!((&seen["data"][0]["id"], &seen["data"][0]["method"]), (&made["id"], &json!("operator")));
    let (is_done, said) = verify(&other, "acme.test").await;
    assert!(!is_done && said.contains("Another organisation"), "{said}");
    assert!(!verify(&uuid::Uuid::new_v4().to_string(), "other.test").await.0, "there is no such organisation");
    assert!(operator(&service, &["release", "--domain", "acme.test"]).await.0);
    assert!(verify(&other, "acme.test").await.0);
    assert_eq!(client.get(DOMAINS).await.json()["total"], 0);
    let trail = service.trail(service.home.organisation_id).await;
    let by_operator = trail.iter().filter(|row| row["user_type"] == "system" && row["resource_type"] == "organisation");
    assert_eq!(by_operator.count(), 2);
}
