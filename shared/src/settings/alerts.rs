//! Where alerts about budgets go beside mail.

use std::fmt;

#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Alerts")]
pub struct Alerts {
    /// Address that alerts about budgets are posted to, beside mail.
    #[arg(long, env = "ALERT_WEBHOOK_URL")]
    pub alert_webhook_url: Option<String>,
    /// Key that signs what is posted.
    ///
    /// The header `x-gateway-signature` is `t=<time>,v1=<signature>`: the HMAC-SHA256, in hex, of the time in seconds, a
    /// dot and the body.
    #[arg(long, env = "ALERT_WEBHOOK_SECRET", hide_env_values = true)]
    pub alert_webhook_secret: Option<String>,
    /// Form of what is posted: `json` has all facts, `slack` is a message that Slack and its likes show.
    #[arg(long, env = "ALERT_WEBHOOK_FORMAT", value_enum, default_value_t = AlertFormat::Json)]
    pub alert_webhook_format: AlertFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AlertFormat {
    /// All facts, as an object.
    Json,
    /// A text for people.
    Slack,
}

/// Settings end up in debug output sooner or later; the secret must not, nor an address that is one.
impl fmt::Debug for Alerts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alerts")
            .field("alert_webhook_url", &self.alert_webhook_url.as_ref().map(|_| "…"))
            .field("alert_webhook_secret", &self.alert_webhook_secret.as_ref().map(|_| "…"))
            .field("alert_webhook_format", &self.alert_webhook_format)
            .finish()
    }
}
