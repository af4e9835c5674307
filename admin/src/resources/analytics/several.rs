//! Several questions at once: what a page of graphs shows is asked in one request, takes one turn, and is of one moment. Each
//! question is one that another operation answers alone, read, checked and answered by the same code.

mod docs;
mod sent;

use super::asked::{Admitted, Asked, Question};
use super::graphs::GraphQuestion;
use super::groups::GroupList;
use super::lists::{CacheSummary, ListGraph};
use crate::app::App;
use crate::crud::{Answer, Routes};
use crate::http::ApiError;
use crate::identity::Call;
use crate::log_data::{LogView, filters, snapshot};
use axum::Json;
use axum::extract::State;
use sent::Sent;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio_postgres::Transaction;

const PATH: &str = "/analytics/query";
const MAX_QUESTIONS: usize = 12;
/// After so long no further question is begun: until the answer is there, it holds a turn that others wait for, and a snapshot
/// behind which nothing is tidied up.
const MAX_TIME: Duration = Duration::from_secs(15);

pub fn routes() -> Routes {
    Routes::default().post(PATH, query).describe([docs::docs()])
}

enum AnyQuestion {
    Graph(GraphQuestion),
    ListGraph(ListGraph),
    Groups(GroupList),
    Cache(CacheSummary),
}

async fn query(State(app): State<App>, call: Call) -> Answer {
    let sent: Sent = call.body()?;
    let questions = sent.questions()?;
    let asked = sent.logs(call.query())?;
    // What is wrong with a filter is known before anything is waited for.
    filters::conditions(&asked).map_err(sent::in_body)?;
    let mut admitted = Admitted::wait(&app, &call, &asked).await.map_err(sent::in_body)?;
    for question in &questions {
        question.check(&admitted.asked.question.view)?;
    }
    let tx = snapshot(&mut admitted.db).await?;
    let begun = Instant::now();
    let mut answers = Vec::with_capacity(questions.len());
    for question in &questions {
        if begun.elapsed() > MAX_TIME {
            return Err(ApiError::TooSlow);
        }
        answers.push(question.answer(&tx, &admitted.asked).await.map_err(sent::in_body)?);
    }
    tx.commit().await?;
    Ok(Json(json!({ "object": "analytics-answers", "answers": answers })))
}

impl AnyQuestion {
    fn check(&self, view: &LogView) -> Result<(), ApiError> {
        match self {
            Self::Graph(question) => question.check(view),
            Self::ListGraph(question) => question.check(view),
            Self::Groups(question) => question.check(view),
            Self::Cache(question) => question.check(view),
        }
    }

    async fn answer(&self, tx: &Transaction<'_>, asked: &Asked) -> Result<Value, ApiError> {
        match self {
            Self::Graph(question) => question.answer(tx, asked).await,
            Self::ListGraph(question) => question.answer(tx, asked).await,
            Self::Groups(question) => question.answer(tx, asked).await,
            Self::Cache(question) => question.answer(tx, asked).await,
        }
    }
}
