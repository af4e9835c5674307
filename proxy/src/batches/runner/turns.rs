//! How much is done at once, in all and for one tenant (`tenant_share`). What depends on others, a receiver or a provider, may take
//! long; the bounds keep the slow ones of one organisation, and of one workspace of it, from holding every turn there is.

use crate::runtime::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use std::sync::Arc;
use uuid::Uuid;

pub struct Turns {
    share: Arc<TenantShare>,
    most_of_organisation: usize,
    most_of_workspace: usize,
}

/// Held until it is dropped.
pub type Turn = Holding;

/// Who holds some, and how many.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HeldTurns {
    pub ids: Vec<Uuid>,
    pub counts: Vec<i64>,
}

impl Turns {
    pub fn new(most: usize, most_of_workspace: usize) -> Arc<Self> {
        let most_of_organisation = most_of_workspace.max(most / 2);
        let rule = ShareRule { least: most_of_organisation, workspace: most_of_workspace, ..ShareRule::EACH };
        Arc::new(Self { share: TenantShare::new(most, rule), most_of_organisation, most_of_workspace })
    }

    pub fn take(&self, tenant: Tenant) -> Option<Turn> {
        self.share.hold(tenant, 1).ok()
    }

    /// How many more may be taken.
    pub fn left(&self) -> usize {
        self.share.limit().saturating_sub(self.share.used())
    }

    pub fn most_of_organisation(&self) -> usize {
        self.most_of_organisation
    }

    pub fn most_of_workspace(&self) -> usize {
        self.most_of_workspace
    }

    /// What a tenant's organisation and the tenant itself hold.
    pub fn of(&self, tenant: Tenant) -> (usize, usize) {
        self.share.held(tenant)
    }

    /// By organisation, and by workspace.
    pub fn held(&self) -> [HeldTurns; 2] {
        let mut held = [HeldTurns::default(), HeldTurns::default()];
        for (tenant, count) in self.share.holders() {
            for (turns, id) in held.iter_mut().zip([tenant.organisation, tenant.workspace]) {
                turns.add(id, i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
        held
    }
}

impl HeldTurns {
    fn add(&mut self, id: Uuid, count: i64) {
        match self.ids.iter().zip(&mut self.counts).find(|(known, _)| **known == id) {
            Some((_, held)) => *held = held.saturating_add(count),
            None => {
                self.ids.push(id);
                self.counts.push(count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tenant_has_fewer_turns_than_there_are() {
        let turns = Turns::new(3, 2);
        let (one, sibling, other) = (Tenant::test(1, 1), Tenant::test(1, 2), Tenant::test(2, 3));
        let first: Vec<Turn> = (0..5).filter_map(|_| turns.take(one)).collect();
        assert_eq!((first.len(), turns.left(), turns.of(sibling)), (2, 1, (2, 0)));
        assert!(turns.take(sibling).is_none(), "its organisation leaves one to others");
        let second = turns.take(other);
        assert!(second.is_some() && turns.take(Tenant::test(3, 4)).is_none(), "all are taken");
        drop(first);
        let [organisations, workspaces] = turns.held();
        assert_eq!((organisations.ids, workspaces.ids), (vec![other.organisation], vec![other.workspace]));
        drop(second);
        assert_eq!((turns.left(), turns.held()), (3, Default::default()));
    }

    #[test]
    fn an_organisation_has_half_of_many_turns() {
        let turns = Turns::new(16, 4);
        let held: Vec<Turn> = (0..100).filter_map(|number| turns.take(Tenant::test(1, 10 + number % 25))).collect();
        assert_eq!(held.len(), turns.most_of_organisation());
        let one: Vec<Turn> = (0..100).filter_map(|_| turns.take(Tenant::test(2, 2))).collect();
        assert_eq!(one.len(), turns.most_of_workspace());
        let [organisations, workspaces] = turns.held();
        assert_eq!((organisations.counts.iter().sum::<i64>(), organisations.ids.len()), (12, 2));
        assert_eq!((workspaces.counts.iter().sum::<i64>(), workspaces.ids.len()), (12, 9));
    }
}
