//! Every setting, one struct per concern. A setting has one name: its environment variable. The command line and
//! `conf/gateway.toml` spell the same name in their own way, and `--help` documents it.

pub mod bootstrap;
pub mod database;
pub mod features;
pub mod identity;
pub mod listen;
pub mod logs;
pub mod process;
pub mod snapshot;
pub mod upstream;

pub use bootstrap::Bootstrap;
pub use database::{Database, DbSsl};
pub use features::Features;
pub use identity::Identity;
pub use listen::Listen;
pub use logs::Logs;
pub use process::Process;
pub use snapshot::Snapshot;
pub use upstream::Upstream;
