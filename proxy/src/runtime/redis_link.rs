//! A connection to Redis or Valkey, alone or as a Cluster, that mends itself. Rates of limits and kept answers are asked
//! for over it; who waits how long for an answer is theirs to say.

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::{Client, Cmd, FromRedisValue, RedisError};
use std::time::Duration;

/// Whoever asks while a connection is being mended waits for the next attempt, so attempts stay close together.
const MEND_EVERY: Duration = Duration::from_millis(300);

#[derive(Clone)]
pub enum RedisLink {
    Single(ConnectionManager),
    Cluster(ClusterConnection),
}

/// A URL that no server can have is told when the process starts; a server that is away is waited for.
pub fn check_url(urls: &str) -> anyhow::Result<()> {
    // The cause is left out: it could quote a password.
    nodes(urls).into_iter().try_for_each(|node| Client::open(node).map(|_| ())).map_err(|_| {
        anyhow::anyhow!(
            "REDIS_URL is not a Redis URL (redis://host:port, or rediss:// for TLS; of a Cluster several, with commas)"
        )
    })
}

fn nodes(urls: &str) -> Vec<&str> {
    urls.split(',').map(str::trim).filter(|url| !url.is_empty()).collect()
}

impl RedisLink {
    /// `urls`: one server, or several nodes of a Cluster with commas between them.
    pub async fn connect(urls: &str, patience: Duration) -> Result<Self, RedisError> {
        match urls.contains(',') {
            true => {
                let cluster =
                    ClusterClientBuilder::new(nodes(urls)).connection_timeout(patience).response_timeout(patience);
                Ok(Self::Cluster(cluster.build()?.get_async_connection().await?))
            }
            false => {
                let config = ConnectionManagerConfig::new()
                    .set_max_delay(MEND_EVERY)
                    .set_connection_timeout(Some(patience))
                    .set_response_timeout(Some(patience));
                Ok(Self::Single(ConnectionManager::new_with_config(Client::open(urls.trim())?, config).await?))
            }
        }
    }

    pub async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        match self.clone() {
            Self::Single(mut link) => command.query_async(&mut link).await,
            Self::Cluster(mut link) => command.query_async(&mut link).await,
        }
    }
}
