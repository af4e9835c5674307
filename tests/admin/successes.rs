//! Every operation, called once so that it succeeds: with status 200, an answer as the document says, and what it changes in the
//! audit trail. What nobody calls here fails the test, so a new operation brings its call.

use crate::analytics::COUNTING;
use crate::document::Document;
use crate::dry_run::contents;
use crate::log_exports::Place;
use crate::login::by_link;
use crate::logs::{at, store};
use crate::policies;
use crate::samples::{numbered, samples};
use crate::service::Service;
use harness::{Answer, Client, client::whole};
use http::Method;
use serde_json::{Value, json};
use shared::routes::{self, Access, Lookup, operations};
use std::collections::{BTreeMap, BTreeSet};

/// It exists to refuse what is none of the kinds of keys.
const NEVER_SUCCEEDS: &str = "/api-keys/{type}/{subType}";

/// Called here by a person for themselves, and by a key of a workspace for what it keeps. An admin key may, too; that an owner's
/// session is answered as one there is in `acting`.
const CALLED_BY_OTHERS: [&str; 2] = ["/mcp-servers/{id}/connections", "/cache"];

/// Calls operations, and remembers which.
struct Caller<'s> {
    service: &'s Service,
    /// Whoever acts for the organisation: calls are theirs where no other client is named.
    organisation: Client,
    /// Tables that any call of theirs may write, whatever it does.
    touched: &'static [&'static str],
    document: Document,
    called: BTreeSet<(&'static str, &'static str)>,
    /// Those that were called for the organisation.
    by_organisation: BTreeSet<(&'static str, &'static str)>,
    /// Where tags and conditions are other than the document says.
    strange_tags: BTreeSet<String>,
}

