//! The kinds of objects that the control plane has, as a table. Commands and files know objects by it alone.

use crate::outcome::Failure;
use crate::output::Column;

/// By what an object is known in commands and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// Its slug, which whoever makes it may choose.
    Slug,
    /// Its name: the slug, if it has one, is made by the server.
    Name,
}

/// Where an object may live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    Organisation,
    Workspace,
    /// In a workspace, or shared by the organisation.
    Either,
}

/// How a list is narrowed to a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// It cannot be.
    Whole,
    ByWorkspace,
    /// It has to be.
    OneWorkspace,
}

#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub path: &'static str,
    /// Where it is made, if not at `path`.
    pub create_path: Option<&'static str>,
    pub identity: Identity,
    pub home: Home,
    pub listing: Listing,
    /// What a file may say of it, apart from its slug and workspace.
    pub fields: &'static [&'static str],
    /// Those of `fields` that cannot be changed any more.
    pub fixed: &'static [&'static str],
    pub required: &'static [&'static str],
    /// Where the API shows a field by another name than it takes it.
    pub shown_as: &'static [(&'static str, &'static str)],
    /// Objects refer only to kinds of lower rank, or to their own.
    pub rank: u8,
    /// Whether a change makes a version that has to be published.
    pub is_published: bool,
    pub columns: &'static [Column],
}

/// Fields whose content is secret in whole or in part. The API never shows them as they are.
pub static SECRET_FIELDS: &[&str] = &["key", "configurations", "auth_config", "credentials"];

const ID: Column = Column::wide("id", "id");
const NAME: Column = Column::new("name", "name");
const SLUG: Column = Column::new("slug", "slug");
const STATUS: Column = Column::new("status", "status");
const WORKSPACE: Column = Column::wide("workspace", "workspace_slug|workspace_id");
const CHANGED: Column = Column::wide("changed", "last_updated_at");

static USUAL: Kind = Kind {
    name: "",
    aliases: &[],
    path: "",
    create_path: None,
    identity: Identity::Slug,
    home: Home::Workspace,
    listing: Listing::ByWorkspace,
    fields: &[],
    fixed: &[],
    required: &["name"],
    shown_as: &[],
    rank: 1,
    is_published: false,
    columns: &[SLUG, NAME, STATUS, WORKSPACE, ID, CHANGED],
};

const LIMIT_COLUMNS: &[Column] = &[
    NAME,
    Column::new("type", "type"),
    Column::new("limit", "value|credit_limit"),
    Column::new("per", "unit|periodic_reset|periodic_reset_days"),
    STATUS,
    WORKSPACE,
    ID,
    CHANGED,
];

