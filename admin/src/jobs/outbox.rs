//! Mail that must not get lost: written in the transaction that it reports on, and handed to the SMTP server
//! afterwards by whichever admin takes it first. When the server does not answer, it is tried again later; after some
//! days a letter is given up.

use crate::app::App;
use crate::http::ApiError;
pub use crate::mail::put;
use crate::mail::webhook::RECIPIENT;
use crate::mail::{Letter, budget, owners, reminder};
use chrono::Utc;
use std::time::Duration;
use uuid::Uuid;

const LOOK: Duration = Duration::from_secs(5);
const AT_ONCE: i64 = 20;
/// Each attempt doubles the pause from a minute to some hours; the last is made after about three days.
const MAX_ATTEMPTS: i32 = 16;

/// Sends for the life of the process.
pub async fn keep_sending(app: App) {
    loop {
        match send(&app).await {
            Ok(sent) if sent == AT_ONCE as usize => {}
            Ok(_) => tokio::time::sleep(LOOK).await,
            Err(error) => {
                tracing::error!(%error, "kept mail could not be looked at");
                tokio::time::sleep(LOOK).await;
            }
        }
    }
}

/// Takes some letters that are due and hands them over; says how many it took.
pub async fn send(app: &App) -> Result<usize, ApiError> {
    // Taken by moving the next attempt: another admin does not see them, and they come again should this one die.
    const TAKE: &str = "UPDATE letters SET attempts = attempts + 1,
            next_attempt_at = now() + least(interval '1 minute' * 2 ^ attempts, interval '6 hours')
        WHERE id IN (SELECT id FROM letters WHERE next_attempt_at <= now() ORDER BY next_attempt_at LIMIT $1
                     FOR UPDATE SKIP LOCKED)
        RETURNING id, kind, recipient, subject, body, attempts";
    const DONE: &str = "DELETE FROM letters WHERE id = $1";
    let taken = app.db.get().await?.query(TAKE, &[&AT_ONCE]).await?;
    for row in &taken {
        let (id, attempts): (Uuid, i32) = (row.try_get("id")?, row.try_get("attempts")?);
        let letter = Letter {
            to: row.try_get("recipient")?,
            subject: row.try_get("subject")?,
            text: row.try_get("body")?,
            kind: known(row.try_get("kind")?),
        };
        let kind = letter.kind;
        let delivered = match &app.alert_webhook {
            Some(webhook) if letter.to == RECIPIENT => webhook.deliver(&letter.text, Utc::now()).await.map(|()| true),
            // The address was taken from the settings since.
            None if letter.to == RECIPIENT => Ok(false),
            _ => app.mail.deliver(letter).await,
        };
        let is_done = match delivered {
            Ok(was_sent) => {
                tracing::info!(kind, was_sent, "kept mail was handed over, or there is no SMTP_HOST");
                true
            }
            Err(error) => {
                let is_given_up = attempts >= MAX_ATTEMPTS;
                tracing::error!(kind, attempts, is_given_up, error = format!("{error:#}"), "mail was not taken");
                is_given_up
            }
        };
        if is_done {
            app.db.get().await?.execute(DONE, &[&id]).await?;
        }
    }
    Ok(taken.len())
}

/// What the log calls it.
fn known(kind: &str) -> &'static str {
    let reminders = [reminder::KIND_EXPIRY, reminder::KIND_ROTATION, reminder::KIND_ROTATED];
    reminders
        .into_iter()
        .chain([budget::KIND_THRESHOLD, budget::KIND_EXHAUSTED, owners::KIND])
        .find(|one| *one == kind)
        .unwrap_or("other")
}
