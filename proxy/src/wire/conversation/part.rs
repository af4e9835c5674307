//! What a turn is made of. Signed and sealed thinking is carried letter by letter, with who signed it: a signature is
//! worthless, and refused, anywhere else.

use super::format::NativeValue;

#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Text(TextPart),
    /// The model's words for not answering, which OpenAI keeps apart from its text.
    Refusal(String),
    Image(Media),
    Audio(Media),
    /// Documents and, by their media type, videos.
    File(Media),
    Thinking(Thinking),
    /// Thinking that only its maker can read.
    RedactedThinking(Signature),
    ToolUse(ToolUse),
    ToolResult(ToolResult),
    /// A block of one vendor, such as the steps of a search it ran itself.
    Native(NativeValue),
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextPart::new(text))
    }

    /// The name a caller would know it by, for the list of what was dropped.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Refusal(_) => "refusal",
            Self::Image(_) => "image",
            Self::Audio(_) => "audio",
            Self::File(_) => "file",
            Self::Thinking(_) => "thinking",
            Self::RedactedThinking(_) => "redacted_thinking",
            Self::ToolUse(_) => "tool_use",
            Self::ToolResult(_) => "tool_result",
            Self::Native(_) => "native_block",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextPart {
    pub text: String,
    pub citations: Vec<Citation>,
    /// Gemini signs text that ends a thought.
    pub signature: Option<Signature>,
    pub cache: Option<CacheControl>,
}

impl TextPart {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// Where a statement comes from: the fields most formats share, and the vendor's own object.
#[derive(Debug, Clone, PartialEq)]
pub struct Citation {
    pub url: Option<String>,
    pub title: Option<String>,
    pub cited_text: Option<String>,
    /// Characters of the answer that it supports.
    pub start: Option<u64>,
    pub end: Option<u64>,
    pub native: NativeValue,
}

/// An image, a sound or a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Media {
    pub source: MediaSource,
    /// `image/png`; some formats leave it out for URLs.
    pub media_type: Option<String>,
    pub name: Option<String>,
    /// OpenAI's `detail` of an image.
    pub detail: Option<String>,
    /// Of a sound a model made: its id, what is said in it, and until when the id is valid.
    pub id: Option<String>,
    pub transcript: Option<String>,
    pub expires_at: Option<u64>,
    /// Anthropic's `context` of a document.
    pub context: Option<String>,
    /// Whether the answer may cite it.
    pub is_citable: Option<bool>,
    pub cache: Option<CacheControl>,
}

impl Media {
    pub fn new(source: MediaSource, media_type: Option<String>) -> Self {
        Self {
            source,
            media_type,
            name: None,
            detail: None,
            id: None,
            transcript: None,
            expires_at: None,
            context: None,
            is_citable: None,
            cache: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum MediaSource {
    /// As base64, which every format uses for bytes: they are never decoded on the way.
    Base64(String),
    /// Plain text as a document.
    Text(String),
    /// `https:`, `gs:` or `s3:`.
    Url(String),
    /// Uploaded to the vendor before.
    FileId(String),
}

/// Whose signature it is. Claude's are the same on every wire that carries Claude.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signer {
    Anthropic,
    Google,
    OpenAi,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub signer: Signer,
    pub value: String,
}

impl Signature {
    pub fn new(signer: Signer, value: impl Into<String>) -> Self {
        Self { signer, value: value.into() }
    }

    pub fn by(&self, signer: Signer) -> Option<&str> {
        (self.signer == signer).then_some(self.value.as_str())
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thinking {
    pub text: String,
    pub signature: Option<Signature>,
    /// OpenAI gives its reasoning an id that must come back with it.
    pub id: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolUse {
    /// Empty where the vendor gave none: whoever writes it makes one.
    pub id: String,
    pub name: String,
    /// JSON text exactly as it came; models write broken JSON at times, and half of it when they run out of tokens.
    pub arguments: String,
    pub signature: Option<Signature>,
    pub cache: Option<CacheControl>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    /// The id of the call it answers.
    pub id: String,
    /// The function's name, where the format repeats it.
    pub name: Option<String>,
    pub parts: Vec<Part>,
    pub is_error: bool,
    pub cache: Option<CacheControl>,
}

/// "The prompt up to here may be kept."
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheControl {
    /// `5m` or `1h`.
    pub ttl: Option<String>,
}
