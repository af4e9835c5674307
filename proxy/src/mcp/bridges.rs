//! Sessions with servers of the older transport: there a session is a connection, over which everything comes that the
//! server says, so some process has to hold it. These are the ones that this process holds. A client whose session is held
//! by another process, or by none any more, begins anew.

use super::bridge_memory::{BridgeMemory, HeldBytes, SessionMemory};
use super::exchange::McpEndpoint;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

/// Sessions of this process, and of one workspace. No organisation may have more than are left for all others: one that is
/// alone may have half of them, two a third each.
const MOST: usize = 2048;
const MOST_OF_WORKSPACE: usize = 128;
/// Requests of one session that wait for their answers.
const MOST_WAITING: usize = 64;
/// Messages that wait for a client which does not read; beyond it they are dropped.
const MOST_UNREAD: usize = 256;

#[derive(Debug, Default)]
pub struct Bridges {
    open: Mutex<HashMap<Uuid, Arc<Bridge>>>,
    memory: Arc<BridgeMemory>,
}

/// Whose a session is.
#[derive(Debug, Clone, Copy)]
pub struct BridgeOwner {
    pub organisation: Uuid,
    pub workspace: Uuid,
}

/// One session.
#[derive(Debug)]
pub struct Bridge {
    pub id: Uuid,
    owner: BridgeOwner,
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
    pub fn open(&self, owner: BridgeOwner, endpoint: McpEndpoint) -> Option<Arc<Bridge>> {
        let mut all = self.open.lock();
        let of_workspace = all.values().filter(|bridge| bridge.owner.workspace == owner.workspace).count();
        let of_organisation = all.values().filter(|bridge| bridge.owner.organisation == owner.organisation).count();
        if of_workspace >= MOST_OF_WORKSPACE || of_organisation >= MOST.saturating_sub(all.len()) {
            return None;
        }
        let bridge = Arc::new(Bridge {
            id: Uuid::new_v4(),
            owner,
            endpoint,
            memory: SessionMemory::new(self.memory.clone(), owner.organisation),
            hearers: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
            ended: Notify::new(),
        });
        all.insert(bridge.id, bridge.clone());
        Some(bridge)
    }

    pub fn find(&self, id: &[u8]) -> Option<Arc<Bridge>> {
        let bridge = self.open.lock().get(&Uuid::from_slice(id).ok()?).cloned()?;
        *bridge.last_used.lock() = Instant::now();
        Some(bridge)
    }

    /// Whoever waits hears nothing more.
    pub fn close(&self, bridge: &Bridge) {
        self.open.lock().remove(&bridge.id);
        let mut hearers = bridge.hearers.lock();
        *hearers = Hearers { is_over: true, ..Hearers::default() };
        bridge.ended.notify_one();
    }
}

impl Bridge {
    pub fn is_idle(&self, most: Duration) -> bool {
        self.last_used.lock().elapsed() >= most
    }

    /// Hears the answer to a request. None when too many wait, or one of the same id does.
    pub fn await_answer(&self, id: &str) -> Option<mpsc::Receiver<HeldMessage>> {
        let id: Value = serde_json::from_str(id).ok()?;
        let mut hearers = self.hearers.lock();
        hearers.waiting.retain(|(_, sender)| !sender.is_closed());
        let is_taken = hearers.waiting.iter().any(|(taken, _)| *taken == id);
        if is_taken || hearers.is_over || hearers.waiting.len() >= MOST_WAITING {
            return None;
        }
        let (sender, receiver) = mpsc::channel(MOST_UNREAD);
        hearers.waiting.push((id, sender));
        Some(receiver)
    }

    /// Hears what answers nothing. Whoever listened before does no more.
    pub fn listen(&self) -> mpsc::Receiver<HeldMessage> {
        let (sender, receiver) = mpsc::channel(MOST_UNREAD);
        let mut hearers = self.hearers.lock();
        hearers.listener = Some(sender).filter(|_| !hearers.is_over);
        receiver
    }

    /// A message of the server's goes to whoever waits for it: an answer to its request, anything else to the listener, or
    /// else to the request that came last. One that there is no room for is dropped; a request whose answer it would have
    /// been hears that there is none.
    pub fn dispatch(&self, message: &Bytes) {
        let Ok(said) = serde_json::from_slice::<Value>(message) else { return };
        let held = self.memory.hold(message.len()).map(|held| HeldMessage { bytes: message.clone(), _held: held });
        let mut hearers = self.hearers.lock();
        hearers.waiting.retain(|(_, sender)| !sender.is_closed());
        let answered = said.get("id").filter(|_| said.get("method").is_none());
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
    use super::super::LONGEST_ANSWER;
    use super::*;
    use crate::net::dial::lab;

    fn endpoint() -> McpEndpoint {
        McpEndpoint::parse(&lab::dialer(), "http://127.0.0.1:1/post").unwrap()
    }

    fn owner(organisation: u128, workspace: u128) -> BridgeOwner {
        BridgeOwner { organisation: Uuid::from_u128(organisation), workspace: Uuid::from_u128(workspace) }
    }

    fn heard(receiver: &mut mpsc::Receiver<HeldMessage>) -> Option<Bytes> {
        receiver.try_recv().ok().map(|message| message.bytes)
    }

    #[test]
    fn answers_find_their_requests_and_the_rest_whoever_listens() {
        let bridges = Bridges::default();
        let bridge = bridges.open(owner(1, 1), endpoint()).unwrap();
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
        assert!(bridges.find(bridge.id.as_bytes()).is_some());
        bridges.close(&bridge);
        assert!(bridges.find(bridge.id.as_bytes()).is_none());
        assert!(matches!(two.try_recv(), Ok(_) | Err(mpsc::error::TryRecvError::Disconnected)));
        assert!(bridge.await_answer("9").is_none());
    }

    #[test]
    fn no_organisation_shuts_the_others_out() {
        let (bridges, endpoint) = (Bridges::default(), endpoint());
        let open_all = |organisation: u128| {
            let own = (0..64).map(|workspace| owner(organisation, organisation * 100 + workspace));
            let own = own.flat_map(|owner| std::iter::repeat_n(owner, MOST_OF_WORKSPACE + 1));
            own.filter(|owner| bridges.open(*owner, endpoint.clone()).is_some()).count()
        };
        assert_eq!(
            (0..200).filter(|_| bridges.open(owner(9, 9), endpoint.clone()).is_some()).count(),
            MOST_OF_WORKSPACE
        );
        let [first, second] = [open_all(1), open_all(2)];
        assert_eq!(first, (MOST - MOST_OF_WORKSPACE) / 2);
        assert_eq!(second, first / 2);
        assert!(bridges.open(owner(3, 3), endpoint.clone()).is_some());
    }

    #[test]
    fn what_is_not_read_is_bounded_in_bytes_and_a_dropped_answer_is_noticed() {
        let bridges = Bridges::default();
        let bridge = bridges.open(owner(1, 1), endpoint()).unwrap();
        let mut listener = bridge.listen();
        let mut waiting = bridge.await_answer("1").unwrap();
        let long = "x".repeat(LONGEST_ANSWER / 2);
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
