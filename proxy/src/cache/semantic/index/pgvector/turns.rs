//! Searches that are under way in Postgres. A query that nobody waits for any more is still worked on, so a turn is over when
//! Postgres has answered. A tenant has a few at a time: whatever its searches cost, others find a connection.

use crate::runtime::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Of all, and of one workspace.
const MAX_UNDER_WAY: usize = 64;
const MAX_OF_WORKSPACE: usize = 2;

pub struct Turns {
    share: Arc<TenantShare>,
    /// Searches by the number of their connection.
    connections: Mutex<HashMap<usize, usize>>,
}

impl Default for Turns {
    fn default() -> Self {
        let rule = ShareRule { least: 1, workspace: MAX_OF_WORKSPACE, leaves_siblings: false, may_wait: false };
        Self { share: TenantShare::new(MAX_UNDER_WAY, rule), connections: Mutex::default() }
    }
}

/// Over when it is dropped.
pub struct Turn {
    turns: Arc<Turns>,
    _held: Holding,
    /// Which of the connections has the least to do.
    pub connection: usize,
}

impl Turns {
    /// None while the tenant has enough under way.
    pub fn begin(self: &Arc<Self>, tenant: Tenant, connections: usize) -> Option<Turn> {
        let held = self.share.hold(tenant, 1).ok()?;
        let mut busy = self.connections.lock();
        let connection = (0..connections).min_by_key(|number| busy.get(number).copied().unwrap_or(0))?;
        *busy.entry(connection).or_default() += 1;
        Some(Turn { turns: self.clone(), _held: held, connection })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut busy = self.turns.connections.lock();
        if let Some(count) = busy.get_mut(&self.connection) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_a_few_turns_and_the_next_gets_a_free_connection() {
        let turns = Arc::<Turns>::default();
        let begin = |workspace: u128| turns.begin(Tenant::test(workspace, workspace), 3);
        let (first, second) = (begin(1).unwrap(), begin(1).unwrap());
        assert_ne!(first.connection, second.connection);
        assert!(begin(1).is_none());
        let other = begin(2).unwrap();
        assert!(other.connection != first.connection && other.connection != second.connection);
        drop(first);
        assert!(begin(1).is_some());
        drop((second, other));
        assert_eq!(turns.share.used(), 0);
        assert!(turns.begin(Tenant::test(1, 1), 0).is_none());
        assert_eq!(turns.share.used(), 0);
    }
}
