//! What slots are divided by. Each call is counted once under each value that it has of each of these.

use super::counted_call::CountedCall;
use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotDimension {
    /// Nothing: all calls of a slot have the empty value.
    All,
    AiService,
    Model,
    /// Provider and model, joined by two underscores.
    ServiceModel,
    StatusCode,
    ApiKey,
    Config,
    Provider,
    Prompt,
    PromptVersion,
    CacheStatus,
    /// How many retries it took, of calls that a retry saved.
    Retries,
    /// With a letter before the name, so that an empty name is not the same as none.
    User,
    /// A call may have passed several.
    Guardrail,
    /// Names and values (`metadata_values`).
    Metadata,
}

/// Characters of a value.
pub(super) const MAX_VALUE: usize = 500;

impl SlotDimension {
    pub const EVERY: [Self; 15] = [
        Self::All,
        Self::AiService,
        Self::Model,
        Self::ServiceModel,
        Self::StatusCode,
        Self::ApiKey,
        Self::Config,
        Self::Provider,
        Self::Prompt,
        Self::PromptVersion,
        Self::CacheStatus,
        Self::Retries,
        Self::User,
        Self::Guardrail,
        Self::Metadata,
    ];

    /// As it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "",
            Self::AiService => "ai_service",
            Self::Model => "model",
            Self::ServiceModel => "service_model",
            Self::StatusCode => "status_code",
            Self::ApiKey => "api_key",
            Self::Config => "config",
            Self::Provider => "provider",
            Self::Prompt => "prompt",
            Self::PromptVersion => "prompt_version",
            Self::CacheStatus => "cache_status",
            Self::Retries => "retries",
            Self::User => "user",
            Self::Guardrail => "guardrail",
            Self::Metadata => "metadata",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::EVERY.into_iter().find(|one| one.name() == name)
    }

    /// Every value that a call is counted under; there may be none, and those of metadata are not among them.
    pub fn each<'c>(self, call: &'c CountedCall<'_>, mut count: impl FnMut(Cow<'c, str>)) {
        match self {
            Self::Guardrail => call.guardrails.iter().for_each(|id| count(cut(Cow::Borrowed(*id)))),
            _ => self.value(call).into_iter().for_each(count),
        }
    }

    /// Empty for calls without one; none for calls that are not counted under this.
    fn value<'c>(self, call: &'c CountedCall<'_>) -> Option<Cow<'c, str>> {
        let plain = |text: Option<&'c str>| Cow::Borrowed(text.unwrap_or_default());
        let id = |id: Option<uuid::Uuid>| id.map_or(Cow::Borrowed(""), |id| Cow::Owned(id.to_string()));
        let value = match self {
            Self::All => Cow::Borrowed(""),
            Self::AiService => plain(call.ai_org),
            Self::Model => plain(call.ai_model),
            Self::ServiceModel => Cow::Owned(format!("{}__{}", call.ai_org?, call.ai_model?)),
            Self::StatusCode => Cow::Owned(call.status_code.to_string()),
            Self::ApiKey => id(call.api_key_id),
            Self::Config => plain(call.config),
            Self::Provider => plain(call.provider),
            Self::Prompt => plain(call.prompt_slug),
            Self::PromptVersion => id(call.prompt_version_id),
            Self::CacheStatus => Cow::Borrowed(call.cache_status),
            Self::Retries if call.is_success && call.retries > 0 => Cow::Owned(call.retries.to_string()),
            Self::Retries | Self::Guardrail | Self::Metadata => return None,
            Self::User => call.user.map_or(Cow::Borrowed(""), |name| Cow::Owned(user_value(name))),
        };
        Some(cut(value))
    }
}

/// What stands for a person of this name.
pub fn user_value(name: &str) -> String {
    cut(Cow::Owned(format!("u{name}"))).into_owned()
}

fn cut(value: Cow<'_, str>) -> Cow<'_, str> {
    if value.len() <= MAX_VALUE {
        return value;
    }
    let end = value.char_indices().nth(MAX_VALUE).map(|(end, _)| end);
    end.map_or(value.clone(), |end| Cow::Owned(value[..end].to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dimension_is_known_by_its_name() {
        for one in SlotDimension::EVERY {
            assert_eq!(SlotDimension::named(one.name()), Some(one));
        }
        assert_eq!(SlotDimension::named("colour"), None);
    }

    #[test]
    fn values_are_cut_between_characters() {
        assert_eq!(user_value("ada"), "uada");
        assert_eq!(user_value(&"é".repeat(600)).chars().count(), MAX_VALUE);
    }
}
