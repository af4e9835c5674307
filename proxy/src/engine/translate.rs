//! Translate out: what a target is sent where it does not take the client's body as it is. The edited body is read once
//! with the codec of the client's route and written once with the codec of the target's wire; a path with places in it is
//! filled. What belongs to the way back goes along as a `Translation`.

mod answer_id;
pub(crate) mod explained;
mod memory;
mod place;
mod reusable_translation;

pub(super) use answer_id::answer_id;
pub(crate) use explained::explained;
pub(crate) use memory::memory_to_translate;
pub(crate) use place::{fill, own_address};
pub(super) use reusable_translation::ReusableTranslation;

use super::Engine;
use super::answer::{Reshaping, Translation, WireDialect};
use super::betas;
use super::native_call::without_path_fields;
use super::remote_media::has_remote_media;
use super::repair::repaired;
use crate::catalog::target::Target;
use crate::request::classify::Endpoint;
use crate::request::native_route::NativeRoute;
use crate::request::receive::MemoryShare;
use crate::request::refusal::Refusal;
use crate::runtime::tenant_share::Tenant;
use crate::wire::codecs;
use crate::wire::codecs::foreign_tools;
use crate::wire::codecs::objects;
use crate::wire::codecs::objects::{AskedObject, form};
use crate::wire::codecs::{AnswerOptions, Codec, CodecError, Dropped, GeminiThinking, RequestOptions, ThinkingStyle};
use crate::wire::conversation::{Request, WireFormat};
use bytes::Bytes;
use http::{HeaderValue, Method};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use shared::cost::prices::{ModelCapabilities, ThinkingWay};
use shared::providers::{Family, NotOffered, PathTemplate, ProviderEntry, Way, Wire};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// No vendor takes a larger conversation; reading one takes several times its size.
pub(super) const MAX_SIZE: usize = 64 << 20;

/// What a target is asked, in its own words.
pub(super) struct TranslatedCall {
    /// Its address, where that is not the target's.
    pub base_url: Option<Box<str>>,
    /// With its query, if it has one.
    pub path: String,
    pub body: Bytes,
    /// Of a body that is no JSON.
    pub content_type: Option<HeaderValue>,
    pub wire: WireDialect,
    /// Whether the target is asked for a stream.
    pub is_stream: bool,
    /// None where the answer is in the client's format already.
    pub back: Option<WayBack>,
    /// What could not be said, in the client's words.
    pub dropped: Vec<String>,
}

/// How an answer becomes the client's.
pub(super) enum WayBack {
    Conversation(Arc<Translation>),
    Object(Arc<Reshaping>),
}

/// What of a request decides how it is written for its target.
pub(crate) struct TranslationInputs<'t> {
    pub endpoint: Endpoint,
    pub target: &'t Target,
    /// As the config leaves it.
    pub body: &'t Bytes,
    /// As the target is asked for it.
    pub model: Option<&'t str>,
    /// The caller's own user, which is part of some paths.
    pub user: Option<Cow<'t, str>>,
    pub is_strict: bool,
    /// What the model takes.
    pub capabilities: ModelCapabilities,
    /// Anthropic's version that the caller or the account insists on.
    pub anthropic_version: Option<&'t str>,
    /// Anthropic's betas that it is not told of in a header.
    pub betas: &'t [&'t str],
    pub request_id: &'t str,
    /// When the whole request must be over.
    pub deadline: Option<Instant>,
}

/// A conversation that was read and is to be written for a target.
struct Conversation<'r> {
    wire: &'r Wire,
    client: &'static dyn Codec,
    provider: &'static dyn Codec,
    request: Request,
}

/// A request as far as it was read for a target.
pub(super) struct ReadRequest<'r, 'e> {
    /// None where it is no conversation, or goes as it is.
    conversation: Option<Conversation<'r>>,
    share: MemoryShare<'e>,
}

