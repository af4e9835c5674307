//! Who waits, who asks and who is told what, against a login service that answers when the test says so.

use super::*;
use futures::future::join_all;
use shared::secrets::cloud::{AzureIdentity, Endpoints, Http, OwnIdentity, Request, Response, Sending};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;

const TOKEN: &str = r#"{"access_token":"t1","expires_in":3600}"#;

/// Answers once for each permit.
#[derive(Clone)]
struct Service(Arc<Inner>);

struct Inner {
    asked: AtomicUsize,
    permits: Semaphore,
    answer: Mutex<(u16, &'static str)>,
}

impl Http for Service {
    fn send(&self, _: Request) -> Sending {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        let inner = self.0.clone();
        Box::pin(async move {
            inner.permits.acquire().await.unwrap().forget();
            let (status, body) = *inner.answer.lock();
            Ok(Response { status, body: body.as_bytes().to_vec() })
        })
    }
}

impl Service {
    fn asked(&self) -> usize {
        self.0.asked.load(Ordering::SeqCst)
    }

    async fn until_asked(&self, times: usize) {
        while self.asked() < times {
            tokio::task::yield_now().await;
        }
    }
}

fn service(limit: Duration) -> (Service, Arc<TokenCache>) {
    let inner = Inner { asked: AtomicUsize::new(0), permits: Semaphore::new(0), answer: Mutex::new((200, TOKEN)) };
    let service = Service(Arc::new(inner));
    let login = CloudLogin::new(service.clone(), OwnIdentity::none(), Endpoints::default());
    (service, Arc::new(TokenCache::new(login, limit)))
}

const PATIENT: Duration = Duration::from_secs(600);

fn request(client: &str) -> TokenRequest {
    let identity =
        AzureIdentity::Client { tenant: "t".into(), client: client.into(), secret: "s3cret".to_owned().into() };
    TokenRequest::Azure { identity, scope: "s".into() }
}

fn header(token: &GrantedToken) -> &str {
    match token {
        GrantedToken::Bearer(value) => value.to_str().unwrap(),
        _ => panic!("no bearer token"),
    }
}

#[tokio::test]
async fn of_many_who_come_first_one_asks_and_all_get_its_answer() {
    let (service, cache) = service(PATIENT);
    let request = request("c");
    let waiting = join_all((0..50).map(|_| cache.token(&request)));
    let answering = async {
        service.until_asked(1).await;
        service.0.permits.add_permits(1);
    };
    let (tokens, ()) = tokio::join!(waiting, answering);
    assert!(tokens.iter().all(|token| header(token.as_ref().ok().unwrap()) == "Bearer t1"));
    assert_eq!(service.asked(), 1);
    assert!(cache.token(&request).now_or_never().unwrap().is_ok(), "it is kept");
    assert_eq!(service.asked(), 1);
}

#[tokio::test]
async fn a_fetch_outlives_the_request_that_began_it() {
    let (service, cache) = service(PATIENT);
    let request = request("c");
    assert!(cache.token(&request).now_or_never().is_none(), "its client goes away");
    service.until_asked(1).await;
    service.0.permits.add_permits(1);
    assert!(cache.token(&request).await.is_ok());
    assert_eq!(service.asked(), 1);
}

#[tokio::test]
async fn a_good_token_is_given_at_once_whatever_its_renewal_does() {
    let (service, cache) = service(PATIENT);
    let request = request("c");
    service.0.permits.add_permits(1);
    cache.token(&request).await.map(|_| ()).unwrap();
    cache.renew(Instant::now() + Duration::from_secs(2000));
    assert_eq!(service.asked(), 1, "it is not time yet");
    for _ in 0..3 {
        cache.renew(Instant::now() + Duration::from_secs(3000));
    }
    service.until_asked(2).await;
    for _ in 0..20 {
        assert!(cache.token(&request).now_or_never().unwrap().is_ok(), "the renewal hangs");
    }
    assert_eq!(service.asked(), 2, "one renewal at a time");
    *service.0.answer.lock() = (503, "");
    service.0.permits.add_permits(1);
    let settled = async || {
        while cache.entry(&request).state.lock().fetching.is_some() {
            tokio::task::yield_now().await;
        }
    };
    settled().await;
    assert!(cache.token(&request).now_or_never().unwrap().is_ok(), "the service is down");
    *service.0.answer.lock() = (200, r#"{"access_token":"t2","expires_in":3600}"#);
    service.0.permits.add_permits(1);
    cache.renew(Instant::now() + Duration::from_secs(3100));
    service.until_asked(3).await;
    settled().await;
    assert_eq!(header(&cache.token(&request).await.ok().unwrap()), "Bearer t2");
}

#[tokio::test]
async fn after_a_failure_nobody_waits_again() {
    for (answer, expected) in [
        ((503, ""), SigningError::Login(LoginError::Away("status 503".into()))),
        ((401, r#"{"error":"invalid_client"}"#), LoginError::Denied("status 401, invalid_client".into()).into()),
        ((200, "<html>s3cret"), LoginError::Malformed("no token").into()),
    ] {
        let (service, cache) = service(PATIENT);
        let request = request("c");
        *service.0.answer.lock() = answer;
        service.0.permits.add_permits(1);
        assert_eq!(cache.token(&request).await.err().unwrap(), expected);
        for _ in 0..20 {
            assert_eq!(cache.token(&request).now_or_never().unwrap().err().unwrap(), expected);
        }
        assert_eq!(service.asked(), 1);
    }
}

#[tokio::test]
async fn a_service_that_never_answers_is_waited_for_once() {
    let (service, cache) = service(Duration::from_millis(20));
    let request = request("c");
    let slow = SigningError::Slow(20);
    assert_eq!(cache.token(&request).await.err().unwrap(), slow);
    assert_eq!(cache.token(&request).now_or_never().unwrap().err().unwrap(), slow);
    assert_eq!(service.asked(), 1);
}

#[tokio::test]
async fn no_more_than_so_many_are_kept_and_those_without_a_token_go_first() {
    let (service, mut cache) = service(PATIENT);
    Arc::get_mut(&mut cache).unwrap().most = 32;
    service.0.permits.add_permits(1);
    cache.token(&request("good")).await.map(|_| ()).unwrap();
    for n in 0..200 {
        cache.entry(&request(&n.to_string()));
        assert!(cache.entries.lock().len() <= 32);
    }
    assert!(cache.token(&request("good")).now_or_never().unwrap().is_ok());
    cache.renew(Instant::now() + UNUSED);
    assert!(cache.entries.lock().is_empty(), "what nobody uses is dropped");
}
