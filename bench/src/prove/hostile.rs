//! One tenant does at once all that could hurt others, while another calls at a modest, fixed rate. The good one must
//! not notice: no call fails, its slowest calls are as fast as when it was alone, and all its logs arrive.

mod attacks;
mod provider;

use super::client::Caller;
use super::log_rows::{self, Logs};
use super::report::{Report, megabytes};
use super::stack::Stack;
use crate::mock::{Mock, Options};
use crate::open_loop::{OpenLoop, Outcome};
use attacks::{Attack, Attacker, Done};
use chrono::Utc;
use http::Method;
use rustix::process::{Pid, setpriority_process};
use serde_json::json;
use shared::bootstrap;
use shared::identity::scopes;
use shared::model::KeyKind;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

/// Calls a second of the good tenant.
const RATE: f64 = 100.0;
const CONNECTIONS: usize = 64;
const WARM_UP: Duration = Duration::from_secs(3);
const ALONE: Duration = Duration::from_secs(30);
/// What its provider takes for an answer: quick for a model, and long enough that a millisecond more or less is noise.
const PROVIDER_MS: u64 = 25;
/// How much longer the slowest of a hundred calls may take than alone.
const MAX_TIMES: f64 = 2.0;
/// Logs of the hostile tenant, so that searching them costs something.
const OLD_LOGS: u64 = 200_000;
/// How much more memory than before the proxy may hold, a minute after the storm.
const MAX_MEMORY_TIMES: f64 = 1.3;
const MEMORY_BACK_WITHIN: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(120);
const PREFIX: &str = "pk_";

pub async fn prove(length: Duration, report: &mut Report) -> anyhow::Result<()> {
    let mut stack = Stack::start(&[]).await?;
    let is_measured_first = measure_first();
    // Of its own: a mock has one thread, which the answers that nobody reads would keep busy.
    let provider = Mock::try_start(Options::default())?;
    let good = stack.caller_to(&provider)?;
    stack.until_answered(&good).await?;
    let machine = elsewhere()?;
    let own_provider = machine.spawn(provider::serve()).await??;
    let attacker = Arc::new(hostile_tenant(&stack, own_provider).await?);
    let answered_before = stored(&stack).await?;

    // The attackers' own computing takes a processor's time here, and is not what is asked: alone somebody else takes as much.
    let (idle, ended) = watch::channel(false);
    let spinner = machine.spawn(spin(ended));
    let alone = load(&good, ALONE).await?;
    idle.send_replace(true);
    spinner.await?;
    report.figure("whoever measures, and the good tenant's provider, come first", is_measured_first);
    report.figure("alone, beside a thread that computes", &alone);
    let used = || [stack.proxy.cpu_seconds(), stack.admin.cpu_seconds(), all_seconds()];
    let used_before = used();
    let memory_before = stack.proxy.memory()?;
    let (stop, stopped) = watch::channel(false);
    let mut attacks = JoinSet::new();
    for attack in attacks::ALL {
        for number in 0..attack.parties {
            attacks.spawn_on(run(attack, number, attacker.clone(), stopped.clone()), machine.handle());
        }
    }
    let under_attack = load(&good, length).await?;
    report.figure("beside a hostile tenant", &under_attack);
    let used_now = used();
    let [proxy, admin, all] = [0, 1, 2].map(|at| used_now[at] - used_before[at]);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    report.figure(
        "processor time",
        format!(
            "proxy {proxy:.0} s, admin {admin:.0} s, everything on the machine {all:.0} s of {:.0} s",
            (WARM_UP + length).as_secs_f64() * cores as f64
        ),
    );
    stop.send_replace(true);
    let mut done: Vec<Done> = attacks::ALL.iter().map(|attack| Done::new(attack.name)).collect();
    while let Some(part) = attacks.join_next().await {
        let part = part?;
        done.iter_mut().filter(|whole| whole.name == part.name).for_each(|whole| whole.add(&part));
    }
    machine.shutdown_background();
    done.iter().for_each(|done| report.figure(done.name, done));
    report.figure("the proxy's memory at most", megabytes(stack.proxy.peak_memory()?));
    report.figure("admin's memory at most", megabytes(stack.admin.peak_memory()?));
    for (why, times) in alone.failed.iter().chain(&under_attack.failed) {
        report.figure("failed", format!("{times} × {why}"));
    }

    let times = under_attack.percentile(0.99).as_secs_f64() / alone.percentile(0.99).as_secs_f64();
    report.figure("p99 against that alone", format!("{times:.2} ×"));
    report.promise("every attack was made", done.iter().all(|done| done.moves > 0));
    let passed: Vec<&str> = done.iter().flat_map(|done| done.outcomes(attacks::PASSED)).collect();
    passed.iter().for_each(|what| report.figure("guardrails did not see", what));
    report.promise("nothing that guardrails deny was answered", passed.is_empty());
    report.promise("both services still run", !stack.proxy.has_ended()? && !stack.admin.has_ended()?);
    report.promise("no call of the good tenant failed", alone.failures() + under_attack.failures() == 0);
    report.promise(&format!("its p99 is at most {MAX_TIMES} × that alone"), times <= MAX_TIMES);
    let calls =
        (RATE * (WARM_UP * 2 + ALONE + length).as_secs_f64()) as u64 - alone.failures() - under_attack.failures();
    let memory_after = memory_back(&stack, memory_before).await?;
    report.figure(
        "the proxy's memory before and after",
        format!("{}, {}", megabytes(memory_before), megabytes(memory_after)),
    );
    let is_back = memory_after as f64 <= memory_before as f64 * MAX_MEMORY_TIMES;
    report.promise(&format!("its memory is back at {MAX_MEMORY_TIMES} × within a minute"), is_back);
    let is_all_stored = all_stored(&stack, answered_before + calls, report).await?;
    report.promise("all its logs arrive", is_all_stored);
    stack.stop(report)
}

