//! The heartbeat of this proxy's deployment, as a Pingora service of its own: requests know nothing of it.

use pingora_core::server::ShutdownWatch;
use proxy::identity::deployment::{DeploymentIdentity, SIGN_EVERY};
use proxy::snapshot::Snapshot;
use shared::settings;
use std::sync::Arc;

pub struct DeploymentHeartbeat {
    pub identity: DeploymentIdentity,
    pub database: settings::Database,
    pub snapshot: Arc<Snapshot>,
}

impl DeploymentHeartbeat {
    pub async fn run(&self, mut shutdown: ShutdownWatch) {
        // Before the snapshot has seen Postgres there is no schema to rely on.
        let mut progress = self.snapshot.subscribe();
        let mut every = tokio::time::interval(SIGN_EVERY);
        let signs = async {
            let _ = progress.wait_for(|progress| progress.reads > 0).await;
            loop {
                every.tick().await;
                match self.identity.sign(&self.database).await {
                    Ok(true) => {}
                    Ok(false) => tracing::error!(
                        "GATEWAY_DEPLOYMENT_SLUG and GATEWAY_DEPLOYMENT_TOKEN name no deployment; every request is refused"
                    ),
                    Err(error) => tracing::warn!(
                        error = format!("{error:#}"),
                        "this deployment's sign of life could not be written"
                    ),
                }
            }
        };
        tokio::select! {
            () = signs => {}
            _ = shutdown.changed() => {}
        }
    }
}