pub static KINDS: &[Kind] = &[
    Kind {
        name: "workspace",
        aliases: &["workspaces", "ws"],
        path: "/admin/workspaces",
        home: Home::Organisation,
        listing: Listing::Whole,
        fields: &[
            "name",
            "description",
            "icon",
            "defaults",
            "usage_limits",
            "rate_limits",
            "priority",
            "settings",
            "security_settings",
        ],
        rank: 0,
        columns: &[SLUG, NAME, STATUS, Column::wide("description", "description"), ID, CHANGED],
        ..USUAL
    },
    Kind {
        name: "secret-reference",
        aliases: &["secret-references"],
        path: "/secret-references",
        home: Home::Organisation,
        listing: Listing::Whole,
        fields: &[
            "name",
            "description",
            "manager_type",
            "auth_config",
            "secret_path",
            "secret_key",
            "allow_all_workspaces",
            "allowed_workspaces",
            "allowed_hosts",
            "tags",
        ],
        fixed: &["manager_type"],
        required: &["name", "manager_type", "auth_config", "secret_path"],
        columns: &[SLUG, NAME, Column::new("manager", "manager_type"), STATUS, ID, CHANGED],
        ..USUAL
    },
    Kind {
        name: "integration",
        aliases: &["integrations"],
        path: "/integrations",
        home: Home::Either,
        fields: &[
            "name",
            "description",
            "ai_provider_id",
            "key",
            "configurations",
            "secret_mappings",
            "pricing_adjustments",
            "tags",
            "create_default_provider",
        ],
        fixed: &["ai_provider_id", "create_default_provider"],
        required: &["name", "ai_provider_id"],
        columns: &[SLUG, NAME, Column::new("provider", "ai_provider_id"), STATUS, WORKSPACE, ID, CHANGED],
        rank: 2,
        ..USUAL
    },
    Kind {
        name: "mcp-integration",
        aliases: &["mcp-integrations"],
        path: "/mcp-integrations",
        home: Home::Either,
        fields: &["name", "description", "url", "auth_type", "transport", "configurations", "secret_mappings"],
        required: &["name", "url", "auth_type", "transport"],
        columns: &[SLUG, NAME, Column::new("url", "url"), STATUS, WORKSPACE, ID, CHANGED],
        rank: 2,
        ..USUAL
    },
    Kind {
        name: "provider",
        aliases: &["providers"],
        path: "/providers",
        listing: Listing::OneWorkspace,
        fields: &[
            "name",
            "note",
            "integration_id",
            "model_config",
            "usage_limits",
            "rate_limits",
            "expires_at",
            "tags",
            "concurrency",
        ],
        fixed: &["integration_id"],
        required: &["name", "integration_id"],
        columns: &[
            SLUG,
            NAME,
            Column::new("provider", "provider"),
            Column::new("integration", "integration_id"),
            STATUS,
            Column::wide("workspace", "workspace_name|workspace_id"),
            ID,
            CHANGED,
        ],
        rank: 3,
        ..USUAL
    },
    Kind {
        name: "mcp-server",
        aliases: &["mcp-servers"],
        path: "/mcp-servers",
        listing: Listing::OneWorkspace,
        fields: &["name", "description", "mcp_integration_id"],
        required: &["name", "mcp_integration_id"],
        shown_as: &[("mcp_integration_id", "mcp_integration_slug")],
        rank: 3,
        ..USUAL
    },
    Kind {
        name: "guardrail",
        aliases: &["guardrails"],
        path: "/guardrails",
        identity: Identity::Name,
        home: Home::Either,
        fields: &["name", "checks", "actions"],
        required: &["name", "checks", "actions"],
        rank: 3,
        ..USUAL
    },
    Kind {
        name: "label",
        aliases: &["labels"],
        path: "/labels",
        identity: Identity::Name,
        fields: &["name", "description", "color_code"],
        columns: &[NAME, Column::new("description", "description"), STATUS, WORKSPACE, ID, CHANGED],
        ..USUAL
    },
    Kind {
        name: "collection",
        aliases: &["collections"],
        path: "/collections",
        identity: Identity::Name,
        fields: &["name", "parent_collection_id"],
        fixed: &["parent_collection_id"],
        ..USUAL
    },
    Kind {
        name: "config",
        aliases: &["configs"],
        path: "/configs",
        fields: &["name", "config", "isDefault"],
        required: &["name", "config"],
        shown_as: &[("isDefault", "is_default")],
        rank: 4,
        ..USUAL
    },
    Kind {
        name: "partial",
        aliases: &["partials"],
        path: "/prompts/partials",
        identity: Identity::Name,
        fields: &["name", "string", "collection_id"],
        fixed: &["collection_id"],
        required: &["name", "string"],
        rank: 4,
        is_published: true,
        ..USUAL
    },
    Kind {
        name: "prompt",
        aliases: &["prompts"],
        path: "/prompts",
        identity: Identity::Name,
        fields: &[
            "name",
            "collection_id",
            "string",
            "parameters",
            "virtual_key",
            "model",
            "functions",
            "tools",
            "tool_choice",
            "template_metadata",
            "is_raw_template",
            "declared_variables",
        ],
        required: &["name", "string", "parameters", "virtual_key"],
        columns: &[SLUG, NAME, Column::new("model", "model"), STATUS, WORKSPACE, ID, CHANGED],
        rank: 5,
        is_published: true,
        ..USUAL
    },
    Kind {
        name: "api-key",
        aliases: &["api-keys", "key", "keys"],
        path: "/api-keys",
        create_path: Some("/api-keys/workspace/service"),
        identity: Identity::Name,
        fields: &[
            "name",
            "description",
            "scopes",
            "rate_limits",
            "usage_limits",
            "expires_at",
            "defaults",
            "alert_emails",
            "rotation_policy",
        ],
        columns: &[
            NAME,
            Column::new("key", "key"),
            Column::new("type", "type"),
            STATUS,
            Column::new("expires", "expires_at"),
            Column::wide("budget", "usage_limits.credit_limit"),
            Column::wide("used", "usage_limits.current_usage"),
            WORKSPACE,
            ID,
            CHANGED,
        ],
        rank: 5,
        ..USUAL
    },
    Kind {
        name: "policy-rate-limits",
        aliases: &["policies-rate-limits", "rate-limits"],
        path: "/policies/rate-limits",
        identity: Identity::Name,
        fields: &[
            "name",
            "description",
            "conditions",
            "group_by",
            "type",
            "unit",
            "value",
            "dry_run",
            "include_none",
            "trusted_metadata",
            "target",
        ],
        required: &["name", "type", "unit", "value"],
        columns: LIMIT_COLUMNS,
        rank: 5,
        ..USUAL
    },
    Kind {
        name: "policy-usage-limits",
        aliases: &["policies-usage-limits", "usage-limits"],
        path: "/policies/usage-limits",
        identity: Identity::Name,
        fields: &[
            "name",
            "description",
            "conditions",
            "group_by",
            "type",
            "credit_limit",
            "alert_threshold",
            "periodic_reset",
            "periodic_reset_days",
            "strict",
            "unknown_price",
            "dry_run",
            "include_none",
            "trusted_metadata",
            "target",
        ],
        required: &["name", "type", "credit_limit"],
        columns: LIMIT_COLUMNS,
        rank: 5,
        ..USUAL
    },
    Kind {
        name: "deployment",
        aliases: &["deployments"],
        path: "/deployments",
        home: Home::Organisation,
        listing: Listing::Whole,
        fields: &["name", "type", "url", "deployment_config", "allow_all_workspaces", "workspaces", "is_default"],
        required: &["name", "type"],
        columns: &[SLUG, NAME, Column::new("type", "type"), STATUS, ID, CHANGED],
        ..USUAL
    },
];

