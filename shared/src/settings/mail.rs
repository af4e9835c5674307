//! How mail leaves, and where its links lead.

use std::fmt;
use std::path::PathBuf;

#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Mail")]
pub struct Mail {
    /// Server that mail is handed to. Without one no mail is sent; the log says what would have been.
    #[arg(long, env = "SMTP_HOST")]
    pub smtp_host: Option<String>,
    /// Its port; 465 with SMTP_TLS=tls, otherwise 587, when absent.
    #[arg(long, env = "SMTP_PORT")]
    pub smtp_port: Option<u16>,
    /// Encryption towards the server.
    #[arg(long, env = "SMTP_TLS", value_enum, default_value_t = SmtpTls::Starttls)]
    pub smtp_tls: SmtpTls,
    /// PEM file of an authority to trust besides the system's.
    #[arg(long, env = "SMTP_CA")]
    pub smtp_ca: Option<PathBuf>,
    /// User to sign in as.
    #[arg(long, env = "SMTP_USERNAME", requires = "smtp_password")]
    pub smtp_username: Option<String>,
    /// Password of that user.
    #[arg(long, env = "SMTP_PASSWORD", hide_env_values = true, requires = "smtp_username")]
    pub smtp_password: Option<String>,
    /// Sender of all mail.
    #[arg(long, env = "MAIL_FROM", default_value = "Portcullis <portcullis@localhost>")]
    pub mail_from: String,
    /// Where people reach this installation; links in mail start with it.
    ///
    /// http://localhost:PROXY_PORT when absent.
    #[arg(long, env = "PUBLIC_URL")]
    pub public_url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SmtpTls {
    /// In the clear; refused together with a password.
    Off,
    /// Begins in the clear and must be upgraded before anything is said.
    Starttls,
    /// TLS from the first byte.
    Tls,
}

/// Settings end up in debug output sooner or later; the password must not.
impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail")
            .field("smtp_host", &self.smtp_host)
            .field("smtp_port", &self.smtp_port)
            .field("smtp_tls", &self.smtp_tls)
            .field("smtp_ca", &self.smtp_ca)
            .field("smtp_username", &self.smtp_username)
            .field("smtp_password", &self.smtp_password.as_ref().map(|_| "…"))
            .field("mail_from", &self.mail_from)
            .field("public_url", &self.public_url)
            .finish()
    }
}