impl Caller<'_> {
    async fn call(&mut self, client: &Client, method: Method, path: &str, body: Value) -> Value {
        let answer = self.send(client, &method, path, &body).await;
        let faults = self.document.faults(&method, path, &answer);
        assert!(faults.is_empty(), "{method} {path}: {faults:?} in {}", answer.text());
        answer.json()
    }

    async fn send(&mut self, client: &Client, method: &Method, path: &str, body: &Value) -> Answer {
        let plain = path.split('?').next().unwrap();
        let Lookup::Operation(operation) = routes::find(method.as_str(), plain) else { panic!("{method} {path}") };
        if operation.may_be_tried() {
            self.try_first(client, method, path, body).await;
            let is_read = self.reads_condition(client, method, path, body).await;
            if is_read != self.document.reads_condition(method, path) {
                self.strange_tags.insert(format!("{method} {}: If-Match {is_read}", operation.path));
            }
        }
        let recorded = self.records().await;
        let request = client.request(method.clone(), path);
        let answer = whole(if body.is_null() { request } else { request.json(body) }).await;
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text());
        assert_eq!(answer.header("x-gateway-dry-run"), "", "{method} {path}");
        let is_recorded = self.records().await > recorded;
        assert!(is_recorded || operation.audit.is_none(), "{method} {path} is not in the audit trail");
        let has_tag = !answer.header("etag").is_empty();
        if has_tag != self.document.sends_tag(method, path) {
            self.strange_tags.insert(format!("{method} {}: ETag {has_tag}", operation.path));
        }
        let called = (operation.method.as_str(), operation.path);
        self.called.insert(called);
        if client.is_same_caller(&self.organisation) {
            self.by_organisation.insert(called);
        }
        answer
    }

    /// How much is in the audit trail, of whomever.
    async fn records(&self) -> i64 {
        let db = self.service.database.client().await;
        db.query_one("SELECT count(*) FROM audit_logs", &[]).await.unwrap().get(0)
    }

    /// The answer that the change would have, and nothing written: not the object, no record, no version.
    async fn try_first(&self, client: &Client, method: &Method, path: &str, body: &Value) {
        let db = self.service.database.client().await;
        let before = self.unless_touched(contents(&db).await);
        let sign = if path.contains('?') { '&' } else { '?' };
        let request = client.request(method.clone(), &format!("{path}{sign}dry_run=true"));
        let answer = whole(if body.is_null() { request } else { request.json(body) }).await;
        assert_eq!((answer.status.as_u16(), answer.header("x-gateway-dry-run")), (200, "true"), "{method} {path}");
        assert!(answer.header("x-gateway-warnings").contains("dry_run"), "{method} {path}");
        let faults = self.document.faults(method, path, &answer);
        assert!(faults.is_empty(), "{method} {path}: {faults:?} in {}", answer.text());
        assert_eq!(self.unless_touched(contents(&db).await), before, "{method} {path} wrote");
    }

    fn unless_touched(&self, mut contents: BTreeMap<String, String>) -> BTreeMap<String, String> {
        contents.retain(|table, _| !self.touched.contains(&table.as_str()));
        contents
    }

    /// Whether a state that the object never had is a reason to refuse. What changes nothing that has a tag says so.
    async fn reads_condition(&self, client: &Client, method: &Method, path: &str, body: &Value) -> bool {
        let sign = if path.contains('?') { '&' } else { '?' };
        let request =
            client.request(method.clone(), &format!("{path}{sign}dry_run=true")).header("if-match", "\"never\"");
        let answer = whole(if body.is_null() { request } else { request.json(body) }).await;
        answer.status == 412
    }

    async fn get(&mut self, path: &str) -> Value {
        self.call(&self.organisation.clone(), Method::GET, path, Value::Null).await
    }

    async fn post(&mut self, path: &str, body: Value) -> Value {
        self.call(&self.organisation.clone(), Method::POST, path, body).await
    }

    async fn put(&mut self, path: &str, body: Value) -> Value {
        self.call(&self.organisation.clone(), Method::PUT, path, body).await
    }

    async fn delete(&mut self, path: &str, body: Value) -> Value {
        self.call(&self.organisation.clone(), Method::DELETE, path, body).await
    }

    /// The five operations of each plain resource.
    async fn resources(&mut self) {
        for (n, sample) in samples().iter().enumerate() {
            sample.prepare(self.service).await;
            let mut body = numbered(&sample.body, n);
            if sample.is_in_workspace {
                body["workspace_id"] = json!(self.service.home.workspace_id);
            }
            let made = self.post(sample.create_path(), body).await;
            let path = format!("{}/{}", sample.path, made["id"].as_str().unwrap());
            self.get(&sample.list_path(self.service, "")).await;
            self.get(&path).await;
            self.put(&path, numbered(&sample.change, n)).await;
            self.delete(&path, numbered(&sample.delete, n)).await;
        }
    }

    async fn organisation(&mut self) {
        for (path, change) in [
            ("/admin/organisation", json!({ "name": "Home" })),
            ("/admin/organisation/defaults", json!({ "input_guardrails": [] })),
            ("/admin/organisation/security-settings", json!({ "membersViewLogs": true })),
            ("/admin/organisation/auth-settings", json!({ "jwks_url": "https://id.test/keys" })),
        ] {
            self.get(path).await;
            self.put(path, change).await;
        }
        let excluded = json!({ "workspaces": [{ "workspace_id": self.service.home.workspace_id, "excluded": true }] });
        for path in ["/workspace-exclusions/input-guardrails", "/workspace-exclusions/output-guardrails"] {
            self.get(path).await;
            self.put(path, excluded.clone()).await;
        }
        self.get("/audit-logs").await;
        let made = self.post("/deployments", json!({ "name": "rotated", "type": "production" })).await;
        self.post(&format!("/deployments/{}/rotate-token", made["slug"].as_str().unwrap()), json!({})).await;
    }

    async fn people(&mut self) {
        const INVITES: &str = "/admin/users/invites";
        let invited = self.post(INVITES, json!({ "email": "ada@x.test", "role": "member" })).await;
        let path = format!("{INVITES}/{}", invited["id"].as_str().unwrap());
        self.get(INVITES).await;
        self.get(&path).await;
        let again = self.post(&format!("{path}/resend"), json!({})).await;
        let token = again["invite_link"].as_str().unwrap().split_once("#token=").unwrap().1;
        let stranger = self.service.client();
        self.call(&stranger, Method::POST, &format!("{INVITES}/accept"), json!({ "token": token })).await;
        let second = self.post(INVITES, json!({ "email": "bob@x.test", "role": "member" })).await;
        self.delete(&format!("{INVITES}/{}", second["id"].as_str().unwrap()), Value::Null).await;
        let person = self.service.person("member", None).await;
        for base in ["/admin/workspaces", "/workspaces"] {
            let all = format!("{base}/{}/users", self.service.home.workspace_id);
            let one = format!("{all}/{person}");
            self.post(&all, json!({ "users": [{ "id": person, "role": "manager" }] })).await;
            self.get(&all).await;
            self.get(&one).await;
            self.put(&one, json!({ "role": "member" })).await;
            self.delete(&one, Value::Null).await;
        }
        let domain = self.post("/admin/domains", json!({ "domain": "acme.test" })).await;
        let path = format!("/admin/domains/{}", domain["id"].as_str().unwrap());
        self.get("/admin/domains").await;
        // As if the DNS had been asked; that is in `domains`.
        const PROVE: &str = "WITH claim AS (DELETE FROM domain_claims RETURNING id, organisation_id, domain)
            INSERT INTO verified_domains (id, organisation_id, domain, method)
            SELECT id, organisation_id, domain, 'operator' FROM claim";
        self.service.database.client().await.execute(PROVE, &[]).await.unwrap();
        self.post(&format!("{path}/verify"), json!({})).await;
        self.delete(&path, Value::Null).await;
        self.post("/admin/saml-keys", json!({})).await;
        self.post("/admin/saml-keys", json!({})).await;
        self.get("/admin/saml-keys").await;
        self.post("/admin/saml-keys/activate", json!({})).await;
        self.delete("/admin/saml-keys/standby", Value::Null).await;
        let mapping =
            json!({ "workspace_id": self.service.home.workspace_id, "role": "Member", "scim_group_name": "G" });
        let mapping = self.post("/scim/workspaces", mapping).await;
        self.get("/scim/workspaces").await;
        self.get("/scim/groups").await;
        self.delete(&format!("/scim/workspaces/{}", mapping["id"].as_str().unwrap()), Value::Null).await;
        let path = format!("/admin/users/{person}");
        self.get("/admin/users").await;
        self.get(&path).await;
        self.put(&path, json!({ "role": "admin" })).await;
        self.get(&format!("{path}/sessions")).await;
        self.delete(&format!("{path}/sessions"), Value::Null).await;
        self.delete(&path, Value::Null).await;
    }

    async fn keys(&mut self) {
        let home = &self.service.home;
        let (workspace, owner) = (home.workspace_id, home.owner_id);
        self.post("/api-keys/organisation/service", json!({ "name": "k", "scopes": ["prompts.list"] })).await;
        let user = json!({ "name": "k", "scopes": ["completions.write"], "workspace_id": workspace, "user_id": owner });
        let made = self.post("/api-keys/workspace/user", user).await;
        self.post(&format!("/api-keys/{}/rotate", made["id"].as_str().unwrap()), json!({})).await;
        // A session is described by fewer words than a key.
        self.send(&self.organisation.clone(), &Method::GET, "/api-keys/self", &Value::Null).await;
    }

    async fn configs(&mut self) {
        let workspace = self.service.home.workspace_id;
        let body = json!({ "name": "c", "config": { "provider": "@a" }, "workspace_id": workspace });
        let made = self.post("/configs", body).await;
        let path = format!("/configs/{}", made["slug"].as_str().unwrap());
        self.put(&path, json!({ "config": { "provider": "@b" } })).await;
        self.get(&format!("{path}/versions")).await;
        let first = made["version_id"].as_str().unwrap();
        self.get(&format!("{path}/versions/diff?from={first}")).await;
        self.post(&format!("{path}/rollback"), json!({ "version_id": first })).await;
    }

    async fn guardrails(&mut self) {
        let checks = json!([{ "id": "default.contains", "parameters": { "operator": "none", "words": ["x"] } }]);
        let organisation = self.service.home.organisation_id;
        let body = json!({ "name": "g", "checks": checks, "actions": {}, "organisation_id": organisation });
        let made = self.post("/guardrails", body).await;
        let path = format!("/guardrails/{}", made["slug"].as_str().unwrap());
        self.put(&path, json!({ "actions": { "deny": true } })).await;
        self.get(&format!("{path}/versions")).await;
        self.post(&format!("{path}/rollback"), json!({ "version_id": made["version_id"] })).await;
        self.get("/guardrails/checks").await;
        self.post("/guardrails/test", json!({ "checks": checks, "text": "x" })).await;
        self.put("/admin/organisation/defaults", json!({ "output_guardrails": [made["id"]] })).await;
        self.get("/admin/organisation/defaults").await;
        self.post("/plugins", json!({ "id": "aiguard", "credentials": { "apiKey": "ag-0123456789" } })).await;
        self.put("/plugins/aiguard", json!({ "credentials": { "apiKey": "ag-9876543210" } })).await;
        self.get("/plugins").await;
    }

    async fn prompts(&mut self) {
        let workspace = self.service.home.workspace_id;
        let body = json!({ "name": "p", "string": "Be kind.", "workspace_id": workspace });
        let partial = self.post("/prompts/partials", body).await;
        let path = format!("/prompts/partials/{}", partial["slug"].as_str().unwrap());
        self.get(&format!("{path}/versions")).await;
        self.put(&format!("{path}/makeDefault"), json!({ "version": 1 })).await;
        let messages =
            json!([{ "role": "user", "content": format!("Hi. {{{{>{}}}}}", partial["slug"].as_str().unwrap()) }]);
        let body = json!({
            "name": "p", "string": messages.to_string(), "parameters": { "model": "m", "n": 1 }, "virtual_key": "v",
            "workspace_id": workspace, "tool_choice": "auto", "tools": [{ "type": "function" }],
        });
        let made = self.post("/prompts", body).await;
        let path = format!("/prompts/{}", made["slug"].as_str().unwrap());
        let label = self.get("/labels").await["data"][0]["id"].clone();
        self.put(&format!("{path}/versions/1"), json!({ "label_id": label })).await;
        self.get(&format!("{path}/versions")).await;
        let declared = json!([{ "name": "tone", "type": "string" }]);
        self.put(&path, json!({ "patch": true, "model": "n", "declared_variables": declared })).await;
        self.get(&format!("{path}/versions/diff")).await;
        let split = json!({ "versions": [{ "version": 1, "weight": 90 }, { "version": 2, "weight": 10 }] });
        self.put(&format!("{path}/labels/staging"), split).await;
        self.get(&format!("{path}/labels")).await;
        self.get(&format!("{path}/versions/2")).await;
        self.delete(&format!("{path}/labels/staging"), Value::Null).await;
        self.get(&format!("{path}/versions/{}", made["version_id"].as_str().unwrap())).await;
        self.put(&format!("{path}/makeDefault"), json!({ "version": 1 })).await;
        let rendered = self.post(&format!("{path}/render"), json!({ "variables": {}, "seed": 1 })).await;
        assert_eq!(rendered["data"]["messages"][0]["content"], "Hi. Be kind.", "{rendered}");
    }

    async fn integrations(&mut self) {
        let body = json!({ "name": "Main", "slug": "main", "ai_provider_id": "openai", "key": "sk-0123456789" });
        self.post("/integrations", body).await;
        let models = json!({ "models": [{ "slug": "house/model", "enabled": true, "is_custom": true, "base_model_slug": "gpt-4o" }] });
        for path in ["/integrations/main/models", "/integrations/main/integration-models"] {
            self.put(path, models.clone()).await;
        }
        self.get("/integrations/main/models").await;
        self.delete("/integrations/main/models?slugs=house/model", Value::Null).await;
        let workspace = self.service.home.workspace_id.to_string();
        self.put("/integrations/main/workspaces", json!({ "workspaces": [{ "id": workspace, "enabled": true }] }))
            .await;
        self.get("/integrations/main/workspaces").await;
        self.get("/providers/types").await;
        // Nobody is called for these.
        let account = json!({ "aws_auth_type": "serviceRole", "aws_region": "us-east-1" });
        let body = json!({ "name": "Aws", "slug": "aws", "ai_provider_id": "bedrock", "configurations": account });
        self.post("/integrations", body).await;
        self.post("/integrations/aws/test", json!({})).await;
        self.post("/providers/types/bedrock/test", json!({ "configurations": account })).await;
    }

    /// Nobody listens there, which these operations tell with 200.
    async fn mcp(&mut self) {
        let workspace = self.service.home.workspace_id;
        let url = "https://mcp.example.com/mcp";
        let body = json!({ "name": "Mcp", "slug": "mcp", "url": url, "auth_type": "none", "transport": "http" });
        self.post("/mcp-integrations", body).await;
        let access = json!({ "workspaces": [{ "id": workspace, "enabled": true }] });
        self.put("/mcp-integrations/mcp/workspaces", access).await;
        self.get("/mcp-integrations/mcp/workspaces").await;
        let off = json!({ "capabilities": [{ "name": "delete", "type": "tool", "enabled": false }] });
        self.put("/mcp-integrations/mcp/capabilities", off).await;
        self.get("/mcp-integrations/mcp/capabilities").await;
        let body = json!({ "name": "S", "slug": "srv", "mcp_integration_id": "mcp", "workspace_id": workspace });
        self.post("/mcp-servers", body).await;
        for path in ["/mcp-integrations/mcp/metadata", "/mcp-servers/srv/metadata"] {
            self.get(path).await;
        }
        for path in [
            "/mcp-integrations/mcp/test",
            "/mcp-integrations/mcp/sync",
            "/mcp-servers/srv/test",
            "/mcp-servers/srv/metadata/sync",
            "/mcp-servers/srv/capabilities/sync",
        ] {
            self.post(path, Value::Null).await;
        }
        self.mcp_people().await;
    }

    /// Whom nobody has to be asked for: the endpoints of the authorisation server are told.
    async fn mcp_people(&mut self) {
        let (workspace, owner) = (self.service.home.workspace_id, self.service.home.owner_id);
        let told = json!({
            "client_id": "c", "authorization_endpoint": "https://id.example.com/authorize",
            "token_endpoint": "https://id.example.com/token",
        });
        let body = json!({
            "name": "O", "slug": "owned", "url": "https://mcp.example.com/mcp", "auth_type": "oauth", "transport": "http",
            "workspace_id": workspace, "configurations": { "oauth_metadata": told },
        });
        self.post("/mcp-integrations", body).await;
        let body = json!({ "name": "P", "slug": "people", "mcp_integration_id": "owned", "workspace_id": workspace });
        self.post("/mcp-servers", body).await;
        let flag = json!({ "capabilities": [{ "name": "delete", "type": "tool", "enabled": false }] });
        self.put("/mcp-servers/people/capabilities", flag).await;
        let access = json!({ "default_user_access": "deny", "user_access": [{ "user_id": owner, "enabled": true }] });
        self.put("/mcp-servers/people/user-access", access).await;
        for path in ["capabilities", "user-access", "connections", "client-info"] {
            self.get(&format!("/mcp-servers/people/{path}")).await;
        }
        self.get(&format!("/mcp-servers/people/user-access/check?user_id={owner}")).await;
        let person = self.service.person_client(workspace, owner).await;
        let tokens = json!({ "access_token": "a", "refresh_token": "r", "expires_at": "2099-01-15T10:30:00Z" });
        self.call(&person, Method::PUT, "/mcp-servers/people/tokens", tokens).await;
        for (method, path) in [
            (Method::GET, "tokens"),
            (Method::GET, "connections"),
            (Method::GET, "connect"),
            (Method::DELETE, "tokens"),
            (Method::DELETE, "connections"),
        ] {
            self.call(&person, method, &format!("/mcp-servers/people/{path}"), Value::Null).await;
        }
    }

    async fn policies(&mut self) {
        let rate = self.post("/policies/rate-limits", policies::rate(self.service)).await;
        self.get(&format!("/policies/rate-limits/{}/entities", rate["id"].as_str().unwrap())).await;
        let usage = self.post("/policies/usage-limits", policies::usage(self.service)).await;
        let policy = format!("/policies/usage-limits/{}", usage["id"].as_str().unwrap());
        policies::spend(self.service, &policy, "metadata._user:ada", "100").await;
        let entities = self.get(&format!("{policy}/entities")).await;
        let entity = entities["data"][0]["id"].as_str().unwrap_or_else(|| panic!("{entities}"));
        self.put(&format!("{policy}/entities/{entity}/reset"), json!({})).await;
        self.post(&format!("{policy}/entities/reset"), json!({ "entity_id": entity })).await;
    }

    async fn logs(&mut self, place: &Place) {
        let id = store(self.service, at(5), json!({ "trace_id": "t" })).await;
        self.get("/logs").await;
        self.send(&self.organisation.clone(), &Method::GET, "/logs/tail", &Value::Null).await;
        self.get(&format!("/logs/{id}")).await;
        self.post("/explain", json!({ "request_id": id })).await;
        let client = self.service.workspace_client(self.service.home.workspace_id).await;
        let call = json!({
            "request": { "url": "https://api.openai.com/v1/chat/completions", "provider": "openai", "body": { "model": "gpt-4o" } },
            "response": { "status": 200, "body": { "model": "gpt-4o" } },
        });
        self.call(&client, Method::POST, "/logs", call).await;
        let given = self.call(&client, Method::POST, "/feedback", json!({ "trace_id": "t", "value": 1 })).await;
        let given = format!("/feedback/{}", given["feedback_ids"][0].as_str().unwrap());
        self.call(&client, Method::PUT, &given, json!({ "value": 2 })).await;
        self.exports(place).await;
        self.analytics().await;
        self.post("/logs/erase", json!({ "trace_id": "t", "mode": "delete" })).await;
        self.call(&client, Method::DELETE, "/cache", json!({ "namespace": "team-a" })).await;
    }

    async fn exports(&mut self, place: &Place) {
        const EXPORTS: &str = "/logs/exports";
        self.get(&format!("{EXPORTS}/field-restrictions")).await;
        let body = json!({ "filters": {}, "requested_data": ["id"] });
        let made = self.post(EXPORTS, body).await;
        let path = format!("{EXPORTS}/{}", made["id"].as_str().unwrap());
        self.get(EXPORTS).await;
        self.get(&path).await;
        self.put(&path, json!({ "description": "d" })).await;
        self.post(&format!("{path}/start"), json!({})).await;
        self.post(&format!("{path}/cancel"), json!({})).await;
        self.post(&format!("{path}/start"), json!({})).await;
        place.make().await;
        let links = self.get(&format!("{path}/download")).await;
        let link = links["signed_urls"][0].as_str().unwrap_or_else(|| panic!("{links}"));
        let (_, file) = link.split_once("/v1").unwrap();
        let file = self.send(&self.service.client(), &Method::GET, file, &Value::Null).await;
        assert!(file.text().lines().count() > 0, "{}", file.text());
    }

    async fn analytics(&mut self) {
        const SAVED: &str = "/analytics/saved-filters";
        let time = "time_of_generation_min=2026-01-01T00:00:00Z&time_of_generation_max=2036-01-01T00:00:00Z";
        for path in COUNTING {
            self.get(&format!("{path}?{time}")).await;
        }
        self.get("/analytics/budgets").await;
        let period = json!({ "from": "2026-01-01T00:00:00Z", "to": "2036-01-01T00:00:00Z" });
        let questions = json!([{ "graph": "requests" }, { "group": "model" }, { "summary": "cache" }]);
        self.post("/analytics/query", json!({ "period": period, "questions": questions })).await;
        let made = self.post(SAVED, json!({ "name": "Failed", "filters": { "status_code": "500" } })).await;
        self.get(SAVED).await;
        let path = format!("{SAVED}/{}", made["id"].as_str().unwrap());
        self.put(&path, json!({ "name": "All" })).await;
        self.delete(&path, Value::Null).await;
    }

    async fn public(&mut self) {
        for path in [
            "/model-configs/pricing/openai/gpt-4o",
            "/model-configs/pricing/openai",
            "/model-configs/general/openai",
            "/openapi.json",
        ] {
            self.call(&self.service.client(), Method::GET, path, Value::Null).await;
        }
    }
}