/// Where the attackers are. They would have machines of their own; here they must not slow the client down that measures,
/// which makes its calls in the same process.
fn elsewhere() -> std::io::Result<Runtime> {
    let lower = || {
        let _ = setpriority_process(Some(rustix::thread::gettid()), 10);
    };
    Builder::new_multi_thread().worker_threads(1).on_thread_start(lower).enable_all().build()
}

/// Whoever measures, and the good tenant's provider, would have machines of their own: what is to be measured is how long the gateway
/// takes, and not how long they wait for a processor that the gateway and its attackers use. False where that is not permitted.
fn measure_first() -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    let ids = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok());
    // Threads that these start are as they are.
    ids.filter_map(Pid::from_raw).all(|id| setpriority_process(Some(id), -10).is_ok())
}

/// Computes until it is told to stop, as the attackers do, and lets others in between.
async fn spin(ended: watch::Receiver<bool>) {
    while !*ended.borrow() {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1) {
            std::hint::black_box(begun);
        }
        tokio::task::yield_now().await;
    }
}

/// What all processes of the machine have computed so far.
fn all_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let numbers: Vec<f64> =
        stat.lines().next().unwrap_or_default().split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    // User, nice, system; then idle and waiting.
    (numbers.iter().take(3).sum::<f64>() + numbers.iter().skip(5).take(2).sum::<f64>()) / 100.0
}

