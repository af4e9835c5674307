//! One row of the route table: a method, a path and what a caller needs. Plain data, so that the proxy, admin's
//! guard, the OpenAPI document and the conformance tests all read the same facts.

use crate::model::KeyKind;

#[derive(Debug, PartialEq)]
pub struct Operation {
    /// Its number in the interface contract; 0 for an alias or an addition of ours.
    pub number: u16,
    pub method: Method,
    /// Template relative to `/v1`: `{name}` is one segment, `{*name}` the rest of the path.
    pub path: &'static str,
    pub access: Access,
    pub scopes: Scopes,
    /// The flag that switches the operation off.
    pub feature: Option<Feature>,
    /// The longest body it reads, in bytes. A body becomes a tree many times its size.
    pub body_limit: usize,
    /// Whether sessions that act in a workspace may call it where user keys may not.
    pub workspace_sessions: bool,
    /// Whether sessions may call it for all workspaces of their person at once.
    pub own_workspaces: bool,
    /// Whether a session must have begun a short while ago.
    pub recent_sign_in: bool,
    /// How the audit trail names it. None for reads, and for use: rendering a prompt, sending feedback.
    pub audit: Option<AuditName>,
}

/// What a change does to what, in the words of the audit trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditName {
    pub resource_type: &'static str,
    pub action: &'static str,
}

/// Whoever calls a public operation is a stranger: nothing larger than a token and a name is read from it.
pub const PUBLIC_BODY: usize = 16 << 10;
/// Operations that take no object have little to say in a body.
const BODY_WITHOUT_OBJECT: usize = 64 << 10;
const BODY: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// How a caller proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No credential: public data, or a one-time token in the body.
    Public,
    /// The organisation's SCIM token, which is not an API key.
    ScimToken,
    /// A person's session and nothing else: it is about the person.
    Session,
    /// An API key or JWT of one of these kinds; a session counts as `Operation::session_reach` says.
    Keys(KeySet),
}

/// Where somebody acts who calls an operation by their session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionReach {
    /// Sessions do not count here.
    Nowhere,
    /// It is about the person.
    Person,
    /// In the workspace that the request names.
    Workspace,
    /// In the workspace that the request names; for owners and admins who name all of them (`*`), in the organisation.
    WorkspaceOrOrganisation,
    /// In the workspace that the request names; without one, or with `*`, in all workspaces of the person, and for owners
    /// and admins in the organisation.
    WorkspacesOrOrganisation,
    /// In the organisation, whatever workspace the request names: for owners and admins.
    Organisation,
}

impl SessionReach {
    /// Its name in the OpenAPI document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nowhere => "none",
            Self::Person => "person",
            Self::Workspace => "workspace",
            Self::WorkspaceOrOrganisation => "workspace-or-organisation",
            Self::WorkspacesOrOrganisation => "workspaces-or-organisation",
            Self::Organisation => "organisation",
        }
    }
}

/// Kinds of credential. A JWT acts like a user's key, but some operations need to tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySet {
    pub organisation_service: bool,
    pub workspace_service: bool,
    pub workspace_user: bool,
    pub jwt: bool,
}

impl KeySet {
    pub const fn contains(self, kind: KeyKind) -> bool {
        match kind {
            KeyKind::OrganisationService => self.organisation_service,
            KeyKind::WorkspaceService => self.workspace_service,
            KeyKind::WorkspaceUser => self.workspace_user,
            KeyKind::Jwt => self.jwt,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scopes {
    /// Any one of them is enough; an empty list asks for nothing. Alternatives exist because the same route serves
    /// organisation-level and workspace-level objects; the handler checks the one that fits the object.
    Any(&'static [&'static str]),
    All(&'static [&'static str]),
}

impl Scopes {
    pub fn are_met_by(self, held: &[String]) -> bool {
        match self {
            Self::Any(wanted) => wanted.is_empty() || wanted.iter().any(|one| holds(held, one)),
            Self::All(wanted) => wanted.iter().all(|one| holds(held, one)),
        }
    }

    pub const fn listed(self) -> &'static [&'static str] {
        match self {
            Self::Any(scopes) | Self::All(scopes) => scopes,
        }
    }
}

