//! How much is done at once, in all and for one workspace. What depends on others, a receiver or a provider, may take long; the
//! second bound keeps one tenant's slow ones from holding every turn there is.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

pub struct Turns {
    most: usize,
    most_of_one: usize,
    /// By workspace; those that have none are not there.
    held: Mutex<HashMap<Uuid, usize>>,
}

/// Held until it is dropped.
pub struct Turn {
    turns: Arc<Turns>,
    workspace: Uuid,
}

impl Turns {
    pub fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        Arc::new(Self { most, most_of_one, held: Mutex::default() })
    }

    pub fn take(self: &Arc<Self>, workspace: Uuid) -> Option<Turn> {
        let mut held = self.held.lock();
        let all: usize = held.values().sum();
        let of_one = held.get(&workspace).copied().unwrap_or(0);
        if all >= self.most || of_one >= self.most_of_one {
            return None;
        }
        held.insert(workspace, of_one + 1);
        Some(Turn { turns: self.clone(), workspace })
    }

    /// How many more may be taken.
    pub fn left(&self) -> usize {
        self.most.saturating_sub(self.held.lock().values().sum())
    }

    pub fn most_of_one(&self) -> usize {
        self.most_of_one
    }

    /// Who holds some, and how many.
    pub fn held(&self) -> (Vec<Uuid>, Vec<i64>) {
        let held = self.held.lock();
        held.iter().map(|(workspace, count)| (*workspace, i64::try_from(*count).unwrap_or(i64::MAX))).unzip()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut held = self.turns.held.lock();
        if let Some(count) = held.get_mut(&self.workspace) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.workspace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_workspace_has_fewer_turns_than_there_are() {
        let turns = Turns::new(3, 2);
        let [one, two, three] = [1, 2, 3].map(Uuid::from_u128);
        let first: Vec<Turn> = (0..5).filter_map(|_| turns.take(one)).collect();
        assert_eq!((first.len(), turns.left(), turns.held()), (2, 1, (vec![one], vec![2])));
        let other = turns.take(two);
        assert!(other.is_some() && turns.take(three).is_none(), "all are taken");
        drop(first);
        assert_eq!((turns.left(), turns.held()), (2, (vec![two], vec![1])));
        drop(other);
        assert_eq!((turns.left(), turns.held()), (3, (vec![], vec![])));
    }
}
