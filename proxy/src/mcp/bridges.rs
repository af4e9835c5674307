//! Sessions with servers of the older transport: there a session is a connection, over which everything comes that the
//! server says, so some process has to hold it. These are the ones that this process holds. The id of a session names the
//! process that holds it and when it was opened: a request that was balanced to another process is refused with a sentence,
//! and a client whose process has gone begins anew.

use super::bridge_memory::{BridgeMemory, HeldBytes, SessionMemory};
use super::exchange::McpEndpoint;
use crate::runtime::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

/// Sessions of this process, shared out between tenants, and of one workspace.
pub(crate) const MAX_SESSIONS: usize = 2048;
const MAX_OF_WORKSPACE: usize = 128;
/// Requests of one session that wait for their answers.
const MAX_WAITING: usize = 64;
/// Messages that wait for a client which does not read; beyond it they are dropped.
const MAX_UNREAD: usize = 256;

/// The process of a younger session probably still runs, and the request was balanced to the wrong one; that of an older
/// session has probably gone.
const FRESH: TimeDelta = TimeDelta::seconds(60);

#[derive(Debug)]
pub struct Bridges {
    /// Names this process.
    holder: Uuid,
    open: Mutex<HashMap<Uuid, Arc<Bridge>>>,
    sessions: Arc<TenantShare>,
    memory: BridgeMemory,
}

impl Default for Bridges {
    fn default() -> Self {
        let rule = ShareRule { least: 1, workspace: MAX_OF_WORKSPACE, leaves_siblings: true, may_wait: false };
        let sessions = TenantShare::new(MAX_SESSIONS, rule);
        Self { holder: Uuid::new_v4(), open: Mutex::default(), sessions, memory: BridgeMemory::default() }
    }
}

/// Where a session is held.
#[derive(Debug)]
pub enum HeldSession {
    Here(Arc<Bridge>),
    /// Probably by another process that runs.
    Elsewhere,
    Gone,
}

impl PartialEq for HeldSession {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Here(one), Self::Here(other)) => one.id == other.id,
            (Self::Elsewhere, Self::Elsewhere) | (Self::Gone, Self::Gone) => true,
            _ => false,
        }
    }
}

/// One session.
#[derive(Debug)]
pub struct Bridge {
    pub id: Uuid,
    opened_at: DateTime<Utc>,
    /// Its place among the sessions, given back when it closes.
    place: Mutex<Option<Holding>>,
    /// Where messages are sent to.
    pub endpoint: McpEndpoint,
    /// For what the server said and nobody has read.
    pub memory: SessionMemory,
    hearers: Mutex<Hearers>,
    last_used: Mutex<Instant>,
    /// Told when the session is over.
    pub ended: Notify,
}

#[derive(Debug, Default)]
struct Hearers {
    /// By the ids of requests.
    waiting: Vec<(Value, mpsc::Sender<HeldMessage>)>,
    listener: Option<mpsc::Sender<HeldMessage>>,
    is_over: bool,
}

/// A message of the server's on its way to the client.
#[derive(Debug)]
pub struct HeldMessage {
    pub bytes: Bytes,
    _held: HeldBytes,
}

impl Bridges {
    /// None when too many are open.
    pub fn open(&self, tenant: Tenant, endpoint: McpEndpoint) -> Option<Arc<Bridge>> {
        let place = self.sessions.hold(tenant, 1).ok()?;
        let bridge = Arc::new(Bridge {
            id: Uuid::new_v4(),
            opened_at: Utc::now(),
            place: Mutex::new(Some(place)),
            endpoint,
            memory: self.memory.session(tenant),
            hearers: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
            ended: Notify::new(),
        });
        self.open.lock().insert(bridge.id, bridge.clone());
        Some(bridge)
    }

    /// What a client repeats, once it is sealed: the session, the process that holds it, and since when.
    pub fn session_id(&self, bridge: &Bridge) -> Vec<u8> {
        let since = bridge.opened_at.timestamp().to_be_bytes();
        [&bridge.id.as_bytes()[..], self.holder.as_bytes(), &since].concat()
    }

