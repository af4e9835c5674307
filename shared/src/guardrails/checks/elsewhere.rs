//! Checks that somebody else answers. They have no code here: whoever has a dialer runs them, and whoever has none says so.

use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;

struct Elsewhere;

pub fn compile(_: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(Elsewhere))
}

impl Check for Elsewhere {
    fn run(&self, _: &Subject<'_>) -> Verdict {
        Verdict::error("NotRun", "this check asks a service outside, which was not called")
    }
}