impl ReadRequest<'_, '_> {
    /// Whether media must be fetched before it is written.
    pub fn fetches_media(&mut self) -> bool {
        self.conversation.as_mut().is_some_and(|conversation| {
            let format = conversation.provider.format();
            conversation.wire.takes_media_as_bytes && has_remote_media(&mut conversation.request, format)
        })
    }
}

impl Engine {
    /// Reads a request that is to be written for a target, and counts what that takes.
    pub(super) fn read_to_translate<'r>(
        &self,
        asked: &'r TranslationInputs<'_>,
        tenant: Tenant,
    ) -> Result<ReadRequest<'r, '_>, Refusal> {
        let mut share = MemoryShare::none(&self.body_limits.memory, tenant);
        if asked.is_written() {
            if asked.body.len() > MAX_SIZE {
                return Err(Refusal::body_too_large(MAX_SIZE));
            }
            share.grow(memory_to_translate(asked.body))?;
        }
        Ok(ReadRequest { conversation: asked.conversation()?, share })
    }

    /// Writes a request for a target that does not take it as it is, with the memory that this takes. Waits for nothing but
    /// media that must be fetched.
    pub(super) async fn translate<'e>(
        &'e self,
        asked: &TranslationInputs<'_>,
        read: ReadRequest<'_, 'e>,
    ) -> Result<Option<Box<(TranslatedCall, MemoryShare<'e>)>>, Refusal> {
        let ReadRequest { conversation, mut share } = read;
        let translated = match conversation {
            None => asked.pass()?,
            Some(mut conversation) => {
                if conversation.wire.takes_media_as_bytes {
                    let (request, format) = (&mut conversation.request, conversation.provider.format());
                    self.calls.fetch_media(request, format, &mut share, asked.deadline).await?;
                }
                Some(asked.written(conversation)?)
            }
        };
        // In a box, as all that is rare: every request would carry it.
        Ok(translated.map(|translated| Box::new((translated, share))))
    }
}

