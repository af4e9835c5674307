//! How files and commands name an object.

use crate::kinds::{self, Kind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What an object is known by in files: `config/market/main`, `integration/openai`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Address {
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    pub name: String,
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            kind: String,
            workspace: Option<String>,
            name: String,
        }
        let Written { kind, workspace, name } = Written::deserialize(deserializer)?;
        let kind = kinds::find(&kind).map_err(serde::de::Error::custom)?.name;
        Ok(Self { kind, workspace, name })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workspace = self.workspace.iter().map(|workspace| format!("{workspace}/")).collect::<String>();
        write!(formatter, "{}/{workspace}{}", self.kind, self.name)
    }
}

impl Address {
    pub fn kind(&self) -> &'static Kind {
        kinds::find(self.kind).unwrap_or(&kinds::KINDS[0])
    }
}
