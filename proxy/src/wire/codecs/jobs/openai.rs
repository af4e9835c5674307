//! OpenAI's own batches: nothing is changed. Clients' questions about them are passed on as they are; this is for those that
//! the gateway asks by itself.

use super::{AskedJob, JobAnswer, JobCall, JobCodec, JobReply, JobVerb, escaped};
use crate::wire::codecs::CodecError;
use serde_json::{Value, json};

#[derive(Debug)]
pub(super) struct OpenAiBatches;

impl JobCodec for OpenAiBatches {
    fn name(&self) -> &'static str {
        "openai_batches"
    }

    fn ask(&self, asked: &AskedJob) -> Result<JobCall, CodecError> {
        let one = |after: &str| below(&asked.place, &format!("/{}{after}", escaped(&asked.id)));
        Ok(match asked.verb {
            JobVerb::Create => JobCall::post(asked.place.clone(), &Value::Object(asked.body.clone())),
            JobVerb::List => JobCall::get(listed(&asked.place, &asked.page("limit", "after"))),
            JobVerb::Retrieve => JobCall::get(one("")),
            JobVerb::Cancel => JobCall::post(one("/cancel"), &json!({})),
            JobVerb::Delete | JobVerb::Content | JobVerb::Output => return Err(asked.unmapped()),
        })
    }

    fn read(&self, _: &AskedJob, _: usize, reply: &JobReply) -> Result<JobAnswer, CodecError> {
        reply.json().map(JobAnswer::Json)
    }
}

/// Azure's collections have a query of their own.
fn below(place: &str, rest: &str) -> String {
    match place.split_once('?') {
        Some((path, query)) => format!("{path}{rest}?{query}"),
        None => [place, rest].concat(),
    }
}

fn listed(place: &str, page: &str) -> String {
    match page.strip_prefix('?') {
        Some(pairs) if place.contains('?') => format!("{place}&{pairs}"),
        _ => [place, page].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_may_have_a_query() {
        for (place, one, page) in
            [("/batches", "/batches/b", "/batches?limit=2"), ("/batches?v=1", "/batches/b?v=1", "/batches?v=1&limit=2")]
        {
            assert_eq!((below(place, "/b"), listed(place, "?limit=2")), (one.to_owned(), page.to_owned()));
        }
        assert_eq!(listed("/batches", ""), "/batches");
    }
}
