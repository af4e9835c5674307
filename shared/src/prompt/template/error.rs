//! Why a template cannot be used, said to whoever wrote it.

/// A name in an error is cut here.
const SHOWN: usize = 64;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TemplateError {
    #[error("a template may have at most 1048576 bytes")]
    TooLong,
    #[error("the tag at byte {0} is not closed")]
    OpenTag(usize),
    #[error("the tag at byte {0} has no name")]
    NoName(usize),
    #[error("the name in the tag at byte {0} is longer than 255 bytes")]
    LongName(usize),
    #[error("the delimiters at byte {0} must be two texts without `=`, with a space between")]
    Delimiters(usize),
    #[error("the section `{0}` is not closed")]
    OpenSection(String),
    #[error("`{0}` is closed and was not opened last")]
    Unopened(String),
    #[error("sections nest deeper than {0}")]
    TooDeep(usize),
    #[error("there is no partial `{0}`")]
    NoPartial(String),
    #[error("the partial `{0}` contains itself")]
    Cycle(String),
    #[error("partials nest deeper than {0}")]
    PartialsTooDeep(usize),
    #[error("a backslash stands before a tag, and would be read as a part of its value: `{0}`")]
    AfterBackslash(String),
    #[error("filled in, it is longer than {0} bytes")]
    OutputTooLong(usize),
    #[error("it takes too many steps to fill in")]
    TooManySteps,
}

/// A name as an error shows it.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(SHOWN).collect()
}