impl TranslationInputs<'_> {
    /// Whether the body is read and written anew.
    fn is_written(&self) -> bool {
        match (self.way(), client_codec(self.endpoint)) {
            (Some(Way::Translated(wire)), Some(client)) => !is_own(wire, client),
            (Some(Way::Reshaped(_)), _) => true,
            _ => false,
        }
    }

    fn way(&self) -> Option<Way<'_>> {
        let model = self.target.foundation().or(self.model).unwrap_or_default();
        way(&self.target.provider.row, self.endpoint, model)
    }

    /// What is to be written anew in another format of conversations.
    fn conversation(&self) -> Result<Option<Conversation<'_>>, Refusal> {
        let Some(Way::Translated(wire)) = self.way() else { return Ok(None) };
        let client = client_codec(self.endpoint).ok_or_else(Refusal::internal)?;
        if is_own(wire, client) {
            return Ok(None);
        }
        let provider = codecs::by_name(&wire.codec).ok_or_else(Refusal::internal)?;
        let request = client.read_request(self.body).map_err(refusal)?;
        Ok(Some(Conversation { wire, client, provider, request }))
    }

    /// Everything else. None where the body goes as it is to a path that is the same for every request.
    fn pass(&self) -> Result<Option<TranslatedCall>, Refusal> {
        let mut passed = self.passed_in_its_way()?;
        if let Some(call) = &mut passed {
            call.dropped.extend(betas::left_out(self.betas));
        }
        Ok(passed)
    }

    fn passed_in_its_way(&self) -> Result<Option<TranslatedCall>, Refusal> {
        match (self.way(), self.endpoint.native_route()) {
            (None, Some(_)) => {
                let why = NotOffered::Missing(self.endpoint.family());
                Err(Refusal::endpoint_not_supported(&self.target.provider.name, why))
            }
            (None | Some(Way::Native(_) | Way::Mapped(_)), _) => Ok(None),
            (Some(Way::Placed(path)), _) => self.passed(path).map(Some),
            (Some(Way::Translated(wire)), Some(route)) => self.passed_native(wire, route).map(Some),
            (Some(Way::Translated(wire)), None) => self.passed(wire.place(false, self.target.has_own_base())).map(Some),
            (Some(Way::Reshaped(wire)), Some(route)) => self.passed_native(wire, route).map(Some),
            (Some(Way::Reshaped(wire)), None) => self.reshaped(wire).map(Some),
        }
    }

    fn passed(&self, path: &PathTemplate) -> Result<TranslatedCall, Refusal> {
        Ok(TranslatedCall {
            base_url: None,
            path: self.fill(path, self.model.unwrap_or_default())?,
            body: self.body.clone(),
            content_type: None,
            wire: WireDialect::of_family(self.endpoint.family()),
            is_stream: false,
            back: None,
            dropped: Vec::new(),
        })
    }

    /// In the format of the vendor's own route, to that vendor.
    fn passed_native(&self, wire: &Wire, route: NativeRoute) -> Result<TranslatedCall, Refusal> {
        let name = wire.model_name(self.model.unwrap_or_default());
        Ok(TranslatedCall {
            base_url: None,
            path: self.fill(wire.place(route.is_stream(), self.target.has_own_base()), &name)?,
            body: without_path_fields(self.body)?,
            content_type: None,
            wire: if route.is_google() { WireDialect::Gemini } else { WireDialect::Converse },
            is_stream: route.is_stream(),
            back: None,
            dropped: Vec::new(),
        })
    }

    fn written(&self, conversation: Conversation<'_>) -> Result<TranslatedCall, Refusal> {
        let Conversation { wire, client, provider, mut request } = conversation;
        let asked = self.model.or(request.model.as_deref()).unwrap_or_default();
        let name = self.target.deployment().map_or_else(|| wire.model_name(asked), str::to_owned);
        let row = &self.target.provider.row;
        let is_claude = is_claude(self.target.foundation().unwrap_or(&name));
        let takes_betas = match provider.format() {
            WireFormat::Messages => true,
            WireFormat::Converse => is_claude,
            _ => false,
        };
        let (betas, unknown_betas) = match takes_betas {
            true => betas::in_body(self.target, self.betas),
            false => (Vec::new(), self.betas.to_vec()),
        };
        let options = RequestOptions {
            model: Some(&name),
            default_max_tokens: self.capabilities.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            has_sampling: self.capabilities.sampling != Some(false)
                && self.anthropic_version.is_none_or(|version| version < SAMPLING_UNTIL),
            thinking: match self.capabilities.thinking {
                Some(ThinkingWay::Adaptive) => ThinkingStyle::Adaptive,
                _ => ThinkingStyle::Budget,
            },
            gemini_thinking: match self.capabilities.thinking {
                Some(ThinkingWay::Level) => GeminiThinking::Level,
                _ => GeminiThinking::Budget,
            },
            anthropic_version: wire.anthropic_version.as_deref(),
            chat_max_tokens: if wire.has_max_completion_tokens { "max_completion_tokens" } else { "max_tokens" },
            asks_for_usage: row.has_stream_usage,
            betas: &betas,
            is_claude,
            is_strict: self.is_strict,
            is_unstored: client.format() != WireFormat::Responses,
            placed: &self.target.placed,
        };
        let mut body = Vec::with_capacity(self.body.len() + 512);
        let mut unfit = Dropped::default();
        foreign_tools::fit(&mut request, provider.format(), row.has_web_search, &mut unfit);
        fit_user(&mut request, row.longest_user, &mut unfit);
        let unsaid = provider.write_request(&request, &options, &mut body).map_err(refusal)?;
        let mut dropped: Vec<String> = unfit.names().chain(unsaid.names()).map(str::to_owned).collect();
        dropped.extend(betas::left_out(&unknown_betas));
        let mut body = Bytes::from(body);
        if provider.format() == WireFormat::Chat && !row.repairs.is_empty() {
            let (mended, excluded) = repaired(&body, &row.repairs);
            body = mended;
            dropped.extend(excluded);
        }
        let options = AnswerOptions {
            is_strict: self.is_strict,
            id: answer_id(client.format(), self.request_id).into(),
            created: now(),
            model: self.model.unwrap_or_default().to_owned().into(),
            provider: self.target.provider.name.clone().into(),
            include_usage: request.settings.include_usage == Some(true),
            request: None,
        };
        let is_stream = request.settings.is_streaming;
        let path = self.fill(wire.place(is_stream, self.target.has_own_base()), &name)?;
        // Its answers repeat what was asked.
        let request = (client.format() == WireFormat::Responses).then(|| Arc::new(request));
        let options = AnswerOptions { request, ..options };
        let back = Translation { provider, client, options, wants_stream: is_stream };
        let wire = WireDialect::of_format(provider.format());
        let back = Some(WayBack::Conversation(Arc::new(back)));
        Ok(TranslatedCall { base_url: None, path, body, content_type: None, wire, is_stream, back, dropped })
    }

    /// Of a family that is one object there and one back.
    fn reshaped(&self, wire: &Wire) -> Result<TranslatedCall, Refusal> {
        let codec = objects::by_name(&wire.codec).ok_or_else(Refusal::internal)?;
        let words = if self.endpoint.family() == Family::CountTokens { WireFormat::Messages } else { WireFormat::Chat };
        let client = codecs::by_format(words).ok_or_else(Refusal::internal)?;
        let request: Map<String, Value> = serde_json::from_slice(self.body).map_err(Refusal::invalid_json)?;
        let asked = AskedObject {
            id: self.request_id.to_owned(),
            model: self.model.unwrap_or_default().to_owned(),
            provider: self.target.provider.name.clone(),
            is_base64: request.get("encoding_format").and_then(Value::as_str) == Some("base64"),
            created: now(),
        };
        let name = wire.model_name(&asked.model);
        let path = self.fill(&wire.path, &name)?;
        let (body, unsaid) =
            codec.write_request(request, self.target.foundation().unwrap_or(&name)).map_err(refusal)?;
        let (body, content_type) = match codec.is_form() {
            true => written_as_form(&body)?,
            false => (body.to_string().into_bytes(), None),
        };
        Ok(TranslatedCall {
            base_url: wire.base_url.clone(),
            path,
            body: Bytes::from(body),
            content_type,
            wire: WireDialect::OpenAi,
            is_stream: false,
            back: Some(WayBack::Object(Arc::new(Reshaping { codec, client, asked }))),
            dropped: unsaid.names().map(str::to_owned).collect(),
        })
    }

    fn fill(&self, path: &PathTemplate, model: &str) -> Result<String, Refusal> {
        fill(path, self.target, [model, self.model.unwrap_or(model)], self.user.as_deref())
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The boundary is one that no caller can guess, and so none of its texts can end a part.
fn written_as_form(body: &Value) -> Result<(Vec<u8>, Option<HeaderValue>), Refusal> {
    let boundary = Uuid::new_v4().simple().to_string();
    let kind = HeaderValue::try_from(format!("multipart/form-data; boundary={boundary}"));
    Ok((form::written(body, &boundary), Some(kind.map_err(|_| Refusal::internal())?)))
}

/// Codecs of rows that count as Google's own clients ask.
const GOOGLES_COUNTS: [&str; 2] = ["gemini_count", "vertex_count"];

/// How a provider is asked for what a client wants at this endpoint.
pub(super) fn way<'r>(row: &'r ProviderEntry, endpoint: Endpoint, model: &str) -> Option<Way<'r>> {
    match endpoint.native_route() {
        None => row.way(endpoint.family(), model),
        // Google's question to Google. Of others it is estimated.
        Some(route) if route.is_count() => row
            .way(Family::CountTokens, model)
            .filter(|way| matches!(way, Way::Reshaped(wire) if GOOGLES_COUNTS.contains(&&*wire.codec))),
        Some(_) => row.conversation_wire(model).map(Way::Translated),
    }
}

