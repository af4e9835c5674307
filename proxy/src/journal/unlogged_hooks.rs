//! Hooks of calls that nobody waited for, where calls are not logged (`JOURNAL=OFF`): no shipment runs them, so they run here, in
//! the background, within the same bounds. What they say goes to the services that they ask and to metrics, and is then forgotten.

use super::late_results::{LateWork, LateWorks};
use super::meters::JournalMeters;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

#[derive(Default)]
pub struct UnloggedHooks {
    works: LateWorks,
}

/// How often results are forgotten that nobody stores.
const FORGET_EVERY: Duration = Duration::from_secs(1);

impl UnloggedHooks {
    fn put(&self, work: Box<dyn LateWork>) {
        self.works.put(Uuid::new_v4(), work);
    }

    /// Runs for as long as the process does.
    pub async fn run(&self, meters: &JournalMeters) {
        let forget = async {
            loop {
                tokio::time::sleep(FORGET_EVERY).await;
                self.works.forget_all();
            }
        };
        tokio::join!(self.works.run(|skipped| meters.note_skipped(skipped)), forget);
    }
}

/// The hooks of one call, until it is over.
pub struct UnloggedCall {
    to: Arc<UnloggedHooks>,
    late: Option<Box<dyn LateWork>>,
}

impl UnloggedCall {
    pub fn new(to: Arc<UnloggedHooks>) -> Self {
        Self { to, late: None }
    }

    /// What is to be run, in place of what was known before.
    pub fn checked(&mut self, late: Option<Box<dyn LateWork>>) {
        self.late = late;
    }
}

impl Drop for UnloggedCall {
    fn drop(&mut self) {
        if let Some(late) = self.late.take() {
            self.to.put(late);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::late_results::HookLists;
    use super::*;
    use crate::runtime::tenant_share::Tenant;
    use futures::future::BoxFuture;
    use tokio::sync::mpsc;

    struct Says(u8, mpsc::UnboundedSender<u8>);

    impl LateWork for Says {
        fn tenant(&self) -> Tenant {
            Tenant::test(1, 1)
        }

        fn weight(&self) -> usize {
            1
        }

        fn skipped(&self) -> HookLists {
            HookLists::default()
        }

        fn run(self: Box<Self>) -> BoxFuture<'static, HookLists> {
            Box::pin(async move {
                self.1.send(self.0).unwrap();
                HookLists::default()
            })
        }
    }

    #[tokio::test]
    async fn what_was_known_last_runs_once_the_call_is_over_and_nothing_of_it_is_kept() {
        let hooks = Arc::new(UnloggedHooks::default());
        let meters = JournalMeters::new(&prometheus::Registry::new()).unwrap();
        let running = hooks.clone();
        tokio::spawn(async move { running.run(&meters).await });
        let (says, mut said) = mpsc::unbounded_channel();
        let mut call = UnloggedCall::new(hooks.clone());
        call.checked(Some(Box::new(Says(1, says.clone()))));
        call.checked(Some(Box::new(Says(2, says.clone()))));
        assert!(said.try_recv().is_err(), "it is not over");
        drop(call);
        assert_eq!(said.recv().await, Some(2));
        drop(UnloggedCall::new(hooks.clone()));
        let mut call = UnloggedCall::new(hooks);
        call.checked(Some(Box::new(Says(3, says))));
        drop(call);
        assert_eq!(said.recv().await, Some(3));
    }
}
