//! Which connections are kept, for how long, and who gets them; over real sockets.

use super::*;
use crate::net::dial::lab::{End, Server, call, dialer, dialer_with, exchange, post, soon};
use crate::net::dial::transport::Transport;
use bytes::Bytes;
use tokio::net::TcpStream;

const AGE: Duration = Duration::from_secs(60);

async fn cork(server: &Server) -> Box<Cork> {
    Box::new(Cork::new(Transport::Plain(TcpStream::connect(server.address).await.unwrap())))
}

fn fd(cork: &Cork) -> i32 {
    pingora_core::protocols::UniqueID::id(cork)
}

#[tokio::test]
async fn the_connection_used_last_is_taken_first() {
    let server = Server::counting().await;
    let pool = ConnectionPool::new(4, AGE);
    let now = Instant::now();
    let mut put = Vec::new();
    for _ in 0..3 {
        let cork = cork(&server).await;
        put.push(fd(&cork));
        pool.put("a", cork, None, now);
    }
    assert_eq!(pool.counts().idle, 3);
    while let Some(expected) = put.pop() {
        assert_eq!(fd(&pool.take("a", now).unwrap()), expected);
    }
    assert!(pool.take("a", now).is_none());
    assert_eq!(pool.counts().idle, 0);
}

#[tokio::test]
async fn beyond_the_limit_the_oldest_goes() {
    let server = Server::counting().await;
    let pool = ConnectionPool::new(2, AGE);
    let now = Instant::now();
    let mut put = Vec::new();
    for _ in 0..5 {
        let cork = cork(&server).await;
        put.push(fd(&cork));
        pool.put("a", cork, None, now);
        assert!(pool.counts().idle <= 2);
    }
    assert_eq!(fd(&pool.take("a", now).unwrap()), put[4]);
    assert_eq!(fd(&pool.take("a", now).unwrap()), put[3]);
    assert!(pool.take("a", now).is_none());
}

#[tokio::test]
async fn a_pool_of_none_keeps_none() {
    let server = Server::counting().await;
    let pool = ConnectionPool::new(0, AGE);
    pool.put("a", cork(&server).await, None, Instant::now());
    assert!(pool.take("a", Instant::now()).is_none());
    assert_eq!(pool.counts().idle, 0);
}

#[tokio::test]
async fn an_idle_connection_expires() {
    let server = Server::counting().await;
    let pool = ConnectionPool::new(4, AGE);
    let now = Instant::now();
    pool.put("a", cork(&server).await, None, now);
    pool.put("a", cork(&server).await, None, now + Duration::from_secs(1));
    assert!(pool.take("a", now + AGE).is_some(), "the second is a second younger");
    assert!(pool.take("a", now + AGE).is_none(), "the first is too old");
    assert_eq!(pool.counts().idle, 0);

    pool.put("a", cork(&server).await, None, now);
    assert!(pool.take("b", now + AGE - SWEEP_EVERY / 2).is_none(), "swept half a second before its end");
    assert!(pool.take("a", now + AGE).is_none(), "which does not lengthen its life");
}

#[tokio::test]
async fn what_the_server_promised_shortens_the_life() {
    let server = Server::counting().await;
    let pool = ConnectionPool::new(4, AGE);
    let now = Instant::now();
    pool.put("a", cork(&server).await, Some(Duration::from_secs(4)), now);
    assert!(pool.take("a", now + Duration::from_secs(4)).is_none());
    pool.put("a", cork(&server).await, Some(AGE * 10), now);
    assert!(pool.take("a", now + AGE).is_none(), "nor does it lengthen it");
    pool.put("a", cork(&server).await, Some(Duration::ZERO), now);
    assert!(pool.take("a", now).is_none());
}

#[tokio::test]
async fn touching_one_origin_buries_the_expired_of_all() {
    let server = Server::counting().await;
    let pool = ConnectionPool::new(4, AGE);
    let now = Instant::now();
    for origin in ["a", "b", "c"] {
        pool.put(origin, cork(&server).await, None, now);
    }
    assert_eq!(pool.counts().idle, 3);
    assert!(pool.take("d", now + AGE).is_none());
    assert_eq!(pool.counts().idle, 0);
}

