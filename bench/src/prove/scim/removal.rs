//! A person whom the identity provider removes: how soon every proxy refuses their key, and admin their session. The clock
//! starts before the identity provider's call, so all of it counts.

use super::super::client::Caller;
use super::super::propagation::effect;
use super::super::report::{Report, Spread};
use super::super::stack::{Replica, Stack};
use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use http::{Method, StatusCode};
use serde_json::json;
use shared::identity::api_key::{self, KeyHash};
use std::time::{Duration, Instant};
use tokio_postgres::Client;
use uuid::Uuid;

const LIMIT: Duration = Duration::from_secs(1);
/// Proxies beside the stack's own.
const REPLICAS: usize = 2;
const SCOPES: &[&str] = &["completions.write"];

/// Somebody with a key at every proxy, and a session.
struct Person {
    id: Uuid,
    proxies: Vec<Caller>,
    browser: Caller,
}

pub async fn prove(
    stack: &Stack,
    writer: &Client,
    provider: &Caller,
    people: &[&str],
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut replicas = Vec::new();
    for number in 0..REPLICAS {
        replicas.push(stack.replica(&format!("replica-{number}"), &[]).await?);
    }
    let mut times = Vec::new();
    for id in people {
        let person = Person::settle(stack, writer, &replicas, id.parse()?).await?;
        times.push(person.removal(provider).await?);
    }
    let spread = Spread::of(times).context("nobody was removed")?;
    let is_in_time = spread.p99 <= LIMIT;
    report.figure(&format!("a removed person is out at {} proxies and admin after", REPLICAS + 1), spread);
    report.promise("the p99 of removals has effect everywhere within a second", is_in_time);
    Ok(())
}

impl Person {
    /// By SQL, as an administrator and a login would; until every proxy knows the key.
    async fn settle(stack: &Stack, writer: &Client, replicas: &[Replica], id: Uuid) -> anyhow::Result<Self> {
        const MEMBER: &str = "INSERT INTO workspace_members (workspace_id, user_id, organisation_id, role)
            SELECT id, $2, organisation_id, 'member' FROM workspaces WHERE id = $1";
        const KEY: &str =
            "INSERT INTO api_keys (organisation_id, workspace_id, user_id, kind, name, hash, mask, scopes)
            SELECT organisation_id, id, $2, 'workspace-user', 'Proof', $3, '*', $4 FROM workspaces WHERE id = $1";
        const SESSION: &str = "INSERT INTO sessions (organisation_id, user_id, hash, provider, csrf_token)
            SELECT organisation_id, $2, $3, 'saml', 'c' FROM workspaces WHERE id = $1";
        let workspace = stack.workspace().await?;
        let (key, session) = (api_key::generate("pk_"), api_key::generate(""));
        let hash = |secret: &str| KeyHash::from_key(secret.as_bytes()).0.to_vec();
        writer.execute(MEMBER, &[&workspace, &id]).await?;
        writer.execute(KEY, &[&workspace, &id, &hash(&key), &SCOPES]).await?;
        writer.execute(SESSION, &[&workspace, &id, &hash(&session)]).await?;
        let mut proxies = vec![stack.caller_with(&key)?];
        for replica in replicas {
            proxies.push(stack.caller_with_at(replica, &key)?);
        }
        let begun = Instant::now();
        try_join_all(proxies.iter().map(|proxy| effect(proxy, begun, StatusCode::OK))).await?;
        let browser = stack.administrator_address().with("cookie", &format!("gateway_session={session}"))?;
        let person = Self { id, proxies, browser };
        ensure!(person.session().await? == StatusCode::OK, "the session is not there");
        Ok(person)
    }

    async fn session(&self) -> anyhow::Result<StatusCode> {
        self.browser.status_of("/v1/auth/session").await
    }

    /// How long it takes from the identity provider's call until nobody lets them in.
    async fn removal(&self, provider: &Caller) -> anyhow::Result<Duration> {
        let body = json!({ "Operations": [{ "op": "replace", "path": "active", "value": false }] });
        let mut request = provider.post_json(&format!("/v1/scim/Users/{}", self.id), &body);
        *request.method_mut() = Method::PATCH;
        let begun = Instant::now();
        let (status, text) = provider.answer(request).await?;
        ensure!(status == StatusCode::OK, "PATCH of a user: {status} {text}");
        let session = self.session().await?;
        ensure!(session == StatusCode::UNAUTHORIZED, "the session is {session} after the call");
        let refused = self.proxies.iter().map(|proxy| effect(proxy, begun, StatusCode::UNAUTHORIZED));
        let times = try_join_all(refused).await?;
        times.into_iter().max().context("there are proxies")
    }
}
