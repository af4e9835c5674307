//! One row: read, asked through the engine, judged, and its result stored. Whatever happens, it ends in one of three ways: it has
//! a result, it is put back, or its lease runs out and another proxy has it.

use super::group::GroupContext;
use super::under_way::RowUnderWay;
use super::verdict::{AskedRow, Verdict, judge};
use super::{BatchRunner, StepFailure, input_row, output_line, persist};
use crate::batches::record::PREFIX;
use crate::batches::rows::{self, FinishedRow, LeasedRow, PutBack};
use crate::batches::{BatchRow, RowAnswer};
use crate::context::metrics::batches::RowOutcome;
use crate::journal::Record;
use crate::net::in_memory::{InMemoryAnswer, InMemoryClient};
use bytes::Bytes;
use rust_decimal::Decimal;
use shared::amount::Amount;
use shared::batches::{BatchError, MAX_LINE};
use shared::log_store::pack;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// For the whole request; targets have shorter limits of their own.
pub const MAX_REQUEST_TIME: Duration = Duration::from_secs(900);
/// Before a row is read again that the store did not give.
const READ_AGAIN: Duration = Duration::from_secs(5);

/// How it went.
enum RowEnd {
    Result {
        line: Bytes,
        is_answered: bool,
        cost: Option<Amount>,
    },
    /// `why` holds the whole batch up.
    Back(PutBack, Option<BatchError>),
}

impl BatchRunner {
    pub(super) async fn run_row(&self, context: &GroupContext, row: LeasedRow, held: RowUnderWay) {
        let pool = &self.records.pool;
        let (batch, number) = (held.batch(), row.number);
        match self.ask(context, &row, &held).await {
            RowEnd::Result { line, is_answered, cost } => {
                // What is in memory can be compressed.
                let packed = pack(&line).unwrap_or_default();
                drop(line);
                let is_probe = !context.batch.errors.is_empty();
                let finished = FinishedRow { result: &packed, is_answered, cost, is_probe };
                let stored = persist(|| rows::finish_row(pool, batch, number, &finished)).await;
                self.meters.row(match (stored, is_answered) {
                    (Some(true), true) => RowOutcome::Answered,
                    (Some(true), false) => RowOutcome::Failed,
                    (Some(false) | None, _) => RowOutcome::Doubled,
                });
            }
            RowEnd::Back(back, why) => {
                if let Some(why) = &why {
                    persist(|| rows::hold_up(pool, batch, back.wait, why)).await;
                }
                persist(|| rows::put_back(pool, batch, number, self.owner, back)).await;
                self.meters.row(if why.is_some() { RowOutcome::HeldUp } else { RowOutcome::Retried });
            }
        }
    }

    async fn ask(&self, context: &GroupContext, row: &LeasedRow, held: &RowUnderWay) -> RowEnd {
        let failed = |code: &str, message: &str| unasked(context, row, code, message);
        let Some(input) = &context.input else {
            return failed("file_not_found", "the input file was deleted before this row was run");
        };
        let line = match input_row::read_line(&self.files, &context.batch, input, row.at, row.bytes).await {
            Ok(Some(line)) => line,
            Ok(None) => return failed("file_not_found", "the input file was deleted before this row was run"),
            Err(StepFailure) => {
                return RowEnd::Back(PutBack { wait: READ_AGAIN, is_asked: false, is_failure: false }, None);
            }
        };
        if held.cancelled().load(Relaxed) {
            return RowEnd::Back(PutBack { wait: Duration::ZERO, is_asked: false, is_failure: false }, None);
        }
        let Some(body) = input_row::body(&line) else {
            return failed("invalid_json_line", "the input file is not what it was");
        };
        drop(line);
        let deadline = Instant::now() + MAX_REQUEST_TIME;
        let Some((client, _waiter)) = InMemoryClient::post(&context.batch.endpoint, body, MAX_LINE, Some(deadline))
        else {
            return failed("invalid_endpoint", "rows for this endpoint cannot be run");
        };
        let mut client = client.within(held.answer());
        context.options.put_on(client.head_mut());
        let asked = BatchRow {
            caller: context.caller.clone(),
            batch: format!("{PREFIX}{}", context.batch.id),
            number: row.number,
            cancelled: held.cancelled().clone(),
        };
        let answer = Box::pin(self.engine.run_batch_row(&mut client, asked)).await;
        self.end(row, client, &answer).await
    }

    async fn end(&self, row: &LeasedRow, client: InMemoryClient, answer: &RowAnswer) -> RowEnd {
        let retry_after = client.retry_after();
        let (status, body) = match client.into_answer() {
            InMemoryAnswer::Whole { status, body } => (status, body),
            InMemoryAnswer::TooLong => {
                let message = "the answer is longer than a line of an output file may be";
                let line =
                    output_line::unanswered(&row.custom_id, &answer.request_id, "answer_too_long", message, row.asked);
                return RowEnd::Result { line, is_answered: false, cost: self.cost(&answer.records).await };
            }
            InMemoryAnswer::None => (0, Vec::new()),
        };
        let RowAnswer { code, is_asked, is_retried, .. } = *answer;
        let asked = AskedRow { status, code, is_retried, retry_after, retries: row.retries };
        let back = |wait, is_failure| PutBack { wait, is_asked, is_failure };
        match judge(asked) {
            Verdict::Again(wait) => RowEnd::Back(back(wait, true), None),
            Verdict::HoldUp(wait) => {
                let (code, message) = output_line::error_of_body(&body, status);
                RowEnd::Back(back(wait, false), Some(BatchError::new(&code, message)))
            }
            verdict => {
                let line = match status {
                    0 => {
                        let message = "there was no whole answer";
                        output_line::unanswered(&row.custom_id, &answer.request_id, "no_answer", message, row.asked)
                    }
                    status => output_line::answered(&row.custom_id, &answer.request_id, status, &body, row.asked),
                };
                drop(body);
                let cost = self.cost(&answer.records).await;
                RowEnd::Result { line, is_answered: verdict == Verdict::Answered, cost }
            }
        }
    }

    /// What the targets that were asked take for it, in cents, as its logs will say. None when nobody knows.
    async fn cost(&self, records: &[Vec<u8>]) -> Option<Amount> {
        let mut sum: Option<Decimal> = None;
        for bytes in records {
            let Ok(record) = Record::decode(bytes) else { continue };
            if let Some(cost) = self.pricer.price(&record).await.cost {
                sum = Some(sum.unwrap_or_default().saturating_add(cost));
            }
        }
        sum.map(Amount)
    }
}

/// Of a row that nobody can be asked for.
fn unasked(context: &GroupContext, row: &LeasedRow, code: &str, message: &str) -> RowEnd {
    let id = format!("{}-{}", context.batch.id.simple(), row.number);
    let line = output_line::unanswered(&row.custom_id, &id, code, message, row.asked - 1);
    RowEnd::Result { line, is_answered: false, cost: None }
}