    pub fn find(&self, session: &[u8], now: DateTime<Utc>) -> HeldSession {
        let Some((id, rest)) = session.split_at_checked(16) else { return HeldSession::Gone };
        let Some((holder, since)) = rest.split_at_checked(16) else { return HeldSession::Gone };
        if holder != self.holder.as_bytes() {
            let since = <[u8; 8]>::try_from(since).ok().map(i64::from_be_bytes);
            let since = since.and_then(|since| DateTime::from_timestamp(since, 0));
            let is_fresh = since.is_some_and(|since| now - since < FRESH);
            return if is_fresh { HeldSession::Elsewhere } else { HeldSession::Gone };
        }
        let found = Uuid::from_slice(id).ok().and_then(|id| self.open.lock().get(&id).cloned());
        let Some(bridge) = found else { return HeldSession::Gone };
        *bridge.last_used.lock() = Instant::now();
        HeldSession::Here(bridge)
    }

    /// Whoever waits hears nothing more.
    pub fn close(&self, bridge: &Bridge) {
        self.open.lock().remove(&bridge.id);
        *bridge.place.lock() = None;
        let mut hearers = bridge.hearers.lock();
        *hearers = Hearers { is_over: true, ..Hearers::default() };
        bridge.ended.notify_one();
    }
}

impl Bridge {
    /// A session with a listener is in use, however silent it is.
    pub fn is_idle(&self, most: Duration) -> bool {
        let has_listener = self.hearers.lock().listener.as_ref().is_some_and(|listener| !listener.is_closed());
        !has_listener && self.last_used.lock().elapsed() >= most
    }

    /// Hears the answer to a request. None when too many wait, or one of the same id does.
    pub fn await_answer(&self, id: &str) -> Option<mpsc::Receiver<HeldMessage>> {
        let id: Value = serde_json::from_str(id).ok()?;
        let mut hearers = self.hearers.lock();
        hearers.waiting.retain(|(_, sender)| !sender.is_closed());
        let is_taken = hearers.waiting.iter().any(|(taken, _)| *taken == id);
        if is_taken || hearers.is_over || hearers.waiting.len() >= MAX_WAITING {
            return None;
        }
        let (sender, receiver) = mpsc::channel(MAX_UNREAD);
        hearers.waiting.push((id, sender));
        Some(receiver)
    }

    /// Hears what answers nothing. Whoever listened before does no more.
    pub fn listen(&self) -> mpsc::Receiver<HeldMessage> {
        let (sender, receiver) = mpsc::channel(MAX_UNREAD);
        let mut hearers = self.hearers.lock();
        hearers.listener = Some(sender).filter(|_| !hearers.is_over);
        receiver
    }

