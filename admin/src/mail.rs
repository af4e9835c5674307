//! Mail: handed to one SMTP server, or, without one, only mentioned in the log. Mail is sent after the change that it
//! reports and never delays an answer. What a caller asked for is sent once, and the caller can ask again (resend);
//! alerts and reminders go through `jobs::outbox`.

pub mod budget;
pub mod invitation;
pub mod login_link;
pub mod owners;
pub mod recipients;
pub mod reminder;
pub mod webhook;

use anyhow::Context as _;
use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use shared::settings;
use shared::settings::mail::SmtpTls;
use std::time::Duration;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// One message to one person.
pub struct Letter {
    pub to: String,
    pub subject: String,
    pub text: String,
    /// What the log calls it: addresses and texts stay out of it.
    pub kind: &'static str,
}

#[derive(Clone)]
pub struct Mail {
    server: Option<AsyncSmtpTransport<Tokio1Executor>>,
    from: Mailbox,
}

const TIMEOUT: Duration = Duration::from_secs(30);

impl Mail {
    pub fn new(settings: &settings::Mail) -> anyhow::Result<Self> {
        let from = settings.mail_from.parse().context("MAIL_FROM must be an address, as `Name <name@host>`")?;
        let server = settings.smtp_host.as_deref().map(|host| transport(host, settings)).transpose()?;
        Ok(Self { server, from })
    }

    /// Whether mail leaves at all.
    pub fn has_server(&self) -> bool {
        self.server.is_some()
    }

    /// Begins to send, and returns at once.
    pub fn send(&self, letter: Letter) {
        let mail = self.clone();
        tokio::spawn(async move {
            let kind = letter.kind;
            match mail.deliver(letter).await {
                Ok(true) => tracing::info!(kind, "mail was handed over"),
                Ok(false) => tracing::info!(kind, "mail was not sent: there is no SMTP_HOST"),
                Err(error) => tracing::error!(kind, error = format!("{error:#}"), "mail could not be handed over"),
            }
        });
    }

    /// False when there is no server to hand it to.
    pub async fn deliver(&self, letter: Letter) -> anyhow::Result<bool> {
        let Some(server) = &self.server else { return Ok(false) };
        let to = letter.to.parse().context("the recipient's address cannot be written to")?;
        let message = Message::builder().from(self.from.clone()).to(to).subject(one_line(&letter.subject));
        server.send(message.body(letter.text)?).await?;
        Ok(true)
    }
}

/// Keeps a letter for sending; part of the caller's transaction.
pub async fn put(db: &impl GenericClient, organisation: Uuid, letter: &Letter) -> Result<(), tokio_postgres::Error> {
    const PUT: &str =
        "INSERT INTO letters (organisation_id, kind, recipient, subject, body) VALUES ($1, $2, $3, $4, $5)";
    db.execute(PUT, &[&organisation, &letter.kind, &letter.to, &letter.subject, &letter.text]).await.map(|_| ())
}

/// What links start with, without a slash at its end.
pub fn public_url(settings: &settings::Mail, proxy_port: u16) -> anyhow::Result<String> {
    let Some(text) = &settings.public_url else { return Ok(format!("http://localhost:{proxy_port}")) };
    let url = url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    match url {
        Some(url) if url.query().is_none() && url.fragment().is_none() => Ok(text.trim_end_matches('/').to_owned()),
        _ => anyhow::bail!("PUBLIC_URL must be an http or https URL without query"),
    }
}

fn transport(host: &str, settings: &settings::Mail) -> anyhow::Result<AsyncSmtpTransport<Tokio1Executor>> {
    let (tls, usual_port) = match settings.smtp_tls {
        SmtpTls::Off => (Tls::None, 587),
        SmtpTls::Starttls => (Tls::Required(trust(host, settings)?), 587),
        SmtpTls::Tls => (Tls::Wrapper(trust(host, settings)?), 465),
    };
    let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
        .port(settings.smtp_port.unwrap_or(usual_port))
        .tls(tls)
        .timeout(Some(TIMEOUT));
    if let (Some(user), Some(password)) = (&settings.smtp_username, &settings.smtp_password) {
        if settings.smtp_tls == SmtpTls::Off {
            anyhow::bail!("SMTP_TLS must not be off together with SMTP_PASSWORD: it would be sent in the clear");
        }
        builder = builder.credentials(Credentials::new(user.clone(), password.clone()));
    }
    Ok(builder.build())
}

fn trust(host: &str, settings: &settings::Mail) -> anyhow::Result<TlsParameters> {
    let mut parameters = TlsParameters::builder(host.to_owned());
    if let Some(path) = &settings.smtp_ca {
        let pem = std::fs::read(path).with_context(|| format!("cannot read SMTP_CA {}", path.display()))?;
        let authority = Certificate::from_pem(&pem);
        let authority = authority.with_context(|| format!("SMTP_CA {} is not a PEM certificate", path.display()))?;
        parameters = parameters.add_root_certificate(authority);
    }
    parameters.build().context("TLS towards SMTP_HOST cannot be prepared")
}

/// A header is one line; names of organisations are anything.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> settings::Mail {
        settings::Mail {
            smtp_host: Some("mail.test".into()),
            smtp_port: None,
            smtp_tls: SmtpTls::Starttls,
            smtp_ca: None,
            smtp_username: Some("user".into()),
            smtp_password: Some("s3cret".into()),
            mail_from: "Portcullis <portcullis@acme.test>".into(),
            public_url: None,
        }
    }

    #[test]
    fn settings_that_cannot_work_are_refused_by_name_and_without_the_password() {
        assert!(Mail::new(&settings()).is_ok());
        for (settings, name) in [
            (settings::Mail { smtp_tls: SmtpTls::Off, ..settings() }, "SMTP_TLS"),
            (settings::Mail { mail_from: "nobody".into(), ..settings() }, "MAIL_FROM"),
            (settings::Mail { smtp_ca: Some("/nowhere.pem".into()), ..settings() }, "SMTP_CA"),
        ] {
            let error = format!("{:#}", Mail::new(&settings).err().unwrap());
            assert!(error.contains(name) && !error.contains("s3cret"), "{error}");
        }
        assert!(!format!("{:?}", settings()).contains("s3cret"));
    }

    #[tokio::test]
    async fn without_a_server_nothing_is_sent_and_nothing_fails() {
        let mail = Mail::new(&settings::Mail { smtp_host: None, ..settings() }).unwrap();
        let letter = Letter { to: "nobody".into(), subject: String::new(), text: String::new(), kind: "test" };
        assert!(!mail.deliver(letter).await.unwrap());
    }

    #[test]
    fn links_lead_to_the_public_url_or_else_to_this_machine() {
        let given = |text: Option<&str>| {
            let settings = settings::Mail { public_url: text.map(Into::into), ..settings() };
            public_url(&settings, 8787).ok()
        };
        for (text, expected) in [
            (None, Some("http://localhost:8787")),
            (Some("https://gw.test/"), Some("https://gw.test")),
            (Some("https://gw.test/path"), Some("https://gw.test/path")),
            (Some("gw.test"), None),
            (Some("ftp://gw.test"), None),
            (Some("https://gw.test/#x"), None),
        ] {
            assert_eq!(given(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_subject_stays_on_its_line() {
        assert_eq!(one_line("a\r\nBcc: x@y.test"), "a  Bcc: x@y.test");
    }
}
