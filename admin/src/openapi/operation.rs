//! One operation as the document shows it: the route table's facts and, once it is built, its description.

use super::doc::Doc;
use super::refusals;
use super::schema::{self, Schema};
use crate::http::RECENT_MINUTES;
use crate::http::dry_run::DRY_RUN;
use serde_json::{Map, Value, json};
use shared::routes::{Access, KeySet, Operation, Scopes, SessionReach};

const TAG: &str = "\"0b0cb1f48a524c0e8f0e7a1f2f1f0a11-6492a3c1d5f40\"";

pub fn rendered(operation: &Operation, doc: Option<&Doc>, is_built: bool) -> Value {
    let segments: Vec<&str> = operation.path.split('/').filter(|segment| !segment.is_empty()).collect();
    let mut rendered = json!({
        "operationId": operation_id(operation.method.as_str(), &segments),
        "tags": [tag(&segments)],
        "summary": doc.map_or("Not built yet", |doc| doc.summary.as_str()),
        "description": description(operation, doc),
        "parameters": parameters(&segments, doc),
        "security": security(operation),
        "responses": refusals::for_operation(operation, is_built, doc),
        "x-scopes": scopes(operation.scopes),
        "x-implemented": is_built,
        "x-body-limit": operation.body_limit,
    });
    if let Some(whereto) = doc.and_then(|doc| doc.redirects) {
        rendered["responses"]["303"] = redirect(whereto);
    } else if let Some(doc) = doc {
        rendered["responses"]["200"] = if doc.file.is_empty() { success(&doc.answer) } else { file(doc.file) };
        for kind in doc.also_as {
            rendered["responses"]["200"]["content"][*kind] = json!({ "schema": schema::any_text().json });
        }
        if let Some(body) = &doc.body {
            rendered["requestBody"] = request_body(body);
        }
    } else if is_built {
        rendered["responses"]["200"] = success(&schema::any_object());
    }
    if let Access::Keys(kinds) = operation.access {
        rendered["x-key-kinds"] = key_kinds(kinds).into();
    }
    if let Some(doc) = doc {
        if doc.sends_tag {
            rendered["responses"]["200"]["headers"]["ETag"] = tag_header();
        }
        for (name, schema) in &doc.headers {
            let header = json!({
                "name": name, "in": "header", "required": false, "schema": schema.json, "example": schema.example,
                "description": schema.json["description"],
            });
            rendered["parameters"].as_array_mut().expect("a list is made above").push(header);
        }
        if doc.reads_condition {
            rendered["parameters"].as_array_mut().expect("a list is made above").push(condition_parameter());
        }
    }
    if operation.may_be_tried() {
        rendered["parameters"].as_array_mut().expect("a list is made above").push(dry_run_parameter());
    }
    if operation.needs_recent_sign_in() {
        rendered["x-recent-sign-in"] = true.into();
    }
    rendered["x-session"] = operation.session_reach().as_str().into();
    if let Some(feature) = operation.feature {
        rendered["x-feature-flag"] = feature.setting().into();
    }
    rendered
}

/// Every answer names its request.
pub fn headers() -> Value {
    json!({ "x-gateway-request-id": { "description": "The id of the request.", "schema": schema::uuid().json } })
}

pub fn request_body(body: &Schema) -> Value {
    let content = json!({ "application/json": { "schema": body.json, "example": body.example } });
    json!({ "required": body.is_needed(), "content": content })
}

pub fn success(answer: &Schema) -> Value {
    let content = json!({ "application/json": { "schema": answer.json, "example": answer.example } });
    json!({ "description": "Done.", "headers": headers(), "content": content })
}

fn redirect(whereto: &str) -> Value {
    let mut headers = headers();
    headers["Location"] = json!({ "description": whereto, "schema": schema::any_text().json });
    json!({ "description": whereto, "headers": headers })
}

fn file(kinds: &[&str]) -> Value {
    let content: Map<String, Value> =
        kinds.iter().map(|kind| ((*kind).to_owned(), json!({ "schema": schema::any_text().json }))).collect();
    json!({ "description": "The file.", "headers": headers(), "content": content })
}

/// `GET /configs/{slug}/versions` is `get_configs_slug_versions`: stable, and unique because paths are.
pub fn operation_id(method: &str, segments: &[&str]) -> String {
    let plain = |segment: &str| segment.trim_matches(['{', '*', '}']).replace("}:", "_").replace(['-', '.'], "_");
    let words = segments.iter().map(|segment| plain(segment));
    std::iter::once(method.to_ascii_lowercase()).chain(words).collect::<Vec<_>>().join("_")
}

/// The resource: paths of the organisation's administrators begin with a segment that says nothing about it.
pub fn tag<'a>(segments: &[&'a str]) -> &'a str {
    match segments {
        ["admin", resource, ..] | [resource, ..] => resource,
        [] => "",
    }
}

