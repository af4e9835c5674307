//! What is captured of one request, target by target. Heads go into one text, bodies stay where they are.

use super::captured::{CapturedBody, without};
use super::{head_lines, mask};
use crate::journal::body_frame::Parts;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use memchr::memmem::Finder;
use pingora_http::RequestHeader;

/// A credential shorter than this would be found in any text.
const MIN_SECRET: usize = 8;
/// The heads of an ordinary request fit in here.
const HEADS: usize = 2048;

/// What may be kept of a request.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Of each body, in bytes.
    pub most: usize,
    /// Whether anything but failures is kept.
    pub is_debug: bool,
}

#[derive(Debug)]
pub struct LoggedExchange {
    rules: Rules,
    /// Further headers the client wants masked.
    sensitive: Option<HeaderValue>,
    /// What the client sent, then what the provider was sent, then what was answered.
    heads: Vec<u8>,
    asked_end: usize,
    sent_end: usize,
    request: CapturedBody,
    /// As the target was asked, where that differs.
    sent: Bytes,
    /// We asked the provider for usage that the client did not ask for.
    asks_usage: bool,
    /// The credential for the provider, to be masked.
    secrets: Vec<HeaderValue>,
    response: CapturedBody,
    keeps_response: bool,
}

impl LoggedExchange {
    pub fn open(rules: Rules, head: &RequestHeader, sensitive: Option<&HeaderValue>) -> Self {
        let mut heads = Vec::with_capacity(HEADS);
        push_url(&mut heads, &head.uri);
        if rules.is_debug {
            head_lines::write(&mut heads, &head.headers, sensitive);
        }
        Self {
            rules,
            sensitive: sensitive.cloned(),
            asked_end: heads.len(),
            sent_end: heads.len(),
            heads,
            request: CapturedBody::default(),
            sent: Bytes::new(),
            asks_usage: false,
            secrets: Vec::new(),
            response: CapturedBody::default(),
            keeps_response: false,
        }
    }

    /// The client's body, or what stands for it, is there.
    pub fn received(&mut self, body: &Bytes) {
        if self.rules.is_debug {
            self.request = CapturedBody::whole(body, self.rules.most);
        }
    }

    /// A piece of the client's body passes.
    pub fn receives(&mut self, piece: &[u8]) {
        if self.rules.is_debug {
            if self.request.length == 0 {
                self.request = CapturedBody::begin_after(&self.heads[..self.asked_end]);
            }
            self.request.gather(piece, self.rules.most);
        }
    }

    /// What was received is received again, from the beginning.
    pub fn receives_again(&mut self) {
        self.request = CapturedBody::default();
    }

    /// Another target, or the same once more: what was sent and answered before is forgotten.
    pub fn turn(&mut self) {
        self.heads.truncate(self.asked_end);
        self.sent_end = self.asked_end;
        self.sent = Bytes::new();
        self.asks_usage = false;
        self.secrets.clear();
        self.response = CapturedBody::default();
        self.keeps_response = false;
    }

    /// The target is asked. `body` is none where the client's own goes on as it is; `asks_usage` where we wish for more
    /// than it did.
    pub fn sends<'h>(
        &mut self,
        authority: &HeaderValue,
        path: &str,
        headers: impl IntoIterator<Item = (&'h HeaderName, &'h HeaderValue)>,
        body: Option<&Bytes>,
        asks_usage: bool,
    ) {
        self.turn();
        if self.rules.is_debug {
            self.heads.extend_from_slice(authority.as_bytes());
            self.heads.extend_from_slice(path.as_bytes());
            self.heads.push(b'\n');
        }
        for (name, value) in headers {
            let name = name.as_str();
            let is_harmless = head_lines::is_harmless_sent(name, value);
            if !is_harmless && (value.is_sensitive() || mask::is_secret(name)) {
                self.secrets.push(value.clone());
            }
            if self.rules.is_debug {
                head_lines::write_sent(&mut self.heads, name, value, is_harmless);
            }
        }
        if self.rules.is_debug {
            let differs = |body: &&Bytes| body.as_ptr() != self.request.whole.as_ptr();
            if let Some(body) = body.filter(differs).filter(|body| body.len() <= self.rules.most) {
                self.sent = body.clone();
            }
            self.asks_usage = asks_usage;
        }
        self.sent_end = self.heads.len();
    }

    /// The head of the answer, as the client gets it.
    pub fn answers(&mut self, status: u16, headers: &HeaderMap) {
        self.heads.truncate(self.sent_end);
        self.response = CapturedBody::begin(headers);
        self.keeps_response = self.rules.is_debug || status >= 400;
        if self.keeps_response {
            head_lines::write(&mut self.heads, headers, self.sensitive.as_ref());
        }
    }

    /// A large piece of the answer, or all of it.
    pub fn piece(&mut self, piece: &Bytes) {
        if self.keeps_response {
            self.response.piece(piece, self.rules.most);
        }
    }

    /// A small piece of the answer.
    pub fn gather(&mut self, piece: &[u8]) {
        if self.keeps_response {
            self.response.gather(piece, self.rules.most);
        }
    }

    /// A text of a session came from the client.
    pub fn hears(&mut self, text: &[u8]) {
        if self.rules.is_debug {
            self.request.line(text, self.rules.most);
        }
    }

    /// A text of a session came from the provider.
    pub fn says(&mut self, text: &[u8]) {
        if self.keeps_response {
            self.response.line(text, self.rules.most);
        }
    }

    /// What comes now belongs to the next response of a session.
    pub fn begin_anew(&mut self) {
        (self.request, self.response) = (CapturedBody::default(), CapturedBody::default());
    }

    /// The client's body, if all of it was kept.
    pub fn asked(&self) -> Bytes {
        let request = &self.request;
        match (request.stored_length() as u64 == request.length, request.more.is_empty()) {
            (true, true) => request.whole.clone(),
            (true, false) => [&request.whole[..], &request.more].concat().into(),
            (false, _) => Bytes::new(),
        }
    }

    /// What goes into the journal; none when only the row does.
    pub fn parts(&mut self) -> Option<Parts<'_>> {
        if !self.rules.is_debug && !self.keeps_response {
            return None;
        }
        self.scrub();
        Some(Parts {
            heads: &self.heads,
            asked_end: self.asked_end,
            sent_end: self.sent_end,
            request: &self.request,
            sent: &self.sent,
            asks_usage: self.asks_usage,
            is_debug: self.rules.is_debug,
            response: &self.response,
        })
    }

    /// Some providers repeat a key that they refuse.
    fn scrub(&mut self) {
        for secret in &self.secrets {
            let bytes = secret.as_bytes();
            let bytes = bytes.iter().position(|byte| *byte == b' ').map_or(bytes, |space| &bytes[space + 1..]);
            if bytes.len() < MIN_SECRET {
                continue;
            }
            let end = Finder::new(&bytes[bytes.len() - MIN_SECRET..]);
            self.response.scrub(bytes, &end);
            let answered = &self.heads[self.sent_end..];
            if end.find(answered).is_some() {
                let masked = without(answered, bytes);
                self.heads.truncate(self.sent_end);
                self.heads.extend_from_slice(&masked);
            }
        }
    }
}

fn push_url(heads: &mut Vec<u8>, uri: &Uri) {
    match uri.query() {
        None => heads.extend_from_slice(uri.path().as_bytes()),
        Some(_) => heads.extend_from_slice(mask::url(uri.path_and_query().map_or("", |text| text.as_str())).as_bytes()),
    }
    heads.push(b'\n');
}
