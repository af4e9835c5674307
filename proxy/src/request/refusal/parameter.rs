//! Refusals about one field of a body, by its name. Only bodies that are translated are read so closely.

use super::{Refusal, RefusalCode};

/// Characters that are kept of the name of a field.
const MAX_FIELD: usize = 256;

impl Refusal {
    /// A field that cannot be read, or is missing.
    pub fn invalid_parameter(message: String, field: &str) -> Self {
        Self::invalid(RefusalCode::InvalidParameter, message).about_field(field)
    }

    /// A field that the target's format cannot say, and that must not be lost.
    pub fn unsupported_parameter(message: String, field: &str) -> Self {
        Self::invalid(RefusalCode::UnsupportedParameter, message).about_field(field)
    }

    fn about_field(mut self, field: &str) -> Self {
        self.param = Some(field.chars().take(MAX_FIELD).collect::<String>().into_boxed_str());
        self
    }
}
