//! A new batch: everything that can be known before its file is read is checked, and nothing is made of what is refused.

use super::owner;
use crate::batches::BatchEndpoints;
use crate::batches::files::PREFIX as FILE;
use crate::batches::new_batch::AskedBatch;
use crate::batches::record::{NewBatch, PREFIX};
use crate::batches::records::Insertion;
use crate::identity::identify::Principal;
use crate::request::refusal::Refusal;
use pingora_http::RequestHeader;
use serde_json::Value;
use shared::batches::MAX_BYTES;
use shared::identity::jwt::VerifiedToken;
use uuid::Uuid;

/// Batches of a workspace that are not over.
const MAX_OPEN: i64 = 100;
/// As the column allows it, with room for how Postgres writes it.
const MAX_TOKEN: usize = 48 << 10;

impl BatchEndpoints {
    pub(crate) async fn create_batch(
        &self,
        caller: &Principal,
        head: &RequestHeader,
        body: &[u8],
    ) -> Result<Value, Refusal> {
        let token = caller.token.as_deref().map(stored).transpose()?;
        let files = self.files.as_ref().ok_or_else(Refusal::files_unavailable)?;
        let asked = AskedBatch::read(body, head, &self.aliases)?;
        if let Some(url) = &asked.options.completion_url {
            self.router.dialer.custom_url(url).map_err(|bad| {
                let message = format!("gateway_options: completion_url cannot be called: {bad}");
                Refusal::invalid_parameter(message, "gateway_options")
            })?;
        }
        let owner = owner(caller);
        let file = files.rows.find(owner, asked.input_file).await?;
        let file = file.ok_or_else(|| Refusal::input_file_not_found(&format!("{FILE}{}", asked.input_file)))?;
        if file.purpose != "batch" {
            let message = "the file was uploaded for another purpose than batch".to_owned();
            return Err(Refusal::invalid_parameter(message, "input_file_id"));
        }
        if file.bytes > MAX_BYTES {
            let message = format!("the file is larger than {MAX_BYTES} bytes, the most that a batch reads");
            return Err(Refusal::invalid_parameter(message, "input_file_id"));
        }
        let new = NewBatch {
            id: Uuid::now_v7(),
            owner,
            api_key: caller.key.id.uuid(),
            token,
            mode: asked.mode,
            endpoint: asked.endpoint.as_str(),
            input_file: asked.input_file,
            model: asked.model,
            gateway_options: asked.options.shown,
            secrets: asked.options.sealed,
            provider_options: asked.provider_options,
            metadata: asked.metadata,
            completion_url: asked.options.completion_url,
        };
        match self.batches.insert(&new, MAX_OPEN, &self.router.sealer).await? {
            Insertion::Made(batch) => {
                tracing::debug!(batch = format!("{PREFIX}{}", batch.id), "a batch was made");
                Ok(batch.to_json(false))
            }
            Insertion::TooMany => Err(Refusal::too_many_batches(MAX_OPEN)),
            Insertion::NotSealed => Err(Refusal::batch_not_sealed()),
        }
    }
}

/// What a token says, as its batch keeps it.
fn stored(token: &VerifiedToken) -> Result<Value, Refusal> {
    let value = serde_json::to_value(token).map_err(|_| Refusal::internal())?;
    match value.to_string().len() > MAX_TOKEN {
        true => Err(Refusal::token_too_long_for_batch()),
        false => Ok(value),
    }
}
