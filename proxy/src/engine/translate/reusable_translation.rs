//! What was written for a target, kept for the next try of the same one: neither is the conversation read and written again,
//! nor are its media fetched.

use super::TranslatedCall;
use crate::catalog::providers::Provider;
use crate::catalog::target::Target;
use crate::request::receive::MemoryShare;
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use std::sync::Arc;

pub(in crate::engine) struct ReusableTranslation<'e> {
    written: Box<(TranslatedCall, MemoryShare<'e>)>,
    /// Its place in the plan.
    option: HeaderValue,
    /// Before the config changed it.
    body: Bytes,
    model: Option<String>,
    provider: Arc<Provider>,
    placed: Vec<(String, String)>,
    called: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl<'e> ReusableTranslation<'e> {
    pub fn new(
        written: Box<(TranslatedCall, MemoryShare<'e>)>,
        option: &HeaderValue,
        target: &Target,
        model: Option<&str>,
        body: &Bytes,
    ) -> Self {
        Self {
            written,
            option: option.clone(),
            body: body.clone(),
            model: model.map(str::to_owned),
            provider: target.provider.clone(),
            placed: target.placed.clone(),
            called: target.called.clone(),
            headers: target.headers.clone(),
        }
    }

    /// Whether it is what this target would be sent now: an account may have changed since the last try.
    pub fn is_for(&self, option: &HeaderValue, target: &Target, model: Option<&str>, body: &Bytes) -> bool {
        let is_same_body = self.body.as_ptr() == body.as_ptr() && self.body.len() == body.len();
        is_same_body
            && self.option == *option
            && self.model.as_deref() == model
            && Arc::ptr_eq(&self.provider, &target.provider)
            && self.placed == target.placed
            && self.called == target.called
            && self.headers == target.headers
    }

    pub fn call(&self) -> &TranslatedCall {
        &self.written.0
    }
}
