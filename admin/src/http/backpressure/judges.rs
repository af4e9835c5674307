//! Where messages of strangers are judged: on threads of their own, because reading, hashing and opening them takes a
//! thread and does not yield it, and few at once, of one organisation still fewer. The service answers everybody else
//! meanwhile, whatever is sent to one sign-in.

use super::turns::Turns;
use crate::http::ApiError;
use std::time::Duration;
use uuid::Uuid;

const AT_ONCE: usize = 4;
const OF_ONE_ORGANISATION: usize = 2;
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub struct Judges {
    turns: Turns,
}

impl Judges {
    pub fn new() -> Self {
        Self { turns: Turns::new(AT_ONCE, OF_ONE_ORGANISATION, PATIENCE) }
    }

    /// The turn ends with the work, not with the client who may have left meanwhile.
    pub async fn run<T: Send + 'static>(
        &self,
        organisation: Uuid,
        judge: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        const BUSY: ApiError = ApiError::RateLimited { message: "Too many logins are under way", retry_after: 10 };
        let turn = self.turns.enter(organisation).await.ok_or(BUSY)?;
        let judged = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            judge()
        });
        judged.await.map_err(|_| ApiError::Internal)
    }
}

impl Default for Judges {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// As many as may are judged, others wait, and the async thread (there is one in this test) goes on.
    #[tokio::test]
    async fn judging_holds_up_nobody_and_a_panic_is_an_answer() {
        let judges = Judges::new();
        let (release, held) = mpsc::channel::<()>();
        let of = Uuid::new_v4();
        let first = tokio::spawn({
            let judges = judges.clone();
            async move { judges.run(of, move || held.recv().is_ok()).await }
        });
        assert_eq!(judges.run(of, || 1).await.unwrap(), 1);
        assert!(judges.run(of, || panic!("judged")).await.is_err());
        release.send(()).unwrap();
        assert!(first.await.unwrap().unwrap());
    }
}
