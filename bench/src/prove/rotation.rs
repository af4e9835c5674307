//! The master key and then the data keys are replaced by the real command while applications call through a stored
//! provider: nobody notices, and afterwards the old master key opens nothing.

use super::client::Caller;
use super::load::Load;
use super::report::Report;
use super::stack::{Outcome, Stack};
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use shared::secrets::seal::Keyring;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Services look at the keyring once a second.
const NOTICED: Duration = Duration::from_millis(2500);
const CALM: Duration = Duration::from_secs(2);
/// What the load must reach to count.
const RATE: f64 = 500.0;
const PROVIDER: &str = "rotating";

/// The keyring, and what it holds at each stage.
struct Keys {
    file: PathBuf,
    old: String,
    new: String,
}

impl Keys {
    fn new(folder: &Path) -> anyhow::Result<Self> {
        let keys =
            Self { file: folder.join("keyring"), old: Keyring::generate("old")?, new: Keyring::generate("new")? };
        keys.hold(&keys.old)?;
        std::fs::write(keys.only("old"), &keys.old)?;
        std::fs::write(keys.only("new"), &keys.new)?;
        Ok(keys)
    }

    fn hold(&self, text: &str) -> anyhow::Result<()> {
        // By a rename, as an operator's tool would: nobody reads half a file.
        let next = self.file.with_extension("next");
        std::fs::write(&next, text)?;
        Ok(std::fs::rename(&next, &self.file)?)
    }

    /// A keyring of one key alone.
    fn only(&self, name: &str) -> PathBuf {
        self.file.with_extension(name)
    }
}

pub async fn prove(accounts: usize, report: &mut Report) -> anyhow::Result<()> {
    // Half as many configs as accounts, each with two copies of its credential.
    let accounts = accounts.next_multiple_of(2);
    let folder = tempfile::tempdir()?;
    let keys = Keys::new(folder.path())?;
    let file = keys.file.to_string_lossy().into_owned();
    let stack = Stack::start(&[("GATEWAY_MASTER_KEY_FILE", &file)]).await?;
    let administrator = stack.administrator().await?;
    fill(&stack, &administrator, accounts).await?;
    let values = accounts * 2 + 1;
    let caller = stack.caller_of(PROVIDER).await?;
    stack.until_answered(&caller).await?;

    let (load, begun) = (Load::start(&caller), Instant::now());
    tokio::time::sleep(CALM).await;
    keys.hold(&format!("{}{}", keys.new, keys.old))?;
    tokio::time::sleep(NOTICED).await;
    let rotated = stack.admin_command(&["keys", "rotate"], &[]).await?;
    report.promise("the master key is rotated", rotated.is_success() && rotated.says("data keys are under the first"));
    let found = verify(&stack, &keys.file).await?;
    report.promise("every value opens with both keys at hand", found.is_success() && found.says(&opened(values)));
    let found = verify(&stack, &keys.only("old")).await?;
    report.promise("the old master key opens nothing any more", found.code == Some(3) && found.says(&broken(values)));
    keys.hold(&keys.new)?;
    tokio::time::sleep(NOTICED).await;

    let rotated = stack.admin_command(&["keys", "rotate", "--data-keys"], &[]).await?;
    report.promise(
        "the data keys are replaced",
        rotated.is_success() && rotated.says(&format!("{values} values sealed")),
    );
    account(&stack, &administrator, "afterwards").await?;
    tokio::time::sleep(CALM).await;
    let tally = load.stop().await?;
    let rate = (tally.answered + tally.streams) as f64 / begun.elapsed().as_secs_f64();

    let found = verify(&stack, &keys.only("new")).await?;
    report.promise("the new master key alone opens everything", found.is_success() && found.says(&opened(values + 1)));
    let found = verify(&stack, &keys.only("old")).await?;
    report.promise("and the old one nothing", found.code == Some(3) && found.says(&broken(values + 1)));
    report.figure("sealed values", values + 1);
    report.figure("requests", tally.answered + tally.streams);
    report.figure("requests per second", format!("{rate:.0}"));
    for (why, times) in &tally.failed {
        report.figure("failed", format!("{times} × {why}"));
    }
    let is_clean = tally.failures() == 0 && tally.refused == 0 && tally.reconnected == 0;
    report.promise("no request fails while keys are replaced", is_clean && tally.answered > 0);
    report.promise(&format!("at {RATE} requests per second or more"), rate >= RATE);
    stack.stop(report)
}

fn opened(values: usize) -> String {
    format!("sealed values: {values} open, 0 do not")
}

fn broken(values: usize) -> String {
    format!("sealed values: 0 open, {values} do not")
}

async fn verify(stack: &Stack, keyring: &Path) -> anyhow::Result<Outcome> {
    let keyring = keyring.to_string_lossy().into_owned();
    stack.admin_command(&["keys", "verify"], &[("GATEWAY_MASTER_KEY_FILE", keyring)]).await
}

/// The account that is called by the provider that comes with it, others, and configs with a credential inside.
async fn fill(stack: &Stack, administrator: &Caller, accounts: usize) -> anyhow::Result<()> {
    account(stack, administrator, PROVIDER).await?;
    for n in 0..accounts {
        account(stack, administrator, &format!("account-{n}")).await?;
    }
    // A config's credential stands in its row and in its first version.
    for n in 0..accounts / 2 {
        let config = json!({ "provider": "openai", "api_key": format!("sk-config-{n:06}") });
        made(administrator, "/v1/configs", &json!({ "name": format!("c{n}"), "config": config })).await?;
    }
    Ok(())
}

async fn account(stack: &Stack, administrator: &Caller, slug: &str) -> anyhow::Result<()> {
    let body = json!({
        "name": slug, "slug": slug, "ai_provider_id": "openai", "key": format!("sk-{slug}-0123456789"),
        "workspace_id": stack.workspace().await?, "configurations": { "custom_host": stack.mock.url() },
    });
    made(administrator, "/v1/integrations", &body).await.map(drop)
}

pub async fn made(administrator: &Caller, path: &str, body: &Value) -> anyhow::Result<Value> {
    let (status, text) = administrator.answer(administrator.post_json(path, body)).await?;
    ensure!(status == 200, "POST {path}: {status} {text}");
    serde_json::from_str(&text).context("the answer is no JSON")
}