/// For the message of a refusal: `a or b`, `a and b`.
impl std::fmt::Display for Scopes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = if matches!(self, Self::Any(_)) { " or " } else { " and " };
        f.write_str(&self.listed().join(word))
    }
}

/// `providers.*` and `virtual_keys.*` are two names of one thing.
fn holds(held: &[String], wanted: &str) -> bool {
    let is_held = |scope: &str| held.iter().any(|one| one == scope);
    let held_as = |from: &str, to: &str| wanted.strip_prefix(from).is_some_and(|verb| is_held(&format!("{to}{verb}")));
    is_held(wanted) || held_as("providers.", "virtual_keys.") || held_as("virtual_keys.", "providers.")
}

/// The flags that switch groups of routes off. `USAGE_LIMITS_ENABLED` governs fields and `API_ACCESS_ENABLED`
/// every API key, so neither belongs to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    Guardrails,
    DataExports,
    AuditLogs,
    Scim,
    Policies,
}

impl Feature {
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Guardrails => "GUARDRAILS_ENABLED",
            Self::DataExports => "DATA_EXPORTS_ENABLED",
            Self::AuditLogs => "AUDIT_LOGS_ENABLED",
            Self::Scim => "SCIM_ENABLED",
            Self::Policies => "POLICY_ENABLED",
        }
    }

    pub const fn is_on(self, flags: &crate::settings::Features) -> bool {
        match self {
            Self::Guardrails => flags.guardrails_enabled,
            Self::DataExports => flags.data_exports_enabled,
            Self::AuditLogs => flags.audit_logs_enabled,
            Self::Scim => flags.scim_enabled,
            Self::Policies => flags.policy_enabled,
        }
    }
}

// The vocabulary of the tables.

/// Admin keys alone.
pub(super) const ADMIN: Access = keys(true, false, false, false);
/// Every kind.
pub(super) const ANY: Access = keys(true, true, true, true);
/// Every kind but admin keys.
pub(super) const WORKSPACE: Access = keys(false, true, true, true);
/// Only what acts for a person.
pub(super) const USER: Access = keys(false, false, true, true);

pub(super) const fn keys(
    organisation_service: bool,
    workspace_service: bool,
    workspace_user: bool,
    jwt: bool,
) -> Access {
    Access::Keys(KeySet { organisation_service, workspace_service, workspace_user, jwt })
}

type Names = &'static [&'static str];

pub(super) const fn get(number: u16, path: &'static str, access: Access, any_scope: Names) -> Operation {
    let body_limit = if matches!(access, Access::Public) { PUBLIC_BODY } else { BODY_WITHOUT_OBJECT };
    Operation {
        number,
        method: Method::Get,
        path,
        access,
        scopes: Scopes::Any(any_scope),
        feature: None,
        body_limit,
        workspace_sessions: false,
        own_workspaces: false,
        recent_sign_in: false,
        audit: None,
    }
}

pub(super) const fn post(number: u16, path: &'static str, access: Access, any_scope: Names) -> Operation {
    with_object(Method::Post, get(number, path, access, any_scope))
}

pub(super) const fn put(number: u16, path: &'static str, access: Access, any_scope: Names) -> Operation {
    with_object(Method::Put, get(number, path, access, any_scope))
}

pub(super) const fn patch(number: u16, path: &'static str, access: Access, any_scope: Names) -> Operation {
    with_object(Method::Patch, get(number, path, access, any_scope))
}

pub(super) const fn delete(number: u16, path: &'static str, access: Access, any_scope: Names) -> Operation {
    Operation { method: Method::Delete, ..get(number, path, access, any_scope) }
}

const fn with_object(method: Method, operation: Operation) -> Operation {
    let body_limit = if matches!(operation.access, Access::Public) { PUBLIC_BODY } else { BODY };
    Operation { method, body_limit, ..operation }
}

impl Operation {
    /// A session acts in a workspace as its person's key there does, and in the organisation as an admin key does.
    pub const fn session_reach(&self) -> SessionReach {
        match self.access {
            Access::Public | Access::ScimToken => SessionReach::Nowhere,
            Access::Session => SessionReach::Person,
            Access::Keys(kinds) => {
                match (kinds.workspace_user || self.workspace_sessions, kinds.organisation_service) {
                    (true, true) if self.own_workspaces => SessionReach::WorkspacesOrOrganisation,
                    (true, true) => SessionReach::WorkspaceOrOrganisation,
                    (true, false) => SessionReach::Workspace,
                    (false, true) => SessionReach::Organisation,
                    (false, false) => SessionReach::Nowhere,
                }
            }
        }
    }