#[tokio::test]
async fn a_connection_the_server_closed_is_not_handed_out() {
    let server = Server::start(|stream, number| async move {
        if number == 1 {
            return End::new(stream).gone().await;
        }
    })
    .await;
    let pool = ConnectionPool::new(4, AGE);
    let now = Instant::now();
    let open = cork(&server).await;
    let kept = fd(&open);
    pool.put("a", open, None, now);
    let mut closed = cork(&server).await;
    soon(async {
        while closed.is_alive() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    pool.put("a", closed, None, now);
    assert_eq!(fd(&pool.take("a", now).unwrap()), kept);
    assert_eq!((pool.counts().dead, pool.counts().reused), (1, 1));
}

#[tokio::test]
async fn origins_and_pools_do_not_share() {
    let server = Server::counting().await;
    let (one, other) = (ConnectionPool::new(4, AGE), ConnectionPool::new(4, AGE));
    let now = Instant::now();
    one.put("a", cork(&server).await, None, now);
    assert!(one.take("b", now).is_none());
    assert!(other.take("a", now).is_none());
    assert!(one.take("a", now).is_some());
}

#[tokio::test]
async fn requests_one_after_the_other_use_one_connection() {
    let server = Server::counting().await;
    let dialer = dialer();
    let origin = server.origin(&dialer);
    for _ in 0..5 {
        assert_eq!(call(&dialer, &origin).await, b"1");
    }
    assert_eq!(server.accepted(), 1);
    let counts = dialer.pool_counts();
    assert_eq!((counts.opened, counts.reused, counts.idle), (1, 4, 1));
}

#[tokio::test]
async fn a_fresh_connection_is_a_new_one() {
    let server = Server::counting().await;
    let dialer = dialer();
    let origin = server.origin(&dialer);
    assert_eq!(call(&dialer, &origin).await, b"1");
    let upstream = dialer.connect(&origin, true).await.unwrap();
    assert!(!upstream.is_reused());
    assert_eq!(exchange(upstream, b"hello").await.unwrap(), b"2");
}

/// Each connection whose server said this must not be used again.
#[tokio::test]
async fn an_unclean_end_is_not_pooled() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nkeep-alive: timeout=1\r\n\r\nok",
        "HTTP/1.1 200 OK\r\n\r\nok",
    ] {
        let server = Server::start(move |stream, _| async move {
            let mut end = End::new(stream);
            end.request().await.unwrap();
            end.say(answer).await;
            if answer.contains("length") {
                end.gone().await;
            }
        })
        .await;
        let dialer = dialer();
        assert_eq!(call(&dialer, &server.origin(&dialer)).await, b"ok");
        assert_eq!(dialer.idle_connections(), 0, "{answer:?}");
    }
}

#[tokio::test]
async fn an_answer_that_was_not_read_is_not_pooled() {
    let server = Server::start(|stream, _| async move {
        let mut end = End::new(stream);
        end.request().await.unwrap();
        end.say("HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nonly half").await;
        end.gone().await;
    })
    .await;
    let dialer = dialer();
    let origin = server.origin(&dialer);

    let unsent = dialer.connect(&origin, false).await.unwrap();
    unsent.release();
    assert_eq!(dialer.idle_connections(), 0);

    let mut unread = dialer.connect(&origin, false).await.unwrap();
    unread.send(post(), Bytes::from_static(b"x")).await.unwrap();
    unread.read_head().await.unwrap();
    unread.read_body().await.unwrap();
    assert!(!unread.is_done());
    unread.release();
    assert_eq!(dialer.idle_connections(), 0);
}

#[tokio::test]
async fn trust_is_a_wall_inside_the_pool() {
    let server = Server::counting().await;
    let dialer = dialer();
    let trusted = server.origin(&dialer);
    assert_eq!(call(&dialer, &trusted).await, b"1");
    // The same place without trust, as if a caller had named it: it may not ride on the operator's connection.
    let mut public = (*trusted).clone();
    public.set_trusted(false);
    let refused = dialer.connect(&Arc::new(public), false).await.err().unwrap();
    assert_eq!(refused.class(), crate::net::dial::Class::Blocked);
}

#[test]
fn a_pool_outlives_the_runtime_of_its_connections() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let dialer = dialer();
    for _ in 0..2 {
        runtime().block_on(async {
            let server = Server::counting().await;
            let origin = server.origin(&dialer);
            assert_eq!(call(&dialer, &origin).await, b"1");
            assert_eq!(call(&dialer, &origin).await, b"1");
        });
    }
    // The same address again: its pooled connection belongs to a runtime that is gone.
    let server = runtime();
    let (address, serving) = server.block_on(async {
        let server = Server::counting().await;
        (server.address, server)
    });
    let origin = dialer.custom_host(&format!("http://{address}")).unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || server.block_on(async { stopped.await.is_ok() }));
    runtime().block_on(async { assert_eq!(call(&dialer, &origin).await, b"1") });
    runtime().block_on(async { assert_eq!(call(&dialer, &origin).await, b"2") });
    assert_eq!(serving.accepted(), 2);
    stop.send(()).unwrap();
    assert!(thread.join().unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_that_wander_between_threads_lose_nothing() {
    let server = Server::counting().await;
    let dialer = Arc::new(dialer_with(|settings| settings.upstream_pool_max_idle = 100));
    let origin = server.origin(&dialer);
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let (dialer, origin) = (dialer.clone(), origin.clone());
            tokio::spawn(async move {
                for _ in 0..50 {
                    call(&dialer, &origin).await;
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        soon(task).await.unwrap();
    }
    let counts = dialer.pool_counts();
    assert_eq!(counts.opened + counts.reused, 1600);
    assert_eq!(counts.opened, server.accepted() as u64);
    assert_eq!(counts.idle + i64::try_from(counts.dead).unwrap(), i64::try_from(counts.opened).unwrap());
}