pub fn find(name: &str) -> Result<&'static Kind, Failure> {
    let known = |kind: &&Kind| kind.name == name || kind.aliases.contains(&name);
    KINDS.iter().find(known).ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        Failure::new(format!("`{name}` is no kind; there are {}", names.join(", ")))
    })
}

impl Kind {
    pub fn create_path(&self) -> &'static str {
        self.create_path.unwrap_or(self.path)
    }

    /// The name by which the API shows a field.
    pub fn shown_name(&self, field: &'static str) -> &'static str {
        self.shown_as.iter().find(|(taken, _)| *taken == field).map_or(field, |(_, shown)| shown)
    }

    pub fn identity_field(&self) -> &'static str {
        match self.identity {
            Identity::Slug => "slug",
            Identity::Name => "name",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_means_one_kind_and_every_fact_is_about_a_field() {
        let mut names = BTreeSet::new();
        for kind in KINDS {
            assert!(std::iter::once(&kind.name).chain(kind.aliases).all(|name| names.insert(*name)), "{}", kind.name);
            let facts = kind.fixed.iter().chain(kind.required).chain(kind.shown_as.iter().map(|(taken, _)| taken));
            for field in facts {
                assert!(kind.fields.contains(field), "{}: {field}", kind.name);
            }
        }
    }
}
