//! Refusals about stored prompts.

use super::{Kind, Refusal, RefusalCode};
use shared::prompt::RenderError;

impl Refusal {
    /// Also the answer for what is archived, and for what other workspaces have.
    pub fn unknown_prompt(reference: &str) -> Self {
        let message = format!("there is no prompt `{}` in this workspace", shown(reference));
        Self::new(404, Kind::NotFound, RefusalCode::NotFound, message).about("prompt_id")
    }

    /// A prompt that does not become a body, or values that it does not take.
    pub fn invalid_prompt(error: RenderError) -> Self {
        let field = match &error {
            RenderError::Variables | RenderError::Variable(_) => "variables",
            RenderError::Nested => "hyperparameters",
            _ => "prompt_id",
        };
        Self::invalid_parameter(error.to_string(), field)
    }

    pub fn prompt_too_large() -> Self {
        let message = "the prompt, filled in with these variables, is too long or takes too many steps";
        Self::invalid_parameter(message.to_owned(), "variables")
    }

    /// A target that is a stored prompt, at a route that such a prompt is not written for.
    pub fn misplaced_prompt(reference: &str, wanted: &str) -> Self {
        let message = format!("the prompt `{}` of the config can be asked for at {wanted} alone", shown(reference));
        Self::invalid(RefusalCode::EndpointNotSupported, message).about("prompt_id")
    }
}

/// A name as an error shows it.
fn shown(reference: &str) -> String {
    const MAX_NAME: usize = 128;
    reference.chars().take(MAX_NAME).collect()
}
