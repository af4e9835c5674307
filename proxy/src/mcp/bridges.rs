//! Sessions with servers of the older transport: there a session is a connection, over which everything comes that the
//! server says, so some process has to hold it. These are the ones that this process holds. A client whose session is held
//! by another process, or by none any more, begins anew.

use super::exchange::McpEndpoint;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

/// Sessions of this process, and of one workspace.
const MOST: usize = 2048;
const MOST_OF_WORKSPACE: usize = 128;
/// Requests of one session that wait for their answers.
const MOST_WAITING: usize = 64;
/// Messages that wait for a client which does not read; beyond it they are dropped.
const MOST_UNREAD: usize = 256;

#[derive(Debug, Default)]
pub struct Bridges(Mutex<HashMap<Uuid, Arc<Bridge>>>);

/// One session.
#[derive(Debug)]
pub struct Bridge {
    pub id: Uuid,
    workspace: Uuid,
    /// Where messages are sent to.
    pub endpoint: McpEndpoint,
    hearers: Mutex<Hearers>,
    last_used: Mutex<Instant>,
    /// Told when the session is over.
    pub ended: Notify,
}

#[derive(Debug, Default)]
struct Hearers {
    /// By the ids of requests.
    waiting: Vec<(Value, mpsc::Sender<Bytes>)>,
    listener: Option<mpsc::Sender<Bytes>>,
    is_over: bool,
}

impl Bridges {
    /// None when too many are open.
    pub fn open(&self, workspace: Uuid, endpoint: McpEndpoint) -> Option<Arc<Bridge>> {
        let mut all = self.0.lock();
        let own = all.values().filter(|bridge| bridge.workspace == workspace).count();
        if all.len() >= MOST || own >= MOST_OF_WORKSPACE {
            return None;
        }
        let bridge = Arc::new(Bridge {
            id: Uuid::new_v4(),
            workspace,
            endpoint,
            hearers: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
            ended: Notify::new(),
        });
        all.insert(bridge.id, bridge.clone());
        Some(bridge)
    }

    pub fn find(&self, id: &[u8]) -> Option<Arc<Bridge>> {
        let bridge = self.0.lock().get(&Uuid::from_slice(id).ok()?).cloned()?;
        *bridge.last_used.lock() = Instant::now();
        Some(bridge)
    }

    /// Whoever waits hears nothing more.
    pub fn close(&self, bridge: &Bridge) {
        self.0.lock().remove(&bridge.id);
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
    pub fn await_answer(&self, id: &str) -> Option<mpsc::Receiver<Bytes>> {
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
    pub fn listen(&self) -> mpsc::Receiver<Bytes> {
        let (sender, receiver) = mpsc::channel(MOST_UNREAD);
        let mut hearers = self.hearers.lock();
        hearers.listener = Some(sender).filter(|_| !hearers.is_over);
        receiver
    }

    /// A message of the server's goes to whoever waits for it: an answer to its request, anything else to the listener, or
    /// else to the request that came last.
    pub fn dispatch(&self, message: &Bytes) {
        let Ok(said) = serde_json::from_slice::<Value>(message) else { return };
        let mut hearers = self.hearers.lock();
        hearers.waiting.retain(|(_, sender)| !sender.is_closed());
        let answered = said.get("id").filter(|_| said.get("method").is_none());
        if let Some(place) = answered.and_then(|id| hearers.waiting.iter().position(|(waiting, _)| waiting == id)) {
            let (_, sender) = hearers.waiting.remove(place);
            let _ = sender.try_send(message.clone());
            return;
        }
        let listener = hearers.listener.as_ref().filter(|listener| !listener.is_closed());
        if let Some(hearer) = listener.or_else(|| hearers.waiting.last().map(|(_, sender)| sender)) {
            let _ = hearer.try_send(message.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::dial::lab;

    fn bridge(bridges: &Bridges) -> Arc<Bridge> {
        let endpoint = McpEndpoint::parse(&lab::dialer(), "http://127.0.0.1:1/post").unwrap();
        bridges.open(Uuid::from_u128(1), endpoint).unwrap()
    }

    #[test]
    fn answers_find_their_requests_and_the_rest_whoever_listens() {
        let bridges = Bridges::default();
        let bridge = bridge(&bridges);
        let mut one = bridge.await_answer("1").unwrap();
        let mut two = bridge.await_answer("\"a\"").unwrap();
        assert!(bridge.await_answer("1").is_none(), "the id is taken");
        let say = |text: &'static str| bridge.dispatch(&Bytes::from_static(text.as_bytes()));
        say(r#"{"method":"notifications/x"}"#);
        say(r#"{"id":1,"result":{}}"#);
        say(r#"{"id":1,"result":"nobody waits for it any more"}"#);
        assert_eq!(one.try_recv().unwrap(), r#"{"id":1,"result":{}}"#);
        assert!(one.try_recv().is_err());
        assert_eq!(two.try_recv().unwrap(), r#"{"method":"notifications/x"}"#);
        let mut listener = bridge.listen();
        say(r#"{"id":7,"method":"sampling/createMessage"}"#);
        assert_eq!(listener.try_recv().unwrap(), r#"{"id":7,"method":"sampling/createMessage"}"#);
        assert!(bridges.find(bridge.id.as_bytes()).is_some());
        bridges.close(&bridge);
        assert!(bridges.find(bridge.id.as_bytes()).is_none());
        assert!(matches!(two.try_recv(), Ok(_) | Err(mpsc::error::TryRecvError::Disconnected)));
        assert!(bridge.await_answer("9").is_none());
    }
}
