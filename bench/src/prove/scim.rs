//! A large directory: an identity provider tells of everybody, one request for each person and group as such providers
//! do it; a change of a large group writes only the rows of who was named in it; and who is removed is out everywhere
//! within a second (`removal`).

mod removal;

use super::client::Caller;
use super::report::{Report, Spread};
use super::stack::Stack;
use anyhow::{Context as _, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use http::Method;
use serde_json::{Value, json};
use shared::identity::api_key::KeyHash;
use std::time::{Duration, Instant};
use tokio_postgres::Client;

const LIMIT: Duration = Duration::from_secs(120);
/// Requests at once, as one of the large identity providers sends them.
const AT_ONCE: usize = 8;
const TOKEN: &str = "scim-proof-0123456789abcdef0123456789";
/// Of the group that is changed in the end.
const LARGE: usize = 1000;

/// People who are removed in the end, one after the other.
const REMOVED: usize = 50;

/// Rows that are written from now on, by table.
const COUNT: &str = "CREATE TABLE written (of text NOT NULL);
    CREATE FUNCTION count_written() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO written VALUES (TG_TABLE_NAME); RETURN NULL; END $$;
    CREATE TRIGGER written AFTER INSERT OR UPDATE OR DELETE ON scim_group_members
        FOR EACH ROW EXECUTE FUNCTION count_written();
    CREATE TRIGGER written AFTER INSERT OR UPDATE OR DELETE ON workspace_members
        FOR EACH ROW EXECUTE FUNCTION count_written();
    CREATE TRIGGER written AFTER INSERT OR UPDATE OR DELETE ON users FOR EACH ROW EXECUTE FUNCTION count_written();";

pub async fn prove(users: usize, groups: usize, report: &mut Report) -> anyhow::Result<()> {
    let stack = Stack::start(&[]).await?;
    let writer = stack.database().await?;
    let provider = provider(&stack, &writer).await?;
    let begun = Instant::now();
    let people: Vec<(String, Duration)> = stream::iter(0..users)
        .map(|n| made(&provider, "/v1/scim/Users", person(n)))
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let of_users = begun.elapsed();
    let ids: Vec<&str> = people.iter().map(|(id, _)| id.as_str()).collect();
    let each = (users / groups.max(1)).max(1);
    let teams: Vec<(String, Duration)> = stream::iter(0..groups)
        .map(|n| {
            let members = (0..each * 5).map(|m| ids[(n * each + m) % ids.len()]);
            made(&provider, "/v1/scim/Groups", group(&format!("ws-Team{n}-role-member"), members))
        })
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let whole = begun.elapsed();
    report.figure("users and groups", format!("{} and {}, {} in each", people.len(), teams.len(), each * 5));
    report.figure("provisioned in", format!("{:.1} s, users in {:.1} s", whole.as_secs_f64(), of_users.as_secs_f64()));
    let times = |made: Vec<(String, Duration)>| Spread::of(made.into_iter().map(|(_, time)| time).collect());
    report.figure("a user takes", times(people.clone()).context("there are users")?);
    report.figure("a group takes", times(teams).context("there are groups")?);
    report.promise("everybody is there in under 2 minutes", whole < LIMIT);

    let large = group("ws-Everybody-role-member", ids.iter().copied().take(LARGE));
    let (large, _) = made(&provider, "/v1/scim/Groups", large).await?;
    writer.batch_execute(COUNT).await?;
    let body = json!({ "Operations": [
        { "op": "remove", "path": format!("members[value eq \"{}\"]", ids[0]) },
        { "op": "add", "path": "members", "value": [{ "value": ids[ids.len() - 1] }] },
    ] });
    let mut request = provider.post_json(&format!("/v1/scim/Groups/{large}?excludedAttributes=members"), &body);
    *request.method_mut() = Method::PATCH;
    let (status, text) = provider.answer(request).await?;
    ensure!(status == 200, "PATCH of a group: {status} {text}");
    let written = written(&writer).await?;
    report.figure("rows written by a change of two members of 1,000", written.iter().map(|(_, n)| n).sum::<i64>());
    let of = |table: &str| written.iter().find(|(of, _)| of == table).map_or(0, |(_, n)| *n);
    report.promise(
        "a change of a group writes the rows of its members alone",
        of("scim_group_members") == 2 && of("workspace_members") == 2 && of("users") == 0,
    );
    let removed: Vec<&str> = ids.iter().copied().skip(1).take(REMOVED).collect();
    removal::prove(&stack, &writer, &provider, &removed, report).await?;
    drop(writer);
    stack.stop(report)
}

/// The identity provider, by a token that is put where the settings would put it.
async fn provider(stack: &Stack, writer: &Client) -> anyhow::Result<Caller> {
    const ENABLE: &str = "UPDATE organisations SET auth_settings = auth_settings || '{\"scim\": {\"enabled\": true}}'";
    const ADD: &str = "INSERT INTO scim_tokens (organisation_id, hash) SELECT id, $1 FROM organisations LIMIT 1";
    writer.execute(ENABLE, &[]).await?;
    writer.execute(ADD, &[&KeyHash::from_key(TOKEN.as_bytes()).0.to_vec()]).await?;
    // Where admin is: the way through the proxy is not what is measured.
    stack.administrator_address().with("authorization", &format!("Bearer {TOKEN}"))
}

fn person(n: usize) -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "userName": format!("person{n}@proof.test"),
        "externalId": format!("ext-{n}"),
        "name": { "givenName": "Person", "familyName": n.to_string() },
        "emails": [{ "value": format!("person{n}@proof.test"), "type": "work", "primary": true }],
        "active": true,
    })
}

fn group<'i>(name: &str, members: impl Iterator<Item = &'i str>) -> Value {
    let members: Vec<Value> = members.map(|id| json!({ "value": id })).collect();
    json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"], "displayName": name, "members": members,
    })
}

/// The id of what was made, and how long that took.
async fn made(provider: &Caller, path: &str, body: Value) -> anyhow::Result<(String, Duration)> {
    let begun = Instant::now();
    let (status, text) = provider.answer(provider.post_json(path, &body)).await?;
    ensure!(status == 201, "POST {path}: {status} {text}");
    let made: Value = serde_json::from_str(&text).context("the answer is no JSON")?;
    Ok((made["id"].as_str().context("it has an id")?.to_owned(), begun.elapsed()))
}

async fn written(db: &Client) -> anyhow::Result<Vec<(String, i64)>> {
    let rows = db.query("SELECT of, count(*) FROM written GROUP BY of", &[]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}