    /// Called by another party in a protocol that bids to pass over what is not known.
    pub fn is_of_protocol(&self) -> bool {
        const PATHS: [&str; 3] = ["/auth/callback/", "/auth/backchannel-logout/", "/auth/saml/"];
        self.access == Access::ScimToken || PATHS.iter().any(|path| self.path.starts_with(path))
    }

    /// Is about by whom people and tokens are recognised. Who may change that could become anybody, so owners do by their
    /// session, and keys only if there is nothing that they may not do.
    pub fn is_of_sign_in(&self) -> bool {
        const PATHS: [&str; 3] = ["/admin/organisation/auth-settings", "/admin/domains", "/admin/saml-keys"];
        PATHS.iter().any(|path| self.path.starts_with(path))
    }

    /// What a session that was left open, or stolen, must not be enough for. Some rows need it for some objects alone: keys
    /// of the organisation, and owners; their handlers ask.
    pub fn needs_recent_sign_in(&self) -> bool {
        self.recent_sign_in || self.changes_sign_in()
    }

    pub fn changes_sign_in(&self) -> bool {
        self.method != Method::Get && self.is_of_sign_in()
    }

    /// Whether `?dry_run=true` tries it: it is a change of stored objects, made in one transaction that can be taken back.
    /// Erasing logs works through many, a sync may need a new token of the server's, and what is itself a trial changes
    /// nothing.
    pub fn may_be_tried(&self) -> bool {
        let is_of_others = self.path == "/logs/erase" || self.path.ends_with("/sync");
        let is_in_one_transaction = !is_of_others && self.audit.is_some_and(|name| name.action != "test");
        self.method != Method::Get && matches!(self.access, Access::Keys(_)) && is_in_one_transaction
    }

    /// Lists a collection, instead of reading the object that the path names.
    pub fn is_list(&self) -> bool {
        self.method == Method::Get && !self.path.ends_with('}')
    }

    /// Reads the object that the path names, and not something below it.
    pub fn reads_object(&self) -> bool {
        self.method == Method::Get && self.path.ends_with('}') && self.path.matches('{').count() == 1
    }

    /// Changes the object that the path names, and not something below it.
    pub fn changes_object(&self) -> bool {
        const VERBS: [&str; 7] = ["rollback", "makeDefault", "rotate", "rotate-token", "start", "cancel", "resend"];
        let is_verb = |path: &str| path.rsplit_once("}/").is_some_and(|(_, verb)| VERBS.contains(&verb));
        let is_of_object = self.path.ends_with('}') || is_verb(self.path);
        self.method != Method::Get && is_of_object && self.path.matches('{').count() == 1
    }

    /// Deletes the object that the path names, and not something below it.
    pub fn deletes_object(&self) -> bool {
        self.method == Method::Delete && self.path.ends_with('}')
    }

    /// Every row that changes something says how the audit trail names it.
    pub(super) const fn audited(self, resource_type: &'static str, action: &'static str) -> Self {
        Self { audit: Some(AuditName { resource_type, action }), ..self }
    }

    pub(super) const fn when(self, feature: Feature) -> Self {
        Self { feature: Some(feature), ..self }
    }

    /// By sessions in a workspace, too: what a person may do and no key of theirs.
    pub(super) const fn by_workspace_session(self) -> Self {
        Self { workspace_sessions: true, ..self }
    }

    /// By sessions for all workspaces of their person, too. Its handler keeps to `Caller::own_workspaces`.
    pub(super) const fn in_own_workspaces(self) -> Self {
        Self { own_workspaces: true, ..self }
    }

    /// By a session only where its person signed in a short while ago.
    pub(super) const fn after_recent_sign_in(self) -> Self {
        Self { recent_sign_in: true, ..self }
    }

    /// For objects that are large by nature.
    pub(super) const fn body_up_to(self, bytes: usize) -> Self {
        Self { body_limit: bytes, ..self }
    }

    /// All of the listed scopes instead of any.
    pub(super) const fn all_scopes(self) -> Self {
        Self { scopes: Scopes::All(self.scopes.listed()), ..self }
    }
}
