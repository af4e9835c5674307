//! The model that a relayed request asks for, and where it names it: by that the target is chosen, and the model is
//! changed there when the target has another name for it.

use crate::limits::usage::native_model;
use crate::request::body::model_reader::NamedModel;
use crate::request::path_spelling::{canonical, loosest};
use crate::request::realtime_head;
use crate::request::refusal::Refusal;
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::borrow::Cow;
use std::ops::Range;

/// What a segment of a path may show as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

#[derive(Debug, Default)]
pub(super) enum AskedModel {
    /// None is asked for.
    #[default]
    Nothing,
    Named {
        name: String,
        place: ModelPlace,
    },
    /// There may be one, and it cannot be told which.
    Unknown(Cow<'static, str>),
}

#[derive(Debug)]
pub(super) enum ModelPlace {
    Query,
    /// The segment of the path, as it is written.
    Path(String),
    Body(Range<u64>),
}

impl AskedModel {
    /// What a head says of it.
    pub fn in_head(path: &str, query: Option<&str>) -> Result<Self, Refusal> {
        if let Some(name) = realtime_head::model(path, query)? {
            return Ok(Self::Named { name: name.into_owned(), place: ModelPlace::Query });
        }
        let spelled = canonical(path);
        if let Some(segment) = native_model::segment(&spelled)
            && let Some(name) = native_model::in_path(&spelled)
        {
            return Ok(Self::Named { name, place: ModelPlace::Path(segment.to_owned()) });
        }
        Ok(match loosest(&spelled).and_then(|loose| native_model::in_path(&loose)) {
            Some(_) => Self::Unknown("the path names it in a spelling that can be read in two ways".into()),
            None => Self::Nothing,
        })
    }

    pub fn in_body(found: NamedModel) -> Self {
        Self::Named { name: found.name, place: ModelPlace::Body(found.place) }
    }

    /// What a target is to be asked for that insists on a model of its own. What stands in a path is an address, and
    /// stays.
    pub fn insisting<'a>(&'a self, insisted: Option<String>) -> Option<Cow<'a, str>> {
        match self {
            Self::Named { name, place: ModelPlace::Path(_) } => Some(Cow::Borrowed(name)),
            Self::Named { name, .. } => Some(insisted.map_or(Cow::Borrowed(name), Cow::Owned)),
            Self::Nothing | Self::Unknown(_) => None,
        }
    }

    /// Changes the model where it is named. `path_and_query` is what the target will be asked for.
    pub fn rename(&self, model: Option<&str>, path_and_query: String) -> (String, Option<Splice>) {
        let (Self::Named { name, place }, Some(model)) = (self, model) else { return (path_and_query, None) };
        match place {
            _ if name == model => (path_and_query, None),
            ModelPlace::Query => (realtime_head::asking(&path_and_query, model), None),
            ModelPlace::Path(segment) => {
                let written = utf8_percent_encode(model, PLAIN).to_string();
                (path_and_query.replacen(segment, &written, 1), None)
            }
            ModelPlace::Body(place) => {
                let with = Bytes::from(serde_json::Value::from(model).to_string());
                (path_and_query, Some(Splice { place: place.clone(), with }))
            }
        }
    }
}

/// A part of a body that is replaced while the body passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Splice {
    place: Range<u64>,
    with: Bytes,
}

impl Splice {
    /// How long a body of this length becomes.
    pub fn length(&self, before: u64) -> u64 {
        before.saturating_sub(self.place.end - self.place.start) + self.with.len() as u64
    }

    /// What becomes of a piece that begins at `from`.
    pub fn apply(&self, from: u64, piece: Bytes) -> Bytes {
        let inside = |at: u64| usize::try_from(at.saturating_sub(from)).unwrap_or(usize::MAX).min(piece.len());
        let (start, end) = (inside(self.place.start), inside(self.place.end));
        let begins_here = self.place.start >= from && start < piece.len();
        if start == end {
            return piece;
        }
        let with = if begins_here { &self.with[..] } else { &[] };
        Bytes::from([&piece[..start], with, &piece[end..]].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_renamed_where_it_stands() {
        for (path, query, model, renamed) in [
            ("/realtime", Some("model=%40s%2Fm&x=1"), "m", "/realtime?model=m&x=1"),
            ("/v1beta/models/%40s%2Fg:generateContent", None, "g", "/v1beta/models/g:generateContent"),
            ("/v1beta/models/g:generateContent", None, "g", "/v1beta/models/g:generateContent"),
            ("/v1beta/models/@s/g:countTokens", None, "g", "/v1beta/models/g:countTokens"),
            ("/other", Some("model=m"), "x", "/other?model=m"),
        ] {
            let whole = query.map_or(path.to_owned(), |query| format!("{path}?{query}"));
            let (place, splice) = AskedModel::in_head(path, query).unwrap().rename(Some(model), whole);
            assert_eq!((&*place, splice), (renamed, None), "{path}");
        }
    }

    #[test]
    fn a_path_names_its_model_in_any_spelling_or_cannot_be_told() {
        let name = |path: &str| match AskedModel::in_head(path, None).unwrap() {
            AskedModel::Named { name, .. } => Some(name),
            AskedModel::Unknown(_) => Some("?".to_owned()),
            AskedModel::Nothing => None,
        };
        for (path, model) in [
            ("/v1beta/models/g:generateContent", Some("g")),
            ("/v1beta//%6dodels/g:generateContent/", Some("g")),
            ("/v1beta/Models/g:generateContent", Some("?")),
            ("/v1beta/models%2Fg:generateContent", Some("?")),
            ("/deployments/d/chat/completions", Some("d")),
            ("/x/y", None),
            ("/X/%2fy", None),
        ] {
            assert_eq!(name(path).as_deref(), model, "{path}");
        }
    }

    #[test]
    fn a_body_is_spliced_however_it_is_cut() {
        let body = br#"{"model":"@slug/m","x":1}"#;
        let asked = AskedModel::in_body(NamedModel { name: "@slug/m".into(), place: 9..18 });
        let splice = asked.rename(Some("m"), String::new()).1.unwrap();
        for size in 1..=body.len() {
            let mut from = 0;
            let mut out = Vec::new();
            for piece in body.chunks(size) {
                out.extend_from_slice(&splice.apply(from, Bytes::copy_from_slice(piece)));
                from += piece.len() as u64;
            }
            assert_eq!(String::from_utf8(out).unwrap(), r#"{"model":"m","x":1}"#, "in pieces of {size}");
        }
        assert_eq!(splice.length(body.len() as u64), 19);
    }
}
