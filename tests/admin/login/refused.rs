//! A browser whose sign-in is refused is led where it wanted to go, with the reason, and never to another host.

use super::{Browser, begun, person, set_up, started};
use serde_json::json;

#[tokio::test]
async fn a_browser_that_named_a_place_is_led_there_with_the_reason() {
    let (service, provider) = started(&[]).await;
    let organisation = service.home.organisation_id;
    let begin =
        format!("/auth/login?organisation={organisation}&return_to=/console%3Ftab%3Dkeys%26error%3Dforged%23top");
    let mut browser = Browser::new(&service);
    let location = browser.get(&begin).await.header("location").to_owned();
    // Somebody whose address the provider does not vouch for.
    let stranger = json!({ "sub": "eve", "email": "eve@elsewhere.test", "email_verified": true });
    let answer = browser.follow(&provider.authorize(&location, stranger)).await;
    let led = (answer.status.as_u16(), answer.header("location"));
    assert_eq!(led, (303, "/console?tab=keys&error=sign_in_refused#top"), "{}", answer.text());
    assert!(browser.session().is_none());
    let row = super::trail(&service).await.pop().unwrap();
    assert_eq!(row["response_status_code"], 403, "the trail has the reason: {row}");
    // The provider's own refusal.
    let location = browser.get(&begin).await.header("location").to_owned();
    let callback = provider.authorize(&location, person("ada", "ada@home.test"));
    let denied = callback.replace("code=", "error=access_denied&ignored=");
    let answer = browser.follow(&denied).await;
    assert_eq!(answer.header("location"), "/console?tab=keys&error=access_denied#top", "{}", answer.text());
    assert!(browser.session().is_none());
    // Without a place it is the answer of the interface.
    let location = begun(&service, &mut browser).await;
    let stranger = json!({ "sub": "eve", "email": "eve@elsewhere.test", "email_verified": true });
    assert_eq!(browser.follow(&provider.authorize(&location, stranger)).await.status, 403);
}

#[tokio::test]
async fn a_login_that_cannot_begin_says_so_at_the_place_and_leads_to_no_other_host() {
    let (service, _provider) = started(&[]).await;
    let client = service.client();
    let nobodys = "/auth/login?email=ada@nowhere.test";
    let answer = client.get(&format!("{nobodys}&return_to=/console")).await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/console?error=sign_in_refused"));
    assert_eq!(client.get(nobodys).await.status, 404);
    for evil in ["https://evil.test/", "//evil.test", "/\\evil.test", "%2F%2Fevil.test"] {
        let answer = client.get(&format!("{nobodys}&return_to={evil}")).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (400, ""), "{evil}: {}", answer.text());
    }
    let organisation = service.home.organisation_id;
    set_up(&service, json!({ "oidc": { "issuer": "http://127.0.0.1:1", "client_id": "c", "client_secret": "s" } }))
        .await;
    let away = client.get(&format!("/auth/login?organisation={organisation}&return_to=/console")).await;
    assert_eq!(
        (away.status.as_u16(), away.header("location")),
        (303, "/console?error=sign_in_refused"),
        "{}",
        away.text()
    );
}
