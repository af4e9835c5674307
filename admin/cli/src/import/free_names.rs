//! Names that nothing else has: a name that is taken gets the next number that is free.

use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub struct FreeNames {
    taken: HashSet<(&'static str, String)>,
    /// The last number that was given, so that many objects of one name are not counted again for each.
    numbers: HashMap<(&'static str, String), usize>,
}

impl FreeNames {
    /// Keeps a name from being given.
    pub fn reserve(&mut self, kind: &'static str, name: &str) {
        self.taken.insert((kind, name.to_owned()));
    }

    /// The name itself, or with a number behind the separator.
    pub fn take(&mut self, kind: &'static str, name: &str, separator: &str) -> String {
        let mut free = name.to_owned();
        while !self.taken.insert((kind, free.clone())) {
            let number = self.numbers.entry((kind, name.to_owned())).or_insert(1);
            *number += 1;
            free = format!("{name}{separator}{number}");
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once_for_each_kind() {
        let mut names = FreeNames::default();
        names.reserve("a", "x-2");
        let given: Vec<String> = (0..3).map(|_| names.take("a", "x", "-")).collect();
        assert_eq!(given, ["x", "x-3", "x-4"]);
        assert_eq!(names.take("b", "x", "-"), "x");
    }
}