/// Calls everything there is, those of the organisation by this client.
async fn walk<'p>(place: &'p Place, organisation: Client, touched: &'static [&'static str]) -> Caller<'p> {
    let service = &place.service;
    let document = Document::of(service).await;
    let mut caller = Caller {
        service,
        organisation,
        touched,
        document,
        called: BTreeSet::new(),
        by_organisation: BTreeSet::new(),
        strange_tags: BTreeSet::new(),
    };
    caller.resources().await;
    caller.organisation().await;
    caller.people().await;
    caller.keys().await;
    caller.configs().await;
    caller.guardrails().await;
    caller.prompts().await;
    caller.integrations().await;
    caller.mcp().await;
    caller.policies().await;
    caller.logs(place).await;
    caller.public().await;
    caller
}

#[tokio::test]
async fn every_operation_succeeds_and_answers_as_documented() {
    let place = Place::start().await;
    let caller = walk(&place, place.service.administrator(), &[]).await;
    // What an identity provider calls is in `scim`, how people sign in in `login`.
    let rows = operations().filter(|one| one.access != Access::ScimToken && !one.path.starts_with("/auth/"));
    let rows = rows.filter(|one| one.path != NEVER_SUCCEEDS);
    let missing: Vec<_> =
        rows.map(|one| (one.method.as_str(), one.path)).filter(|one| !caller.called.contains(one)).collect();
    assert!(missing.is_empty(), "nobody called {missing:?}");
    assert!(caller.strange_tags.is_empty(), "{:#?}", caller.strange_tags);
}

/// Every call that succeeds with an admin key does by the session of an owner, with the same body and an answer of the same form.
/// What is called here by others (keys of workspaces, people at their MCP servers, nobody) is what an admin key may not call or
/// what needs no key; `acting` holds that of every row of the table.
#[tokio::test]
async fn an_owner_succeeds_by_session_with_all_that_an_admin_key_succeeds_with() {
    let place = Place::start().await;
    let owner = by_link(&place.service, place.service.home.owner_id).await.with("x-gateway-workspace", "*");
    // A session says when it was used last.
    let caller = walk(&place, owner.as_client(), &["sessions"]).await;
    let rows = operations().filter(|one| matches!(one.access, Access::Keys(kinds) if kinds.organisation_service));
    let rows = rows.filter(|one| one.path != NEVER_SUCCEEDS && !CALLED_BY_OTHERS.contains(&one.path));
    let missing: Vec<_> =
        rows.map(|one| (one.method.as_str(), one.path)).filter(|one| !caller.by_organisation.contains(one)).collect();
    assert!(missing.is_empty(), "an admin key may call {missing:?}, and the owner did not");
}
