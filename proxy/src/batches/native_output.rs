//! The output of a batch at a provider that speaks OpenAI's own interface, which has no path for it: the batch is asked for
//! its output file, and that is passed on as it is.

use crate::batches::ProviderObjects;
use crate::catalog::models::upstream::{self, ProviderReply};
use crate::context::Visit;
use crate::engine::answer::error_in_openai_form;
use crate::engine::prepare::{ProviderHeaders, upstream_head};
use crate::relay::passage::Passage;
use crate::relay::{RelayAsk, RelayStep};
use crate::request::headers::GatewayHeaders;
use crate::request::receive::MemoryShare;
use crate::request::refusal::Refusal;
use crate::wire::codecs::jobs::{MAX_OBJECT, escaped};
use bytes::Bytes;
use http::{Method, header};
use pingora_http::RequestHeader;
use serde_json::Value;
use shared::providers::Family;

/// The id of the batch whose output is asked for.
pub fn asked_output<'p>(head: &RequestHeader, path: &'p str) -> Option<&'p str> {
    let (Family::Batches, rest) = Family::from_path(&head.method, path)? else { return None };
    let id = rest.strip_prefix('/')?.strip_suffix("/output")?;
    (head.method == Method::GET && !id.is_empty() && !id.contains('/')).then_some(id)
}

impl ProviderObjects {
    pub async fn open_native_output(
        &self,
        ask: RelayAsk,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<RelayStep, Refusal> {
        let id = asked_output(head, &ask.path).ok_or_else(Refusal::internal)?;
        let batch = self.router.passage(ask.at(format!("/batches/{id}")), head, headers, visit)?;
        let reply = self.ask_for_batch(&batch, head, headers).await?;
        if !(200..300).contains(&reply.status) {
            let body = error_in_openai_form(reply.status, reply.body, &batch.target.provider.name);
            return Ok(RelayStep::Page { status: reply.status, body });
        }
        let reply: Value = serde_json::from_slice(&reply.body)
            .map_err(|error| Refusal::invalid_upstream_response(&batch.target.provider.name, error))?;
        let file = reply["output_file_id"].as_str().filter(|id| !id.is_empty()).ok_or_else(Refusal::no_batch_output)?;
        let file = escaped(file);
        let passage = self.router.passage(ask.at(format!("/files/{file}/content")), head, headers, visit)?;
        Ok(RelayStep::Passage(Box::new(passage)))
    }

    async fn ask_for_batch(
        &self,
        batch: &Passage,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
    ) -> Result<ProviderReply, Refusal> {
        let target = &batch.target;
        self.calls.secrets.gather(target).await?;
        let meant = ProviderHeaders::from_headers(headers);
        let (mut request, unsigned) = upstream_head(target, &batch.path_and_query, head, &meant, None, &self.aliases)?;
        request.method = Method::GET;
        request.remove(&header::CONTENT_TYPE);
        if let Some(credential) = unsigned {
            Box::pin(self.calls.authorise(target, &credential, &mut request, &[])).await?;
        }
        let (_, caller, _) = batch.asked();
        let mut share = MemoryShare::none(&self.body_limits.memory, caller.tenant());
        upstream::ask(&self.calls.dialer, target, request, Bytes::new(), MAX_OBJECT, &mut share).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_output_of_one_batch_is_meant() {
        for (method, path, id) in [
            ("GET", "/batches/b-1/output", Some("b-1")),
            ("GET", "/batches/b-1", None),
            ("GET", "/batches//output", None),
            ("GET", "/batches/a/b/output", None),
            ("POST", "/batches/b-1/output", None),
            ("GET", "/files/b-1/output", None),
        ] {
            let head = RequestHeader::build(method, b"/", None).unwrap();
            assert_eq!(asked_output(&head, path), id, "{method} {path}");
        }
    }
}
