//! Strangers in numbers at somebody else's sign-in: they are counted by their network, push out none but themselves, and
//! leave a bounded number of rows in the trail.

use super::{Browser, begun, person, started, trail};
use serde_json::json;
use std::sync::atomic::Ordering::Relaxed;

/// As if the browser were at this address; the test's own is trusted to say so.
fn at(browser: &Browser, address: &str) -> Browser {
    browser.with("x-forwarded-for", address)
}

#[tokio::test]
async fn attempts_count_by_network_and_not_by_address() {
    let (service, _provider) = started(&[]).await;
    let path = format!("/auth/login?organisation={}", service.home.organisation_id);
    let tries = async |address: &str| at(&Browser::new(&service), address).get(&path).await.status.as_u16();
    // More than one minute takes, should one end meanwhile.
    let mut is_refused = false;
    for n in 0..200 {
        is_refused |= tries(&format!("2001:db8:1:2::{n:x}")).await == 429;
    }
    assert!(is_refused);
    assert_eq!(tries("2001:db8:1:3::1").await, 303, "the neighbours");
    assert_eq!(tries("192.0.2.1").await, 303);
}

#[tokio::test]
async fn a_flood_pushes_out_only_itself() {
    let (service, provider) = started(&[]).await;
    let mut honest = at(&Browser::new(&service), "203.0.113.5");
    let location = begun(&service, &mut honest).await;
    // 200 networks have 50 logins each under way: as many as there may be.
    let organisation = service.home.organisation_id;
    service
        .sql(&format!(
            "INSERT INTO login_attempts (state_hash, browser_hash, organisation_id, provider, issuer, return_to, network, expires_at)
             SELECT sha256(n::text::bytea), sha256('b'), '{organisation}', 'oidc', 'https://id.test', '/', '10.0.0.' || n % 200,
                    now() + interval '1 minute'
             FROM generate_series(1, 9999) n"
        ))
        .await;
    let mut later = at(&Browser::new(&service), "198.51.100.7");
    let second = begun(&service, &mut later).await;
    const COUNT: &str = "SELECT count(*), count(*) FILTER (WHERE network NOT LIKE '10.%') FROM login_attempts";
    let row = service.database.client().await.query_one(COUNT, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (10_000, 2));
    for (browser, location, name) in [(&mut honest, location, "ada"), (&mut later, second, "bob")] {
        let callback = provider.authorize(&location, person(name, &format!("{name}@home.test")));
        assert_eq!(browser.follow(&callback).await.status, 303, "{name}");
    }
    // One network keeps a hundred, the newest.
    service.sql("UPDATE login_attempts SET network = '10.0.0.1'").await;
    begun(&service, &mut at(&Browser::new(&service), "10.0.0.1")).await;
    let row = service.database.client().await.query_one(COUNT, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 100);
}

/// Each login that a stranger begins would otherwise be a call to somebody else.
#[tokio::test]
async fn a_provider_that_is_of_no_use_is_not_asked_for_every_stranger() {
    let (service, provider) = started(&[]).await;
    provider.site.habits.lock().unwrap().says_it_is = Some("https://id.example.com".into());
    let path = format!("/auth/login?organisation={}", service.home.organisation_id);
    for n in 0..20 {
        let mut stranger = at(&Browser::new(&service), &format!("198.51.100.{n}"));
        assert_eq!(stranger.get(&path).await.status, 403);
    }
    assert_eq!(provider.site.discovered.load(Relaxed), 1);
}

#[tokio::test]
async fn answers_to_nothing_fill_nobodys_trail() {
    let (service, provider) = started(&[]).await;
    let home = service.home.organisation_id;
    let long = "x".repeat(20_000);
    for n in 0..120 {
        let mut stranger = at(&Browser::new(&service), &format!("198.51.100.{n}"));
        let answer = stranger.get(&format!("/auth/callback/{home}?state=none&code=1&more={long}")).await;
        assert_eq!(answer.status, 403, "{}", answer.text());
    }
    let rows = trail(&service).await;
    assert!((1..90).contains(&rows.len()), "{}", rows.len());
    assert!(rows.iter().all(|row| row.to_string().len() < 9000), "what a stranger sent is cut");
    // Who is no stranger is recorded all the same.
    let mut browser = Browser::new(&service);
    let location = begun(&service, &mut browser).await;
    assert_eq!(browser.follow(&provider.authorize(&location, person("ada", "ada@home.test"))).await.status, 303);
    assert_eq!(trail(&service).await.pop().unwrap()["after"]["email"], json!("ada@home.test"));
}