/// Whether a provider cannot count tokens for this endpoint, so that the gateway does. Whoever takes any path is asked.
pub(crate) fn is_counted_here(row: &ProviderEntry, endpoint: Endpoint, model: &str) -> bool {
    endpoint.family() == Family::CountTokens
        && way(row, endpoint, model).is_none()
        && (endpoint.native_route().is_some() || row.upstream_path(&Method::POST, endpoint.path()).is_err())
}

/// The codec of the bodies of an endpoint, if they are conversations.
pub(super) fn client_codec(endpoint: Endpoint) -> Option<&'static dyn Codec> {
    let format = match (endpoint.native_route(), endpoint.family()) {
        (Some(NativeRoute::Gemini | NativeRoute::GeminiStream), _) => WireFormat::Gemini,
        (Some(NativeRoute::GeminiCount), _) => return None,
        (Some(NativeRoute::Converse | NativeRoute::ConverseStream), _) => WireFormat::Converse,
        (None, Family::Chat) => WireFormat::Chat,
        (None, Family::Complete) => WireFormat::Completions,
        (None, Family::Messages) => WireFormat::Messages,
        (None, Family::Responses) => WireFormat::Responses,
        (None, _) => return None,
    };
    codecs::by_format(format)
}

/// Whether the client's body is what the wire takes: the same format, and nothing in it that the row changes.
fn is_own(wire: &Wire, client: &dyn Codec) -> bool {
    let is_changed = wire.anthropic_version.is_some() || wire.model_prefix.is_some() || wire.model_folder.is_some();
    let is_changed = is_changed || wire.names_adapter;
    let is_same = match client.format() {
        // Model and stream stand in the path: whatever the row does to them, the body is the same.
        WireFormat::Gemini | WireFormat::Converse => true,
        _ => !is_changed && wire.stream_path.is_none(),
    };
    client.name() == &*wire.codec && is_same
}

