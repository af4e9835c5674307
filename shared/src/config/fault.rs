//! What is wrong with a config, and where.

use super::{ConfigNode, Strictness};
use crate::settings::config_limits::ConfigLimits;
use serde::Serialize;
use std::fmt;

/// Beyond this many the writer has the wrong document.
const MAX_FAULTS: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub code: Code,
    /// As `targets[0].retry.attempts`; empty for the config itself.
    pub path: String,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Code {
    #[serde(rename = "AB01_UNKNOWN_KEY")]
    UnknownKey,
    #[serde(rename = "AB01_DUPLICATE_KEY")]
    DuplicateKey,
    #[serde(rename = "AB01_WRONG_TYPE")]
    WrongType,
    #[serde(rename = "AB01_MISSING")]
    Missing,
    #[serde(rename = "AB01_EMPTY")]
    Empty,
    #[serde(rename = "AB01_OUT_OF_RANGE")]
    OutOfRange,
    #[serde(rename = "AB01_NOT_ONE_OF")]
    NotOneOf,
    #[serde(rename = "AB01_DUPLICATE_NAME")]
    DuplicateName,
    #[serde(rename = "AB01_UNKNOWN_TARGET")]
    UnknownTarget,
    #[serde(rename = "AB01_TOO_DEEP")]
    TooDeep,
    #[serde(rename = "AB01_TOO_MANY")]
    TooMany,
    #[serde(rename = "AB01_NO_WEIGHT")]
    NoWeight,
    #[serde(rename = "AB01_BAD_HOST")]
    BadHost,
    #[serde(rename = "AB01_BAD_HEADER")]
    BadHeader,
    #[serde(rename = "AB01_BAD_QUERY")]
    BadQuery,
    #[serde(rename = "AB01_BAD_PATH")]
    BadPath,
    #[serde(rename = "AB01_USELESS")]
    Useless,
    #[serde(rename = "AB01_EXCLUSIVE")]
    Exclusive,
    #[serde(rename = "AB01_UNKNOWN_PROVIDER")]
    UnknownProvider,
    #[serde(rename = "AB01_INCOMPLETE_PROVIDER")]
    IncompleteProvider,
    #[serde(rename = "AB01_OLD_VERSION")]
    OldVersion,
}

impl Fault {
    /// Whether it says what was probably meant: such messages end in the question.
    fn has_guess(&self) -> bool {
        self.message.ends_with('?')
    }
}

/// The error list of an inline config: `path: strategy,mode, message: …`. The config itself has no path.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        let steps = self.path.replace('[', ",").replace(']', "").replace('.', ",");
        write!(f, "path: {steps}, message: {}", self.message)
    }
}

/// Where the reader is: a chain on the stack, written out only when there is a fault.
#[derive(Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: PathStep<'a>,
}

#[derive(Clone, Copy)]
enum PathStep<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    pub const ROOT: &'static Path<'static> = &Path { parent: None, step: PathStep::Root };

    pub fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: PathStep::Key(key) }
    }

    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: PathStep::Index(index) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match (self.step, self.parent.map(|parent| parent.step)) {
            (PathStep::Root, _) => Ok(()),
            (PathStep::Key(key), Some(PathStep::Root) | None) => f.write_str(key),
            // A path of its own, from there on.
            (PathStep::Key(key), Some(_)) if key.is_empty() || key.starts_with('[') => f.write_str(key),
            (PathStep::Key(key), Some(_)) => write!(f, ".{key}"),
            (PathStep::Index(index), _) => write!(f, "[{index}]"),
        }
    }
}

/// In one config.
const MAX_GUESSES: usize = 20;

/// One reading of one config: the rules it is read by and what was found wrong so far.
pub struct Reading<'l> {
    pub strictness: Strictness,
    pub limits: &'l ConfigLimits,
    /// Counted over the whole config.
    pub tests: usize,
    pub patterns: usize,
    pub checks: usize,
    /// Names that may still be guessed at: a guess is compared with every name that there is.
    guesses: usize,
    faults: Vec<Fault>,
    /// What was ignored or changed, of a config that is read kindly.
    warnings: Vec<Fault>,
}

impl<'l> Reading<'l> {
    pub fn new(strictness: Strictness, limits: &'l ConfigLimits) -> Self {
        Self {
            strictness,
            limits,
            tests: 0,
            patterns: 0,
            checks: 0,
            guesses: MAX_GUESSES,
            faults: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Whether one more unknown name is worth a guess; whoever sends many has not slipped.
    pub fn may_guess(&mut self) -> bool {
        let may = self.guesses > 0;
        self.guesses = self.guesses.saturating_sub(1);
        may
    }

    pub fn is_saved(&self) -> bool {
        self.strictness == Strictness::Saved
    }

    /// How many so far.
    pub fn faults(&self) -> usize {
        self.faults.len()
    }

    pub fn fault(&mut self, path: &Path<'_>, code: Code, message: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(Fault { code, path: path.to_string(), message: message.into() });
        }
    }

    /// What a saved config is refused for, and a config that came with a request is served in spite of.
    pub fn tolerate(&mut self, path: &Path<'_>, code: Code, message: impl Into<String>) {
        if self.is_saved() {
            self.fault(path, code, message);
        } else if self.warnings.len() < MAX_FAULTS {
            self.warnings.push(Fault { code, path: path.to_string(), message: message.into() });
        }
    }

    /// The config and what was tolerated in it, or everything that is wrong with it. A misspelt key is often why another
    /// one is missing, so it comes first.
    pub fn result(self, config: ConfigNode) -> Result<(ConfigNode, Vec<Fault>), Vec<Fault>> {
        if self.faults.is_empty() {
            return Ok((config, self.warnings));
        }
        let unknown = self.warnings.into_iter().filter(|one| one.code == Code::UnknownKey);
        let (mut faults, foreign): (Vec<Fault>, Vec<Fault>) = unknown.partition(Fault::has_guess);
        faults.extend(self.faults);
        faults.extend(foreign);
        faults.truncate(MAX_FAULTS);
        Err(faults)
    }
}