    /// A message of the server's goes to whoever waits for it: an answer to its request, anything else to the listener, or
    /// else to the request that came last. One that there is no room for is dropped; a request whose answer it would have
    /// been hears that there is none.
    pub fn dispatch(&self, message: &Bytes) {
        let Ok(parsed) = serde_json::from_slice::<Value>(message) else { return };
        let held = self.memory.hold(message.len()).map(|held| HeldMessage { bytes: message.clone(), _held: held });
        let mut hearers = self.hearers.lock();
        hearers.waiting.retain(|(_, sender)| !sender.is_closed());
        let answered = parsed.get("id").filter(|_| parsed.get("method").is_none());
        if let Some(place) = answered.and_then(|id| hearers.waiting.iter().position(|(waiting, _)| waiting == id)) {
            let (_, sender) = hearers.waiting.remove(place);
            let _ = held.map(|held| sender.try_send(held));
            return;
        }
        let listener = hearers.listener.as_ref().filter(|listener| !listener.is_closed());
        let hearer = listener.or_else(|| hearers.waiting.last().map(|(_, sender)| sender));
        if let (Some(hearer), Some(held)) = (hearer, held) {
            let _ = hearer.try_send(held);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_ANSWER;
    use super::*;
    use crate::net::dial::lab;

    fn endpoint() -> McpEndpoint {
        McpEndpoint::parse(&lab::dialer(), "http://127.0.0.1:1/post").unwrap()
    }

    fn heard(receiver: &mut mpsc::Receiver<HeldMessage>) -> Option<Bytes> {
        receiver.try_recv().ok().map(|message| message.bytes)
    }

    #[test]
    fn answers_find_their_requests_and_the_rest_whoever_listens() {
        let bridges = Bridges::default();
        let bridge = bridges.open(Tenant::test(1, 1), endpoint()).unwrap();
        let mut one = bridge.await_answer("1").unwrap();
        let mut two = bridge.await_answer("\"a\"").unwrap();
        assert!(bridge.await_answer("1").is_none(), "the id is taken");
        let say = |text: &'static str| bridge.dispatch(&Bytes::from_static(text.as_bytes()));
        say(r#"{"method":"notifications/x"}"#);
        say(r#"{"id":1,"result":{}}"#);
        say(r#"{"id":1,"result":"nobody waits for it any more"}"#);
        assert_eq!(heard(&mut one).unwrap(), r#"{"id":1,"result":{}}"#);
        assert!(heard(&mut one).is_none());
        assert_eq!(heard(&mut two).unwrap(), r#"{"method":"notifications/x"}"#);
        let mut listener = bridge.listen();
        say(r#"{"id":7,"method":"sampling/createMessage"}"#);
        assert_eq!(heard(&mut listener).unwrap(), r#"{"id":7,"method":"sampling/createMessage"}"#);
        let session = bridges.session_id(&bridge);
        assert_eq!(bridges.find(&session, Utc::now()), HeldSession::Here(bridge.clone()));
        bridges.close(&bridge);
        assert_eq!(bridges.find(&session, Utc::now()), HeldSession::Gone);
        assert!(matches!(two.try_recv(), Ok(_) | Err(mpsc::error::TryRecvError::Disconnected)));
        assert!(bridge.await_answer("9").is_none());
    }

    #[test]
    fn a_session_of_another_process_is_distinguished_from_one_that_has_gone() {
        let (ours, others) = (Bridges::default(), Bridges::default());
        let bridge = others.open(Tenant::test(1, 1), endpoint()).unwrap();
        let session = others.session_id(&bridge);
        let now = Utc::now();
        assert_eq!(others.find(&session, now), HeldSession::Here(bridge.clone()));
        for (session, now, held) in [
            (&session[..], now, HeldSession::Elsewhere),
            (&session[..], now + FRESH * 2, HeldSession::Gone),
            (&session[..16], now, HeldSession::Gone),
            (&session[..20], now, HeldSession::Gone),
            (b"", now, HeldSession::Gone),
        ] {
            assert_eq!(ours.find(session, now), held);
        }
    }

    #[test]
    fn a_listener_keeps_a_session() {
        let bridges = Bridges::default();
        let bridge = bridges.open(Tenant::test(1, 1), endpoint()).unwrap();
        assert!(bridge.is_idle(Duration::ZERO));
        let listener = bridge.listen();
        assert!(!bridge.is_idle(Duration::ZERO));
        drop(listener);
        assert!(bridge.is_idle(Duration::ZERO));
    }

    #[test]
    fn no_organisation_shuts_the_others_out() {
        let (bridges, endpoint) = (Bridges::default(), endpoint());
        let open_all = |organisation: u128| {
            let own = (0..64).map(|workspace| Tenant::test(organisation, workspace));
            let own = own.flat_map(|tenant| std::iter::repeat_n(tenant, MAX_OF_WORKSPACE + 1));
            own.filter(|tenant| bridges.open(*tenant, endpoint.clone()).is_some()).count()
        };
        let of_one = (0..200).filter(|_| bridges.open(Tenant::test(9, 9), endpoint.clone()).is_some()).count();
        assert_eq!(of_one, MAX_OF_WORKSPACE);
        let [first, second] = [open_all(1), open_all(2)];
        assert!((900..=(MAX_SESSIONS - MAX_OF_WORKSPACE) / 2).contains(&first), "{first}");
        assert!((400..=first).contains(&second), "{second}");
        let bridge = bridges.open(Tenant::test(3, 3), endpoint.clone()).unwrap();
        bridges.close(&bridge);
        assert_eq!(bridges.sessions.used(), of_one + first + second);
    }

    #[test]
    fn what_is_not_read_is_bounded_in_bytes_and_a_dropped_answer_is_noticed() {
        let bridges = Bridges::default();
        let bridge = bridges.open(Tenant::test(1, 1), endpoint()).unwrap();
        let mut listener = bridge.listen();
        let mut waiting = bridge.await_answer("1").unwrap();
        let long = "x".repeat(MAX_ANSWER / 2);
        let notification = Bytes::from(format!(r#"{{"method":"notifications/x","params":"{long}"}}"#));
        for _ in 0..10 {
            bridge.dispatch(&notification);
        }
        bridge.dispatch(&Bytes::from(format!(r#"{{"id":1,"result":"{long}"}}"#)));
        assert!(matches!(waiting.try_recv(), Err(mpsc::error::TryRecvError::Disconnected)));
        assert_eq!(std::iter::from_fn(|| heard(&mut listener)).count(), 2);
        bridge.dispatch(&notification);
        assert!(heard(&mut listener).is_some(), "what was read makes room");
    }
}
