//! A check, made ready once and run on many requests.

use super::data::JudgedText;
use super::fault::Fault;
use super::parameters::Parameters;
use super::remote::RemoteCheck;
use super::subject::Subject;
use super::text::Scope;
use super::validate::validate_parameters;
use super::verdict::{CheckError, Verdict};
use super::{FaultKind, table};
use serde_json::Value;

pub trait Check: Send + Sync {
    fn run(&self, subject: &Subject<'_>) -> Verdict;

    /// What `run` says of a whole text, for checks that look at nothing else and that many requests meet: the verdict, with the
    /// data written behind what is there already. `None`: `run` must be asked.
    fn judge(&self, _text: &JudgedText<'_>, _data: &mut String) -> Option<Result<bool, CheckError>> {
        None
    }

    /// Whether it looks further into the body than its text (`Subject::text`). Of a request that nobody looks into no tree is
    /// made.
    fn reads_body(&self) -> bool {
        true
    }

    /// Which texts it judges, unless its hook says otherwise: all of them where it looks for something forbidden, else the last
    /// message, as a check does that counts, edits or validates.
    fn scope(&self) -> Scope {
        Scope::Judged
    }

    /// Where somebody else must be asked first: `run` alone would only say that nobody was.
    fn remote(&self) -> Option<&dyn RemoteCheck> {
        None
    }

    /// How many bytes of text around a place decide about it, for a check that can judge a text that is still growing:
    /// once it denies, it denies whatever follows, and once a place is this far behind, nothing that follows changes what
    /// was said about it. `None`: it must see the whole.
    fn window(&self) -> Option<usize> {
        None
    }

    /// For redaction of a text that is still growing: the text with replacements, as far as it is decided. `None` for
    /// checks that replace nothing.
    fn replace(&self, _text: &str, _is_end: bool) -> Option<Replaced> {
        None
    }
}

/// The beginning of a text with replacements made.
#[derive(Debug, PartialEq, Eq)]
pub struct Replaced {
    pub text: String,
    /// As many bytes of the original are in it; the rest has to wait.
    pub consumed: usize,
    pub is_changed: bool,
}

/// Whether an error of a check counts as a failure where its parameters do not say so (`failOnError`): a check that admits callers
/// admits nobody while it cannot look.
pub fn fails_on_error(id: &str) -> bool {
    table::check(id).is_some_and(|spec| spec.id == "default.jwt")
}

/// A check by its id (`contains` is `default.contains`) and its parameters. The fault's path begins at the parameters.
pub fn compile(id: &str, parameters: &Value) -> Result<Box<dyn Check>, Fault> {
    let Some(spec) = table::check(id) else {
        return Err(Fault::unknown(String::new(), "the id of a check", id, table::ids()));
    };
    let none = Value::Object(serde_json::Map::new());
    let parameters = if parameters.is_null() { &none } else { parameters };
    // What is unknown besides is nobody's harm here; saved checks are refused for it by `validate`.
    if let Some(fault) =
        validate_parameters(spec, parameters).into_iter().find(|fault| fault.kind != FaultKind::UnknownName)
    {
        return Err(fault);
    }
    spec.made(&Parameters::new(parameters))
}
