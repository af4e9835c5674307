//! Routes of vendors whose clients name the model in the path: Google's generateContent and Bedrock's Converse. They are
//! served for every provider, so a path of this kind says three things: the format of the body, the model, and whether a
//! stream is wanted.
//!
//! Google's clients write `/v1beta` or `/v1` before `/models/`, behind whatever base URL they were given; Bedrock's write
//! no version.

use percent_encoding::percent_decode_str;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NativeRoute {
    Gemini,
    GeminiStream,
    /// How many tokens a request would have.
    GeminiCount,
    Converse,
    ConverseStream,
}

const ALL: [NativeRoute; 5] = [
    NativeRoute::Gemini,
    NativeRoute::GeminiStream,
    NativeRoute::GeminiCount,
    NativeRoute::Converse,
    NativeRoute::ConverseStream,
];

impl NativeRoute {
    /// The route of a path in its canonical spelling, and the model as it is written there. A slash may stand in it.
    pub fn find(path: &str) -> Option<(Self, &str)> {
        let rest = without_versions(path);
        ALL.into_iter().find_map(|route| {
            let model = route.model_in(rest)?;
            (!route.is_google() || rest.len() < path.len()).then_some((route, model))
        })
    }

    /// What the most forgiving reader could take a path (in small letters, without escapes) for.
    pub fn resembled(loose: &str) -> Option<Self> {
        let loose = without_versions(loose);
        ALL.into_iter().find(|route| {
            let ending = route.ending().to_ascii_lowercase();
            let rest = loose.strip_prefix(route.beginning()).or_else(|| route.bare_model(loose));
            rest.is_some_and(|rest| rest.ends_with(&ending))
        })
    }

    fn model_in(self, rest: &str) -> Option<&str> {
        let model = rest.strip_prefix(self.beginning()).or_else(|| self.bare_model(rest))?;
        let model = model.strip_suffix(self.ending())?;
        (!model.is_empty()).then_some(model)
    }

    /// One SDK leaves `/models` out where the model's name has a slash, as `@slug/model` does.
    fn bare_model(self, rest: &str) -> Option<&str> {
        let model = rest.strip_prefix('/').filter(|_| self.is_google())?;
        (model.starts_with('@') || model.starts_with("%40")).then_some(model)
    }

    const fn beginning(self) -> &'static str {
        match self {
            Self::Gemini | Self::GeminiStream | Self::GeminiCount => "/models/",
            Self::Converse | Self::ConverseStream => "/model/",
        }
    }

    const fn ending(self) -> &'static str {
        match self {
            Self::Gemini => ":generateContent",
            Self::GeminiStream => ":streamGenerateContent",
            Self::GeminiCount => ":countTokens",
            Self::Converse => "/converse",
            Self::ConverseStream => "/converse-stream",
        }
    }

    /// As the vendor documents it.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Gemini => "/v1beta/models/{model}:generateContent",
            Self::GeminiStream => "/v1beta/models/{model}:streamGenerateContent",
            Self::GeminiCount => "/v1beta/models/{model}:countTokens",
            Self::Converse => "/model/{model}/converse",
            Self::ConverseStream => "/model/{model}/converse-stream",
        }
    }

    pub const fn is_google(self) -> bool {
        matches!(self, Self::Gemini | Self::GeminiStream | Self::GeminiCount)
    }

    pub const fn is_count(self) -> bool {
        matches!(self, Self::GeminiCount)
    }

    pub const fn is_stream(self) -> bool {
        matches!(self, Self::GeminiStream | Self::ConverseStream)
    }
}

/// A model as it stands in a path, in plain text.
pub fn plain_model(written: &str) -> String {
    percent_decode_str(written).decode_utf8_lossy().into_owned()
}

/// Whether a path outside of `/v1` is one of a vendor's interface: all of them go where those under `/v1` go.
pub fn is_outside_v1(path: &str) -> bool {
    path.starts_with("/v1beta/") || path.starts_with("/model/")
}

/// Such a path as it is passed on: without the gateway's own version.
pub fn within_v1(path: &str) -> &str {
    path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

/// The gateway's own version may stand before the vendor's.
fn without_versions(path: &str) -> &str {
    fn without<'p>(path: &'p str, version: &str) -> Option<&'p str> {
        path.strip_prefix(version).filter(|rest| rest.starts_with('/'))
    }
    let path = without(path, "/v1").unwrap_or(path);
    without(path, "/v1beta").or_else(|| without(path, "/v1")).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_format_its_model_and_whether_it_streams() {
        for (path, expected) in [
            ("/v1beta/models/gemini-2.5-pro:generateContent", Some((NativeRoute::Gemini, "gemini-2.5-pro"))),
            ("/v1/models/m:streamGenerateContent", Some((NativeRoute::GeminiStream, "m"))),
            ("/v1/v1beta/models/%40s%2Fm:generateContent", Some((NativeRoute::Gemini, "@s/m"))),
            ("/v1/v1/models/@s/a:b:generateContent", Some((NativeRoute::Gemini, "@s/a:b"))),
            ("/models/m:generateContent", None),
            ("/v1beta/models/:generateContent", None),
            ("/v1beta/models/m:countTokens", Some((NativeRoute::GeminiCount, "m"))),
            ("/v1beta/@s/m:generateContent", Some((NativeRoute::Gemini, "@s/m"))),
            ("/v1beta/%40s%2Fm:streamGenerateContent", Some((NativeRoute::GeminiStream, "@s/m"))),
            ("/v1beta/s/m:generateContent", None),
            ("/@s/m:generateContent", None),
            ("/v1/projects/p/locations/l/publishers/google/models/m:generateContent", None),
            ("/model/us.a.b-v1%3A0/converse", Some((NativeRoute::Converse, "us.a.b-v1:0"))),
            ("/v1/model/%40s%2Fm/converse-stream", Some((NativeRoute::ConverseStream, "@s/m"))),
            ("/model/m/invoke", None),
            ("/model//converse", None),
        ] {
            let found = NativeRoute::find(path).map(|(route, model)| (route, plain_model(model)));
            let expected = expected.map(|(route, model)| (route, model.to_owned()));
            assert_eq!(found, expected, "{path}");
        }
        let resembled = [("/v1beta/models/m:generatecontent", Some(NativeRoute::Gemini)), ("/v1beta/models/m:x", None)];
        for (path, expected) in resembled {
            assert_eq!(NativeRoute::resembled(path), expected, "{path}");
        }
    }
}