/// Some agents put a whole object into the user. A hash stays as much the same for one person, and a part of it would be the same
/// for many.
fn fit_user(request: &mut Request, longest: Option<usize>, unfit: &mut Dropped) {
    let is_longer = |user: &String| longest.is_some_and(|most| user.chars().count() > most);
    if let Some(user) = request.settings.user.as_mut().filter(|user| is_longer(user)) {
        *user = hex::encode(Sha256::digest(user.as_bytes()));
        unfit.note("user (sent as a hash)");
    }
}

/// Where a format demands `max_tokens`, and neither the caller nor the catalogue says one.
const DEFAULT_MAX_TOKENS: u64 = 4096;

/// From this version on Anthropic refuses sampling parameters.
const SAMPLING_UNTIL: &str = "2026-10-21";

/// Whether a Converse model is Anthropic's: its vendor is a part of its id.
fn is_claude(model: &str) -> bool {
    model.contains("anthropic.")
}

pub(crate) fn refusal(error: CodecError) -> Refusal {
    let message = error.to_string();
    match error {
        CodecError::Malformed(why) => Refusal::invalid_json(why),
        CodecError::Unsupported { field, .. } => Refusal::unsupported_parameter(message, &field),
        CodecError::Field { field, .. } | CodecError::TooMany { field, .. } => {
            Refusal::invalid_parameter(message, &field)
        }
        CodecError::Failed(_) | CodecError::CutStream => Refusal::internal(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::providers::{CODECS, CONVERSATIONS, OBJECT_CODECS};

    #[test]
    fn every_name_of_a_codec_in_the_table_is_one() {
        for name in CODECS {
            assert!(codecs::by_name(name).is_some(), "{name}");
        }
        assert_eq!(codecs::CODECS.len() + codecs::shaped::SHAPED.len(), CODECS.len());
        let objects: Vec<&str> = objects::OBJECT_CODECS.iter().map(|codec| codec.name()).collect();
        assert_eq!(objects, OBJECT_CODECS);
        for family in CONVERSATIONS {
            assert!(client_codec(Endpoint::of(family)).is_some(), "{family:?}");
        }
    }
}