fn description(operation: &Operation, doc: Option<&Doc>) -> String {
    let mut parts: Vec<String> = doc.and_then(|doc| doc.details.clone()).into_iter().collect();
    let needs = match (operation.access, operation.scopes) {
        (Access::Public, _) => "Needs no credential.".to_owned(),
        (Access::ScimToken, _) => "Needs the organisation's SCIM token.".to_owned(),
        (Access::Session, _) => "Needs a person's session, which is a cookie.".to_owned(),
        (Access::Keys(_), Scopes::Any([]) | Scopes::All([])) => "Needs a valid key and no scope.".to_owned(),
        (Access::Keys(_), _) if operation.changes_sign_in() => {
            "Needs the session of an owner, or an organisation key that holds every admin scope.".to_owned()
        }
        (Access::Keys(_), Scopes::Any([one])) => format!("Needs the scope `{one}`."),
        (Access::Keys(_), Scopes::Any(names)) => format!("Needs one of the scopes {}.", quoted(names)),
        (Access::Keys(_), Scopes::All(names)) => format!("Needs all of the scopes {}.", quoted(names)),
    };
    parts.push(needs);
    if let Access::Keys(kinds) = operation.access {
        parts.push(format!("May be called with credentials of the kinds {}.", key_kinds(kinds).join(", ")));
        parts.extend(by_session(operation));
    }
    if operation.needs_recent_sign_in() {
        parts.push(format!(
            "A session that began more than {RECENT_MINUTES} minutes ago is answered 401 `reauthenticate`."
        ));
    }
    if let Some(feature) = operation.feature {
        parts.push(format!("Can be switched off by `{}`.", feature.setting()));
    }
    parts.join(" ")
}

/// Who may call it by a session.
fn by_session(operation: &Operation) -> Option<String> {
    let text = match operation.session_reach() {
        SessionReach::Nowhere | SessionReach::Person => return None,
        SessionReach::Workspace => "By a session: in the workspace that `x-gateway-workspace` names.",
        SessionReach::WorkspaceOrOrganisation => {
            "By a session: in the workspace that `x-gateway-workspace` names; for owners and admins of the organisation \
             in all of it, with `x-gateway-workspace: *`."
        }
        SessionReach::WorkspacesOrOrganisation => {
            "By a session: in the workspace that `x-gateway-workspace` names; without it or with `*` in all workspaces of \
             the person, and for owners and admins of the organisation in all of it."
        }
        SessionReach::Organisation if operation.is_of_sign_in() => "By a session: for owners of the organisation.",
        SessionReach::Organisation => "By a session: for owners and admins of the organisation.",
    };
    Some(text.to_owned())
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

pub fn parameters(segments: &[&str], doc: Option<&Doc>) -> Vec<Value> {
    let in_path = segments.iter().filter(|segment| segment.starts_with('{')).map(|segment| {
        // A verb may follow: `{model}:generateContent`.
        let name = segment.split('}').next().unwrap_or_default().trim_matches(['{', '*']);
        let schema = in_path(name);
        json!({ "name": name, "in": "path", "required": true, "schema": schema.json, "example": schema.example })
    });
    let query = doc.and_then(|doc| doc.query.json["properties"].as_object().map(|fields| (doc, fields)));
    let in_query = query.into_iter().flat_map(|(doc, fields)| {
        fields.iter().map(|(name, schema)| {
            let needed = doc.query.json["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
            let mut parameter = json!({ "name": name, "in": "query", "required": needed, "schema": schema });
            parameter["example"] = doc.query.example[name].clone();
            if let Some(text) = schema.get("description") {
                parameter["description"] = text.clone();
            }
            parameter
        })
    });
    in_path.chain(in_query).collect()
}

fn tag_header() -> Value {
    let says = "The state of the object: sent back as `If-Match`, it lets a change through only while that is still its state. \
                Not of what was only tried.";
    json!({ "description": says, "schema": schema::any_text().json, "example": TAG })
}

/// Of every change of an object that has a tag.
fn condition_parameter() -> Value {
    json!({
        "name": "If-Match", "in": "header", "required": false, "example": TAG, "schema": schema::any_text().json,
        "description": "The `ETag` of the object as it was read, several by commas, or `*`: if it is in none of these states any \
                        more the answer is 412, and `data.changed` says who changed what.",
    })
}

/// Of every change that can be tried.
fn dry_run_parameter() -> Value {
    json!({
        "name": DRY_RUN, "in": "query", "required": false, "example": false, "schema": { "type": "boolean" },
        "description": "`true` answers as the change would, with the header `x-gateway-dry-run: true`, and changes nothing.",
    })
}

/// Ids are looked up as they come: what is no id is not found.
fn in_path(name: &str) -> Schema {
    let is_id = name == "id" || name.ends_with("Id");
    let example = if is_id { "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11" } else { "example" };
    schema::name_of(example)
}

fn security(operation: &Operation) -> Value {
    let (key, bearer, session) = (json!({ "apiKey": [] }), json!({ "bearer": [] }), json!({ "session": [] }));
    match operation.access {
        Access::Public => json!([]),
        Access::ScimToken => json!([{ "scimToken": [] }]),
        Access::Session => json!([session]),
        Access::Keys(_) if operation.session_reach() == SessionReach::Nowhere => json!([key, bearer]),
        Access::Keys(_) => json!([key, bearer, session]),
    }
}

fn scopes(scopes: Scopes) -> Value {
    match scopes {
        Scopes::Any(names) => json!({ "anyOf": names }),
        Scopes::All(names) => json!({ "allOf": names }),
    }
}

fn key_kinds(kinds: KeySet) -> Vec<&'static str> {
    let all = [
        (kinds.organisation_service, "organisation-service"),
        (kinds.workspace_service, "workspace-service"),
        (kinds.workspace_user, "workspace-user"),
        (kinds.jwt, "jwt"),
    ];
    all.iter().filter(|(held, _)| *held).map(|(_, name)| *name).collect()
}
