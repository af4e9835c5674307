//! A body on its way to a provider on the relay lane. Its bytes stay as they came, but for a model that the provider
//! knows by another name; and where a model decides, nothing that follows may name a second one.

use super::asked_model::Splice;
use crate::request::body::model_reader::ModelReader;
use crate::request::receive::OwnedShare;
use crate::request::refusal::Refusal;
use bytes::{Bytes, BytesMut};

#[derive(Debug, Default)]
pub(super) struct RelayedBody {
    /// What was read before there was a target, and is more than Pingora keeps to send it again.
    pub ahead: Vec<Bytes>,
    /// What that takes in memory, where guardrails wanted to judge it.
    pub share: Option<OwnedShare>,
    /// The client asked for leave to send it, and was given it.
    pub is_permitted: bool,
    /// What has read the beginning, and goes on with the rest.
    pub reader: Option<ModelReader>,
    pub splice: Option<Splice>,
    /// All of it, where it is short and may have to be signed.
    pub whole: Option<Bytes>,
    /// How much of the client's body has passed.
    pub passed: u64,
}

impl RelayedBody {
    /// Another connection is tried: the body passes from its beginning.
    pub fn begin(&mut self) {
        self.passed = 0;
    }

    /// All of it as the provider will get it, if that is known.
    pub fn to_sign(&self) -> Option<Bytes> {
        let whole = self.whole.clone()?;
        Some(match &self.splice {
            Some(splice) => splice.apply(0, whole),
            None => whole,
        })
    }

    /// Puts what was read ahead in front of the first piece.
    pub fn rejoin(&mut self, body: &mut Option<Bytes>) {
        if self.ahead.is_empty() {
            return;
        }
        let mut whole = BytesMut::new();
        self.ahead.drain(..).chain(body.take()).for_each(|piece| whole.extend_from_slice(&piece));
        *body = Some(whole.freeze());
        self.share = None;
    }

    pub fn pass(&mut self, body: &mut Option<Bytes>) -> Result<(), Refusal> {
        let Some(piece) = body else { return Ok(()) };
        let from = self.passed;
        self.passed += piece.len() as u64;
        if let Some(reader) = &mut self.reader {
            let seen = usize::try_from(reader.consumed().saturating_sub(from)).unwrap_or(usize::MAX);
            reader.push(piece.get(seen..).unwrap_or_default());
            if let Some(fault) = reader.fault() {
                return Err(Refusal::invalid_json(fault));
            }
        }
        if let Some(splice) = &self.splice {
            *piece = splice.apply(from, std::mem::take(piece));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(relayed: &mut RelayedBody, pieces: &[&'static [u8]]) -> Result<Vec<u8>, Refusal> {
        let mut out = Vec::new();
        for piece in pieces {
            let mut body = Some(Bytes::from_static(piece));
            relayed.rejoin(&mut body);
            relayed.pass(&mut body)?;
            out.extend_from_slice(&body.unwrap_or_default());
        }
        Ok(out)
    }

    #[test]
    fn what_was_read_ahead_comes_first_and_a_second_model_ends_it() {
        let first = Bytes::from_static(br#"{"model":"a","#);
        let mut reader = ModelReader::default();
        reader.push(&first);
        let mut relayed = RelayedBody { ahead: vec![first], reader: Some(reader), ..RelayedBody::default() };
        let sent = pass(&mut relayed, &[br#""x":1,"#, br#""y":2"#]).unwrap();
        assert_eq!(String::from_utf8(sent).unwrap(), r#"{"model":"a","x":1,"y":2"#);
        let refusal = pass(&mut relayed, &[br#","mod"#, br#"el":"b"}"#]).unwrap_err();
        assert_eq!((refusal.status, refusal.code.as_str()), (400, "invalid_json"));
    }

    #[test]
    fn a_body_that_is_sent_again_is_read_on_from_where_its_reader_stands() {
        let mut reader = ModelReader::default();
        reader.push(br#"{"model":"a""#);
        let mut relayed = RelayedBody { reader: Some(reader), ..RelayedBody::default() };
        for _ in 0..2 {
            relayed.begin();
            assert!(pass(&mut relayed, &[br#"{"model""#, br#":"a","x":1}"#]).is_ok());
        }
    }
}
