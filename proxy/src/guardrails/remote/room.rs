//! Memory for what is written to services: a question may be as long as the body that it is about, and waits as long as its
//! check does. So each has to find room before it is written, in its tenant's share (`tenant_share`) and in all that there is.

use crate::runtime::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use std::sync::{Arc, LazyLock};

/// Room is given in pieces of this many bytes.
const PIECE: usize = 1 << 10;
/// Pieces of all questions, and the most of one.
pub(crate) const MAX_PIECES: usize = 256 << 10;
const MAX_OF_QUESTION: usize = 64 << 10;
/// What a question takes at least, with an answer of usual length.
const MIN_QUESTION: usize = 64;

static ROOM: LazyLock<Arc<TenantShare>> = LazyLock::new(new_room);

pub(crate) fn new_room() -> Arc<TenantShare> {
    TenantShare::new(MAX_PIECES, ShareRule { least: MAX_OF_QUESTION, ..ShareRule::WAITING })
}

/// Waits for room for about this many bytes. A longer question takes as much as one may.
pub async fn room(tenant: Tenant, bytes: usize) -> Holding {
    ROOM.acquire(tenant, pieces(bytes)).await
}

pub(crate) fn pieces(bytes: usize) -> usize {
    (bytes / PIECE + MIN_QUESTION).min(MAX_OF_QUESTION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn an_organisation_waits_for_its_own_questions_and_for_nobody_elses() {
        let share = new_room();
        let ask = |tenant, bytes| share.acquire(tenant, pieces(bytes));
        let held = [ask(Tenant::test(71, 1), usize::MAX).await, ask(Tenant::test(71, 2), usize::MAX).await];
        assert!(ask(Tenant::test(71, 3), 0).now_or_never().is_none(), "its share is used up, whichever workspace asks");
        assert!(ask(Tenant::test(72, 1), 1 << 20).now_or_never().is_some());
        drop(held);
        assert!(ask(Tenant::test(71, 3), 0).now_or_never().is_some());
    }
}