/// One attack until it is told to stop.
async fn run(attack: &Attack, number: usize, attacker: Arc<Attacker>, mut stopped: watch::Receiver<bool>) -> Done {
    let mut done = Done::new(attack.name);
    let mut again = async || {
        loop {
            // One that never ends was made nevertheless.
            done.moves += 1;
            let what = (attack.make)(attacker.clone(), number).await;
            done.note(what);
            tokio::time::sleep(attack.pause).await;
        }
    };
    tokio::select! {
        () = again() => {}
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    done
}

async fn load(caller: &Caller, length: Duration) -> anyhow::Result<Outcome> {
    let content = json!({ "mock": { "latency_ms": PROVIDER_MS } }).to_string();
    let body = json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": content }] });
    let request = caller.post_bytes("/v1/chat/completions", &body.to_string());
    let address = caller.address;
    OpenLoop { address, request, rate: RATE, length, warm_up: WARM_UP, connections: CONNECTIONS }.run().await
}

/// An organisation of its own with many logs.
async fn hostile_tenant(stack: &Stack, own_provider: String) -> anyhow::Result<Attacker> {
    let mut client = stack.database().await?;
    let tenant = bootstrap::create_organisation(&mut client, "Hostile", "owner@hostile.test", PREFIX).await?;
    let scopes = scopes::all_for(KeyKind::WorkspaceService);
    let key = bootstrap::create_workspace_key(&client, tenant.workspace_id, "Hostile", &scopes, PREFIX).await?.key;
    let days = log_rows::days_before(Utc::now().date_naive(), 30);
    let (organisation, workspaces) = (tenant.organisation_id, [tenant.workspace_id]);
    log_rows::write(&client, &Logs { rows: OLD_LOGS, organisation, workspaces: &workspaces, days: &days }).await?;
    // Now, and not while somebody measures.
    client.batch_execute("VACUUM request_logs").await?;
    let caller = stack.caller_with(&key)?;
    stack.until_answered(&caller).await?;
    let bare = Caller::at(caller.address.port());
    let administrator = bare.with("x-gateway-api-key", &tenant.admin_key.key)?;
    let by_config = bare.with("x-gateway-api-key", &key)?;
    let workspace = guarded_workspace(&administrator, tenant.workspace_id).await?;
    let guarded = bootstrap::create_workspace_key(&client, workspace, "Guarded", &scopes, PREFIX).await?.key;
    let guarded = stack.caller_with(&guarded)?;
    own_tools(&administrator, &own_provider, tenant.workspace_id).await?;
    let tools = by_config.with("accept", "application/json, text/event-stream")?;
    let saml = json!({ "saml": { "metadata_xml": attacks::saml_metadata()? } });
    ask(&administrator, Method::PUT, "/v1/admin/organisation/auth-settings", &saml).await?;
    let provider = stack.mock.url();
    Ok(Attacker { caller, by_config, administrator, bare, guarded, tools, provider, own_provider, organisation })
}

/// A workspace whose guardrails deny a word in everything.
async fn guarded_workspace(administrator: &Caller, first: Uuid) -> anyhow::Result<Uuid> {
    let made = ask(administrator, Method::POST, "/v1/admin/workspaces", &json!({ "name": "Guarded" })).await?;
    let workspace: Uuid = made["id"].as_str().unwrap_or_default().parse().unwrap_or(first);
    let checks = json!([{ "id": "default.contains", "parameters": { "words": ["forbidden"], "operator": "none" } }]);
    let guardrail = json!({ "name": "No", "checks": checks, "actions": { "deny": true }, "workspace_id": workspace });
    let guardrail = ask(administrator, Method::POST, "/v1/guardrails", &guardrail).await?;
    let defaults = json!({ "defaults": { "input_guardrails": [guardrail["slug"]] } });
    ask(administrator, Method::PUT, &format!("/v1/admin/workspaces/{workspace}"), &defaults).await?;
    Ok(workspace)
}

/// An MCP server that the tenant runs itself.
async fn own_tools(administrator: &Caller, own_provider: &str, workspace: Uuid) -> anyhow::Result<()> {
    let slug = attacks::TOOLS;
    let integration = json!({ "name": slug, "slug": slug, "url": format!("{own_provider}/mcp"), "auth_type": "none",
        "transport": "http", "workspace_id": workspace });
    ask(administrator, Method::POST, "/v1/mcp-integrations", &integration).await?;
    let server = json!({ "name": slug, "slug": slug, "mcp_integration_id": slug, "workspace_id": workspace });
    ask(administrator, Method::POST, "/v1/mcp-servers", &server).await.map(drop)
}

async fn ask(by: &Caller, method: Method, path: &str, body: &serde_json::Value) -> anyhow::Result<serde_json::Value> {
    let mut request = by.post_json(path, body);
    *request.method_mut() = method;
    let (status, text) = by.answer(request).await?;
    anyhow::ensure!(status.is_success(), "{path}: {status}: {text}");
    Ok(serde_json::from_str(&text)?)
}

/// Waits until the proxy holds little more than before, and answers what it holds then.
async fn memory_back(stack: &Stack, before: u64) -> anyhow::Result<u64> {
    let begun = Instant::now();
    loop {
        let now = stack.proxy.memory()?;
        if now as f64 <= before as f64 * MAX_MEMORY_TIMES || begun.elapsed() > MEMORY_BACK_WITHIN {
            return Ok(now);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Logs of the good tenant.
async fn stored(stack: &Stack) -> anyhow::Result<u64> {
    const COUNT: &str = "SELECT count(*) FROM request_logs WHERE workspace_id = $1 AND response_status_code = 200";
    let workspace: Uuid = stack.workspace().await?;
    let rows = stack.database().await?.query_one(COUNT, &[&workspace]).await?;
    Ok(u64::try_from(rows.try_get::<_, i64>(0)?)?)
}

async fn all_stored(stack: &Stack, expected: u64, report: &mut Report) -> anyhow::Result<bool> {
    let begun = Instant::now();
    loop {
        let found = stored(stack).await?;
        if found >= expected || begun.elapsed() > PATIENCE {
            report.figure("logs of the good tenant", format!("{found} of {expected}"));
            return Ok(found >= expected);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
