//! A batch that was started at a provider and not noted is found again. Where the provider keeps metadata or labels it is known
//! by them, or by its input, which no other batch has; Bedrock makes one batch for one token, so that it is looked for only to be
//! stopped; and Anthropic's are told by their time and length.

use super::DayBatches;
use super::public_id;
use super::start::{OURS, StartTries, asked};
use super::trouble::{Trouble, object};
use crate::batches::provider_jobs::{JobQuestion, JobTarget};
use crate::batches::record::BatchRecord;
use crate::wire::codecs::jobs::JobVerb;
use serde_json::Value;

/// By how much the provider's clock may differ from ours, in seconds.
const SKEW: i64 = 60;
/// How long a request for a batch may have been under way, in seconds.
const UNDER_WAY: i64 = 180;
/// Of a list, each of a hundred.
const MAX_PAGES: usize = 20;

impl DayBatches {
    /// Before one is started.
    pub(super) async fn started_before(&self, job: &JobTarget, batch: &BatchRecord) -> Result<Option<Value>, Trouble> {
        match job.codec().map(|codec| codec.name()) {
            None | Some("vertex_batches") => self.with_our_input(job, batch).await,
            Some(_) => Ok(None),
        }
    }

    /// Before one is given up.
    pub(super) async fn started_unknown(&self, job: &JobTarget, batch: &BatchRecord) -> Result<Option<Value>, Trouble> {
        match (job.codec().map(|codec| codec.name()), StartTries::noted(batch)) {
            (Some("message_batches"), Some(tries)) => self.started_since(job, batch, tries).await,
            (Some("message_batches"), None) => Ok(None),
            _ => self.with_our_input(job, batch).await,
        }
    }

    async fn with_our_input(&self, job: &JobTarget, batch: &BatchRecord) -> Result<Option<Value>, Trouble> {
        let ours = public_id(batch);
        let is_ours = |one: &Value| {
            let input = one["input_file_id"].as_str();
            one["metadata"][OURS].as_str() == Some(&*ours)
                || input.is_some() && input == batch.provider_input_file_id.as_deref()
        };
        let since = StartTries::noted(batch).map(|tries| tries.first);
        Ok(self.listed(job, batch, since, is_ours).await?.pop())
    }

    /// The only batch of this length that was made when ours may have been, and that no other batch of ours is known to have.
    pub(super) async fn started_since(
        &self,
        job: &JobTarget,
        batch: &BatchRecord,
        tries: StartTries,
    ) -> Result<Option<Value>, Trouble> {
        let mut alike = self.listed(job, batch, Some(tries.first), |one| is_alike(one, tries)).await?;
        let ids: Vec<&str> = alike.iter().filter_map(|one| one["id"].as_str()).collect();
        let known = self.batches.known_at_providers(&ids).await?;
        alike.retain(|one| !known.iter().any(|known| one["id"].as_str() == Some(known.as_str())));
        let only = alike.pop();
        Ok(only.filter(|_| alike.is_empty()))
    }

    /// Those of the provider's batches that are meant. Without a time none has been tried yet, and the newest will do.
    async fn listed(
        &self,
        job: &JobTarget,
        batch: &BatchRecord,
        since: Option<i64>,
        is_meant: impl Fn(&Value) -> bool,
    ) -> Result<Vec<Value>, Trouble> {
        let (mut meant, mut after) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let question = JobQuestion { after, ..asked(batch, JobVerb::List, "") };
            let mut page = object(&self.jobs.ask_job(job, question).await?)?;
            after = since.and_then(|since| next_page(&page, since));
            if let Value::Array(data) = page["data"].take() {
                meant.extend(data.into_iter().filter(|one| is_meant(one)));
            }
            if after.is_none() {
                break;
            }
        }
        Ok(meant)
    }
}

/// By what the following page is asked for. Lists begin with the newest: one that ends before that time needs no other.
fn next_page(page: &Value, since: i64) -> Option<String> {
    let last = page["data"].as_array().and_then(|data| data.last())?;
    let is_early = last["created_at"].as_i64().is_some_and(|at| at < since - SKEW);
    let next = page["last_id"].as_str().filter(|id| !id.is_empty() && id.len() <= 2048);
    next.filter(|_| page["has_more"] == true && !is_early).map(str::to_owned)
}

fn is_alike(one: &Value, tries: StartTries) -> bool {
    let times = tries.first - SKEW..=tries.last.max(tries.first) + UNDER_WAY + SKEW;
    one["created_at"].as_i64().is_some_and(|at| times.contains(&at))
        && one["request_counts"]["total"].as_u64() == Some(tries.rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_batch_that_was_started_and_not_noted_is_told_by_its_time_and_length() {
        let one = |at: i64, rows: u64| json!({ "created_at": at, "request_counts": { "total": rows } });
        let tries = StartTries { first: 1000, last: 2000, rows: 3 };
        for (reply, expected) in [
            (one(1000, 3), true),
            (one(940, 3), true),
            (one(939, 3), false),
            (one(2240, 3), true),
            (one(2241, 3), false),
            (one(1000, 4), false),
            (json!({ "id": "odd" }), false),
        ] {
            assert_eq!(is_alike(&reply, tries), expected, "{reply}");
        }
    }

    #[test]
    fn a_list_is_read_up_to_the_time_that_matters() {
        let page =
            |at: i64, has_more: bool| json!({ "data": [{ "created_at": at }], "has_more": has_more, "last_id": "l" });
        assert_eq!(next_page(&page(1000, true), 1000).as_deref(), Some("l"));
        assert_eq!(next_page(&page(900, true), 1000), None, "what follows is earlier still");
        assert_eq!(next_page(&page(1000, false), 1000), None);
        assert_eq!(next_page(&json!({ "data": [], "has_more": true, "last_id": "l" }), 1000), None);
        assert_eq!(next_page(&json!({}), 1000), None);
    }
}
