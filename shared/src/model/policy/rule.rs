//! Which requests a policy applies to, and how it groups them. Pure: what is known of a request comes as `Facts`.

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use tokio_postgres::Row;

/// Every condition must hold; each combination of the grouped values is counted apart. Without conditions it applies to
/// every request, and without groups all of them are counted together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    pub conditions: Vec<Condition>,
    pub group_by: Vec<GroupBy>,
    /// Requests that lack a grouped value are a group too.
    #[serde(default)]
    pub include_none: bool,
    /// Of the metadata only what the key and the workspace say of themselves is looked at.
    #[serde(default)]
    pub trusted_metadata: bool,
    /// None is for both.
    #[serde(default)]
    pub target: Option<PolicyTarget>,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyTarget {
    Llm,
    /// Tools, prompts and resources of MCP servers.
    McpTools,
}

impl PolicyTarget {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Llm => "llm",
            Self::McpTools => "mcp_tools",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    pub key: PolicyKey,
    /// One of these; `*` is any value at all.
    pub value: ConditionValues,
    /// And none of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excludes: Option<ConditionValues>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupBy {
    pub key: PolicyKey,
}

/// What a request can be asked about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PolicyKey {
    ApiKey,
    OrganisationId,
    WorkspaceId,
    /// A field of the request's metadata.
    Metadata(String),
    Config,
    Prompt,
    EndpointType,
    VirtualKey,
    Provider,
    Model,
    /// The slug of the MCP server that is called.
    McpServer,
    /// The tool, prompt or resource that is asked of it.
    McpTool,
}

/// One text or several, shown as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub enum ConditionValues {
    One(String),
    Several(Vec<String>),
}

/// What is known of a request, or of one attempt.
pub trait Facts {
    fn target(&self) -> PolicyTarget;

    /// The value that requests are grouped by; none when there is none.
    fn value(&self, key: &PolicyKey) -> Option<Cow<'_, str>>;

    /// Whether a condition that says `wanted` means this request. Things with several names answer to all of them.
    fn is(&self, key: &PolicyKey, wanted: &str) -> bool {
        self.value(key).is_some_and(|value| value == wanted)
    }
}

impl Rule {
    pub fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self {
            conditions: serde_json::from_value(row.try_get::<_, Value>("conditions")?)?,
            group_by: serde_json::from_value(row.try_get::<_, Value>("group_by")?)?,
            include_none: row.try_get("include_none")?,
            trusted_metadata: row.try_get("trusted_metadata")?,
            target: row.try_get::<_, Option<&str>>("target")?.map(super::named).transpose()?,
        })
    }

    pub fn matches(&self, facts: &impl Facts) -> bool {
        self.target.is_none_or(|target| target == facts.target())
            && self.conditions.iter().all(|condition| condition.holds(facts))
    }

    /// Writes the name of the request's group behind what is there. False when it lacks a grouped value, and is not counted.
    pub fn push_value_key(&self, out: &mut String, facts: &impl Facts) -> bool {
        super::push_value_key(out, self.group_by.iter().map(|one| &one.key), facts, self.include_none)
    }

    /// Whether it can be judged only once a target is chosen.
    pub fn is_per_attempt(&self) -> bool {
        self.keys().any(PolicyKey::is_per_attempt)
    }

    /// Whether all requests of a caller to an endpoint are one to it.
    pub fn is_by_caller(&self) -> bool {
        self.keys().all(|key| {
            matches!(
                key,
                PolicyKey::ApiKey | PolicyKey::OrganisationId | PolicyKey::WorkspaceId | PolicyKey::EndpointType
            )
        })
    }

    fn keys(&self) -> impl Iterator<Item = &PolicyKey> {
        self.conditions.iter().map(|one| &one.key).chain(self.group_by.iter().map(|one| &one.key))
    }
}

impl Condition {
    pub fn holds(&self, facts: &impl Facts) -> bool {
        let names = |values: &ConditionValues| {
            values.iter().any(|one| match one {
                "*" => facts.value(&self.key).is_some(),
                one => facts.is(&self.key, one),
            })
        };
        names(&self.value) && !self.excludes.as_ref().is_some_and(names)
    }
}

impl PolicyKey {
    /// Known of an attempt, not of the request.
    pub fn is_per_attempt(&self) -> bool {
        matches!(self, Self::VirtualKey | Self::Provider | Self::Model | Self::McpServer | Self::McpTool)
    }

    pub(super) fn prefix(&self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::OrganisationId => "organisation_id",
            Self::WorkspaceId => "workspace_id",
            Self::Metadata(_) => "metadata.",
            Self::Config => "config",
            Self::Prompt => "prompt",
            Self::EndpointType => "endpoint_type",
            Self::VirtualKey => "virtual_key",
            Self::Provider => "provider",
            Self::Model => "model",
            Self::McpServer => "mcp_server",
            Self::McpTool => "mcp_tool",
        }
    }

    pub(super) fn field(&self) -> &str {
        if let Self::Metadata(field) = self { field } else { "" }
    }
}

impl fmt::Display for PolicyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.prefix(), self.field())
    }
}

#[derive(Debug, thiserror::Error)]
#[error(
    "must be api_key, organisation_id, workspace_id, metadata.<field>, virtual_key, provider, config, prompt, model, endpoint_type, mcp_server or mcp_tool"
)]
pub struct NoSuchKey;

impl FromStr for PolicyKey {
    type Err = NoSuchKey;

    fn from_str(text: &str) -> Result<Self, NoSuchKey> {
        const PLAIN: [PolicyKey; 11] = [
            PolicyKey::ApiKey,
            PolicyKey::OrganisationId,
            PolicyKey::WorkspaceId,
            PolicyKey::Config,
            PolicyKey::Prompt,
            PolicyKey::EndpointType,
            PolicyKey::VirtualKey,
            PolicyKey::Provider,
            PolicyKey::Model,
            PolicyKey::McpServer,
            PolicyKey::McpTool,
        ];
        if let Some(field) = text.strip_prefix("metadata.") {
            let is_name = (1..=128).contains(&field.chars().count()) && !field.contains(char::is_control);
            return if is_name { Ok(Self::Metadata(field.to_owned())) } else { Err(NoSuchKey) };
        }
        PLAIN.into_iter().find(|key| key.prefix() == text).ok_or(NoSuchKey)
    }
}

impl Serialize for PolicyKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PolicyKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl ConditionValues {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let all = match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several.as_slice(),
        };
        all.iter().map(String::as_str)
    }
}

impl Serialize for ConditionValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(one) => one.serialize(serializer),
            Self::Several(several) => several.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ConditionValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ConditionValues;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ConditionValues, E> {
                Ok(ConditionValues::One(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ConditionValues, A::Error> {
                let mut several = Vec::new();
                while let Some(text) = items.next_element()? {
                    several.push(text);
                }
                Ok(ConditionValues::Several(several))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Whether a condition on `model` means this model of this provider: `gpt-4o`, `@team/gpt-4o` or `@team/*`.
pub fn names_model(wanted: &str, provider: Option<&str>, model: &str) -> bool {
    let Some((slug, name)) = wanted.strip_prefix('@').and_then(|rest| rest.split_once('/')) else {
        return wanted == model;
    };
    provider == Some(slug) && (name == "*" || name == model)
}

#[cfg(test)]
mod tests;
