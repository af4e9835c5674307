//! The tokens of a request whose provider cannot count them: counted with the vocabulary that comes closest to the model's.
//! Agents ask before each turn and give up without an answer; that it is an estimate is said in a header.

use super::answer::{AnswerSource, StoredAnswer};
use crate::limits::usage::prompt_tokens;
use crate::request::body::Fields;
use crate::request::classify::Endpoint;
use crate::request::refusal::Refusal;
use crate::runtime::heavy::heavy;
use crate::runtime::tenant_share::Tenant;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use pingora_http::ResponseHeader;
use serde_json::json;

static TOKEN_COUNT: HeaderName = HeaderName::from_static("x-gateway-token-count");

/// An answer in the words of the client's own route, and its body.
pub(super) async fn estimated_count(
    endpoint: Endpoint,
    tenant: Tenant,
    model: String,
    body: Bytes,
    fields: &Fields<'_>,
) -> Result<(AnswerSource, Bytes), Refusal> {
    let is_google = endpoint.native_route().is_some();
    let (asked, answered) = match is_google {
        true => (&["contents", "generateContentRequest"][..], "totalTokens"),
        false => (&["messages"][..], "input_tokens"),
    };
    if !asked.iter().any(|name| fields.get(name).is_some()) {
        return Err(Refusal::invalid_parameter(format!("`{}` is missing", asked[0]), asked[0]));
    }
    // The vocabulary is read when it is first needed, which takes a moment.
    let counted = heavy(tenant, move || prompt_tokens(&model, &body)).await;
    let tokens = counted.ok_or_else(Refusal::internal)?;
    let mut head = ResponseHeader::build_no_case(200, Some(4)).map_err(|_| Refusal::internal())?;
    for (name, value) in [(&header::CONTENT_TYPE, "application/json"), (&TOKEN_COUNT, "estimated")] {
        head.insert_header(name, HeaderValue::from_static(value)).map_err(|_| Refusal::internal())?;
    }
    let body = Bytes::from(json!({ answered: tokens }).to_string());
    Ok((AnswerSource::from(StoredAnswer::new(head, [])), body))
}
