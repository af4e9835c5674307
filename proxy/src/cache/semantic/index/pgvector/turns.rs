//! Searches that are under way in Postgres. A query that nobody waits for any more is still worked on, so a turn is over when
//! Postgres has answered. A workspace has a few at a time: whatever its searches cost, others find a connection.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// Of one workspace.
const MOST_AT_ONCE: usize = 2;

#[derive(Default)]
pub struct Turns(Mutex<UnderWay>);

#[derive(Default)]
struct UnderWay {
    workspaces: HashMap<Uuid, usize>,
    /// By the number of the connection.
    connections: HashMap<usize, usize>,
}

/// Over when it is dropped.
pub struct Turn {
    turns: Arc<Turns>,
    workspace: Uuid,
    /// Which of the connections has the least to do.
    pub connection: usize,
}

impl Turns {
    /// None while the workspace has enough under way.
    pub fn begin(self: &Arc<Self>, workspace: Uuid, connections: usize) -> Option<Turn> {
        let mut under_way = self.0.lock();
        if under_way.workspaces.get(&workspace).is_some_and(|count| *count >= MOST_AT_ONCE) {
            return None;
        }
        let busy = |number: &usize| under_way.connections.get(number).copied().unwrap_or(0);
        let connection = (0..connections).min_by_key(busy)?;
        *under_way.workspaces.entry(workspace).or_default() += 1;
        *under_way.connections.entry(connection).or_default() += 1;
        Some(Turn { turns: self.clone(), workspace, connection })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut under_way = self.turns.0.lock();
        if let Some(count) = under_way.connections.get_mut(&self.connection) {
            *count = count.saturating_sub(1);
        }
        let left = under_way.workspaces.get(&self.workspace).map_or(0, |count| count.saturating_sub(1));
        match left {
            0 => under_way.workspaces.remove(&self.workspace),
            left => under_way.workspaces.insert(self.workspace, left),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_a_few_turns_and_the_next_gets_a_free_connection() {
        let turns = Arc::<Turns>::default();
        let begin = |workspace: u128| turns.begin(Uuid::from_u128(workspace), 3);
        let (first, second) = (begin(1).unwrap(), begin(1).unwrap());
        assert_ne!(first.connection, second.connection);
        assert!(begin(1).is_none());
        let other = begin(2).unwrap();
        assert!(other.connection != first.connection && other.connection != second.connection);
        drop(first);
        assert!(begin(1).is_some());
        drop((second, other));
        assert!(turns.0.lock().workspaces.is_empty());
        assert!(turns.begin(Uuid::nil(), 0).is_none());
    }
}
