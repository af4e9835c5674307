//! Interned lists: equal lists of many rows, held once. Hundreds of thousands of keys carry a handful of different
//! scope lists, and a list takes ten times the memory of everything else in a key.

use std::collections::HashSet;
use std::sync::Arc;

/// Lists in the pool before the first look for those that no row uses any more.
const SMALL: usize = 1024;

#[derive(Default)]
pub struct ListPool {
    lists: HashSet<Arc<[String]>>,
    /// How many were left by the last look.
    live: usize,
}

impl ListPool {
    /// Exchanges the list for an equal one that is held already, if there is one.
    pub fn share(&mut self, list: &mut Arc<[String]>) {
        if let Some(held) = self.lists.get(list) {
            *list = Arc::clone(held);
            return;
        }
        if self.lists.len() >= SMALL.max(self.live * 2) {
            self.lists.retain(|list| Arc::strong_count(list) > 1);
            self.live = self.lists.len();
        }
        self.lists.insert(Arc::clone(list));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(name: &str) -> Arc<[String]> {
        [name.to_owned()].into()
    }

    #[test]
    fn equal_lists_become_one_and_others_stay_apart() {
        let mut pool = ListPool::default();
        let (mut one, mut same, mut other) = (list("a"), list("a"), list("b"));
        for list in [&mut one, &mut same, &mut other] {
            pool.share(list);
        }
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        assert_eq!((&one[0], &other[0]), (&"a".to_owned(), &"b".to_owned()));
    }

    #[test]
    fn lists_that_no_row_uses_are_let_go() {
        let mut pool = ListPool::default();
        let mut used = list("used");
        pool.share(&mut used);
        for n in 0..10 * SMALL {
            pool.share(&mut list(&n.to_string()));
        }
        assert!(pool.lists.len() <= SMALL, "{} lists are held for one row", pool.lists.len());
        let mut same = list("used");
        pool.share(&mut same);
        assert!(Arc::ptr_eq(&used, &same));
    }
}
