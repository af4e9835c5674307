//! What a translation would do, for whoever only wants to know: where the target is asked, in which format, and what it would
//! not be told. Nothing is fetched.

use super::{TranslationInputs, client_codec, fill, is_own, way};
use crate::catalog::target::Target;
use crate::engine::remote_media::stand_in;
use crate::request::body::Fields;
use crate::request::classify::Endpoint;
use crate::request::refusal::Refusal;
use shared::providers::Way;

/// How a target would be asked: its path, and the codec if the body would be translated. None where the path is the same for
/// every request.
pub(crate) fn explained(
    target: &Target,
    endpoint: Endpoint,
    fields: &Fields<'_>,
    model: &str,
) -> Option<Result<(String, Option<String>), Refusal>> {
    let user = fields.text("user");
    let user = user.as_deref();
    match way(&target.provider.row, endpoint, target.foundation().unwrap_or(model))? {
        Way::Native(_) | Way::Mapped(_) => None,
        Way::Placed(path) => Some(fill(path, target, [model; 2], user).map(|path| (path, None))),
        Way::Reshaped(wire) => {
            let path = fill(&wire.path, target, [&wire.model_name(model), model], user);
            Some(path.map(|path| (path, Some(wire.codec.to_string()))))
        }
        Way::Translated(wire) => {
            let place = wire.place(fields.is_true("stream"), target.has_own_base());
            let path = fill(place, target, [&wire.model_name(model), model], user);
            let is_own = client_codec(endpoint).is_some_and(|client| is_own(wire, client));
            Some(path.map(|path| (path, (!is_own).then(|| wire.codec.to_string()))))
        }
    }
}

impl TranslationInputs<'_> {
    /// What the target would not be told, or why the request cannot be written for it. None where it takes the body as it is.
    pub(crate) fn dry_run(&self) -> Result<Option<Vec<String>>, Refusal> {
        let call = match self.conversation()? {
            None => self.pass()?,
            Some(mut conversation) => {
                if conversation.wire.takes_media_as_bytes {
                    stand_in(&mut conversation.request, conversation.provider.format());
                }
                Some(self.written(conversation)?)
            }
        };
        Ok(call.map(|call| call.dropped))
    }
}
