//! What a check says that somebody else answers, where nobody was asked.

use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;

struct Elsewhere;

pub fn compile(_: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(Elsewhere))
}

pub fn not_asked() -> Verdict {
    Verdict::error("NotRun", "this check asks a service outside, which was not called")
}

impl Check for Elsewhere {
    fn run(&self, _: &Subject<'_>) -> Verdict {
        not_asked()
    }
}
