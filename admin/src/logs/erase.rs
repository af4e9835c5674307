//! Erases what the logs hold of one person (metadata `_user`) or one trace: rows, bodies and feedback, in small
//! transactions, so that neither readers nor shippers wait. Bodies go first: a row whose erasure failed half way is found
//! again, an object without a row would not be. A row whose body was moved to a pack meanwhile is left for the next round,
//! which sees where it is now. What adds up without naming anybody stays. Files of exports that may hold
//! what was erased are deleted with it. What arrives later is `late`.

mod bodies;
mod exports;
pub mod late;
mod rejected;

use crate::crud::cache_purges;
use crate::http::ApiError;
use crate::http::backpressure::db_queue::DbQueue;
use crate::log_data::filters;
use bodies::{StoredBodies, erase_from_pack};
use serde_json::{Value, json};
use shared::db::request_logs::erasure::{self, LogBatch, nameless};
use shared::db::table::Filter;
use shared::log_store::LogStore;
use shared::model::{PurgeTarget, purge_tag};
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErasureSubject {
    /// As applications name them in `_user`.
    User(String),
    Trace(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ErasureMode {
    /// Nothing remains.
    Delete,
    /// Rows remain for counting, without bodies, metadata, and names of traces and spans.
    Anonymise,
}

/// What was found and erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erased {
    pub logs: u64,
    pub bodies: u64,
    pub feedback: u64,
    /// Exports whose files are gone.
    pub exports: u64,
}

/// Rows of one transaction.
const BATCH: i64 = 500;

impl ErasureSubject {
    /// Of the two that may be named, the one that is.
    pub fn from_user_or_trace(user: Option<String>, trace: Option<String>) -> Option<Self> {
        let given = |text: &String| !text.is_empty();
        match (user.filter(given), trace.filter(given)) {
            (Some(user), None) => Some(Self::User(user)),
            (None, Some(trace)) => Some(Self::Trace(trace)),
            _ => None,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::User(name) | Self::Trace(name) => name,
        }
    }

    /// The same condition holds for logs and feedback.
    fn filter(&self, organisation: Uuid) -> Filter {
        let filter = Filter::default().equals("organisation_id", organisation);
        match self {
            Self::Trace(trace) => filter.equals("trace_id", trace.clone()),
            Self::User(user) => filter.and("metadata @> ANY(?)", filters::forms("_user", json!(user))),
        }
    }
}

pub async fn erase(
    db: &DbQueue,
    store: &LogStore,
    organisation: Uuid,
    subject: &ErasureSubject,
    mode: ErasureMode,
) -> Result<Erased, ApiError> {
    late::remember(&*db.get().await?, organisation, subject, mode).await?;
    forget_cached_answers(db, organisation, subject).await?;
    let salt = salt();
    let mut erased = Erased::default();
    loop {
        let found = erasure::find(&*db.get().await?, &subject.filter(organisation), BATCH).await?;
        if found.ids.is_empty() {
            break;
        }
        let stored = StoredBodies::for_logs(organisation, &found);
        stored.delete_objects(store).await?;
        for (pack, ranges) in &stored.packs {
            let mut db = db.get().await?;
            let tx = db.transaction().await?;
            erase_from_pack(&tx, store, pack, ranges).await?;
            tx.commit().await?;
        }
        let mut db = db.get().await?;
        let tx = db.transaction().await?;
        erased.add(apply(&tx, organisation, &found, mode, &salt).await?);
        tx.commit().await?;
    }
    rejected::erase(&*db.get().await?, organisation, subject).await?;
    erased.feedback += rest_of_feedback(&*db.get().await?, &subject.filter(organisation), mode, &salt).await?;
    if let ErasureSubject::User(name) = subject {
        let mut db = db.get().await?;
        let tx = db.transaction().await?;
        late::forget_in_figures(&tx, organisation, name).await?;
        tx.commit().await?;
    }
    Ok(erased)
}

/// Answers to a person's requests are found by a mark that `_user` leaves. Traces leave none.
async fn forget_cached_answers(db: &DbQueue, organisation: Uuid, subject: &ErasureSubject) -> Result<(), ApiError> {
    let ErasureSubject::User(name) = subject else { return Ok(()) };
    let mut db = db.get().await?;
    let tx = db.transaction().await?;
    cache_purges::purge(&tx, organisation, None, PurgeTarget::User(purge_tag(name))).await?;
    tx.commit().await?;
    Ok(())
}

/// So that rows of one trace stay together, and nobody can say which it was.
fn salt() -> String {
    Uuid::new_v4().to_string()
}

/// Erases a batch whose bodies are gone, in the transaction of the caller.
async fn apply(
    tx: &impl GenericClient,
    organisation: Uuid,
    found: &LogBatch,
    mode: ErasureMode,
    salt: &String,
) -> Result<Erased, ApiError> {
    const THEIRS: &str =
        "organisation_id = $1 AND (workspace_id, trace_id) IN (SELECT * FROM unnest($2::uuid[], $3::text[]))";
    let mut of_feedback: Vec<&(dyn ToSql + Sync)> = vec![&organisation, &found.workspaces, &found.traces];
    let stored = StoredBodies::for_logs(organisation, found);
    let (logs, feedback) = match mode {
        ErasureMode::Delete => {
            (erasure::delete(tx, organisation, found).await?, format!("DELETE FROM feedback WHERE {THEIRS}"))
        }
        ErasureMode::Anonymise => {
            of_feedback.push(salt);
            (
                erasure::anonymise(tx, organisation, found, salt).await?,
                format!("UPDATE feedback SET metadata = '{{}}', trace_id = {} WHERE {THEIRS}", nameless("$4")),
            )
        }
    };
    let feedback = tx.execute(&feedback, &of_feedback).await?;
    late::remember_bodies(tx, &stored.named).await?;
    let exports = exports::empty(tx, organisation, &found.workspaces, &found.times).await?;
    Ok(Erased { logs, bodies: stored.count.min(logs), feedback, exports })
}

/// Feedback that names the subject itself, logged or not.
async fn rest_of_feedback(
    db: &impl GenericClient,
    filter: &Filter,
    mode: ErasureMode,
    salt: &String,
) -> Result<u64, ApiError> {
    let mut values = filter.values();
    let sql = match mode {
        ErasureMode::Delete => format!("DELETE FROM feedback WHERE {}", filter.sql()),
        ErasureMode::Anonymise => {
            values.push(salt);
            let fresh = nameless(&format!("${}", values.len()));
            format!("UPDATE feedback SET metadata = '{{}}', trace_id = {fresh} WHERE {}", filter.sql())
        }
    };
    Ok(db.execute(&sql, &values).await?)
}

impl Erased {
    pub fn shown(self) -> Value {
        json!({ "logs": self.logs, "bodies": self.bodies, "feedback": self.feedback, "exports": self.exports })
    }

    fn add(&mut self, more: Self) {
        self.logs += more.logs;
        self.bodies += more.bodies;
        self.feedback += more.feedback;
        self.exports += more.exports;
    }
}

impl std::fmt::Display for Erased {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { logs, bodies, feedback, exports } = self;
        write!(f, "{logs} logs, {bodies} bodies, {feedback} feedbacks, the files of {exports} exports")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_subject_is_named() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(ErasureSubject::from_user_or_trace(some("ada"), None), Some(ErasureSubject::User("ada".into())));
        assert_eq!(ErasureSubject::from_user_or_trace(None, some("t")), Some(ErasureSubject::Trace("t".into())));
        assert_eq!(ErasureSubject::from_user_or_trace(some(""), some("t")), Some(ErasureSubject::Trace("t".into())));
        for (user, trace) in [(None, None), (some("ada"), some("t")), (some(""), None)] {
            assert_eq!(ErasureSubject::from_user_or_trace(user, trace), None);
        }
    }

    #[test]
    fn what_is_erased_is_of_one_organisation() {
        for subject in [ErasureSubject::User("ada".into()), ErasureSubject::Trace("t".into())] {
            assert!(subject.filter(Uuid::nil()).sql().starts_with("organisation_id = $1 AND "), "{subject:?}");
        }
    }
}
