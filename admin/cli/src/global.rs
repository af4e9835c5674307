//! The options of every command.

use crate::output::Format;
use clap::Args;

#[derive(Args, Clone)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// The gateway's address; wins over the current context, and so does PORTCULLIS_URL. The key is read from PORTCULLIS_API_KEY,
    /// never from an argument.
    #[arg(long, global = true)]
    pub url: Option<String>,
    /// Slug or id of the workspace; wins over the context.
    #[arg(short, long, global = true, env = "PORTCULLIS_WORKSPACE", hide_env_values = true)]
    pub workspace: Option<String>,
    /// All workspaces that the key can see, whatever the context says.
    #[arg(short = 'A', long, global = true, conflicts_with = "workspace")]
    pub all_workspaces: bool,
    /// The context to use in place of the current one, with its own address and key, whatever the environment says.
    #[arg(long, global = true)]
    pub context: Option<String>,
    /// How data is written. Without it: a table on a terminal, tab-separated values in a pipe.
    #[arg(short, long, global = true, value_enum)]
    pub output: Option<Format>,
    /// Print the call as a curl command in place of making it.
    #[arg(long, global = true)]
    pub as_curl: bool,
    /// Do not ask before something is deleted.
    #[arg(long, global = true)]
    pub yes: bool,
    /// No hint about the next command on stderr.
    #[arg(long, global = true)]
    pub quiet: bool,
}
