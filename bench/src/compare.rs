//! `make bench`: direct, nginx, a bare Pingora proxy and the gateway, compared in one interleaved run.
//!
//! Every round visits all targets, starting with another one each time, so that a slow minute of the machine hits all
//! of them. Beside CPU time, which wobbles, stand instructions per request, which do not.

mod callgrind;
mod events;
mod load;
pub(crate) mod mcp;
mod prompt;
mod report;
mod request;
mod stats;
mod steady;
mod store;
mod targets;
mod translation;
mod usage;
mod verdict;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::process::Signal;
use load::{Load, Round};
use report::{Comparison, Row};
use request::Request;
use store::Store;
use targets::{Place, Process, Variant};

#[derive(Debug, Clone, clap::Parser)]
pub struct Settings {
    /// Interleaved rounds; a claim needs ten. Many short ones say more than few long ones: the machine's speed changes
    /// from second to second.
    #[arg(long, env = "ROUNDS", default_value_t = 20)]
    pub rounds: usize,
    /// Length of the load on each target in each round.
    #[arg(long, env = "ROUND_SECONDS", default_value_t = 1)]
    pub round_seconds: u64,
    /// Connections of the load generator.
    #[arg(long, env = "CONNECTIONS", default_value_t = 32)]
    pub connections: u32,
    /// Pause of each connection of a paced target between two requests, in milliseconds: far below what the machine can
    /// do, latencies are those of a call and not of the queue before it.
    #[arg(long, default_value_t = 20)]
    pub pause_ms: u64,
    /// Calls a second of the rows at a fixed rate.
    #[arg(long, env = "STEADY_RATE", default_value_t = 1200)]
    pub steady_rate: u32,
    /// Length of each of their rounds; 0 leaves them out. Less than a minute shows little.
    #[arg(long, env = "STEADY_SECONDS", default_value_t = 60)]
    pub steady_seconds: u64,
    /// Leave instructions per request out (they take a minute).
    #[arg(long)]
    pub no_callgrind: bool,
    /// Measure only these targets, as `engine,journal`.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Another build of `gateway-proxy`, measured in turns with this one as `before`.
    #[arg(long)]
    pub before: Option<PathBuf>,
    /// Where the results go.
    #[arg(long, default_value = "target/bench")]
    pub folder: PathBuf,
}

/// The row of another build.
const BEFORE: &str = "before";
const NGINX_AGAIN: &str = "nginx again";

/// Something that is measured: whose CPU counts, and what it is asked.
struct Target {
    name: &'static str,
    pid: u32,
    request: Request,
    streams: bool,
    pause_ms: u64,
    rounds: Vec<Round>,
    delays: Vec<events::Delays>,
    /// Of a process that has ended since.
    peak_memory_mb: Option<f64>,
}

impl Target {
    fn new(name: &'static str, process: &Process, request: &Request, streams: bool) -> Self {
        let (pid, request) = (process.pid, request.clone());
        let (rounds, delays) = (Vec::new(), Vec::new());
        Self { name, pid, request, streams, pause_ms: 0, rounds, delays, peak_memory_mb: None }
    }

    fn paced(self, pause_ms: u64) -> Self {
        Self { pause_ms, ..self }
    }

    fn row(&self) -> Option<Row> {
        let peak = self.peak_memory_mb.unwrap_or_else(|| usage::peak_memory(self.pid));
        Row::of(self.name, &self.rounds, &self.delays, peak)
    }
}

/// True when every limit holds.
pub async fn run(settings: &Settings) -> anyhow::Result<bool> {
    fs::create_dir_all(&settings.folder)?;
    let programs = std::env::current_exe()?.parent().context("this program lies in no folder")?.to_owned();
    let work = tempfile::Builder::new().prefix("portcullis-bench-").tempdir()?;
    let mut place = Place::new(programs, work.path().to_owned());
    let comparison = measure(settings, &mut place).await;
    keep_logs(work.path(), &settings.folder);
    let comparison = comparison.with_context(|| format!("logs are in {}", settings.folder.display()))?;
    let result = settings.folder.join("last.json");
    fs::write(&result, serde_json::to_string_pretty(&comparison.to_json())?)?;
    say(&format!("\n{}\n{}", comparison.table(), comparison.stream_table()));
    say(&comparison.verdict_table());
    if settings.rounds < 10 {
        say(&format!("{} rounds are too few for a claim: noise is 20–30 %.", settings.rounds));
    }
    say(&format!("written to {}", result.display()));
    Ok(verdict::judge(&comparison).iter().all(|verdict| verdict.holds))
}

async fn measure(settings: &Settings, place: &mut Place) -> anyhow::Result<Comparison> {
    say("starting Postgres, the provider, nginx, bare Pingora and the gateway");
    let store = Store::start(&place.folder.join("postgres")).await?;
    let (mock, direct) = place.mock().await?;
    store.register_mcp(direct.address).await?;
    let (nginx, through_nginx) = place.nginx(direct.address).await?;
    let (bare, through_bare) = place.bare(direct.address, &[]).await?;
    let (gateway, lanes) = place.gateway(direct.address, &store, Variant::PLAIN, &[]).await?;
    let mut targets = vec![
        Target::new("direct", &mock, &direct, true),
        Target::new("nginx", &nginx, &through_nginx, false),
        Target::new("bare", &bare, &through_bare, true),
        Target::new("engine", &gateway, &lanes.engine, true),
        Target::new("routed", &gateway, &lanes.routed, false),
        Target::new("relay", &gateway, &lanes.relay, false),
        Target::new(prompt::ROW, &gateway, &lanes.prompt, false),
        Target::new("guarded", &gateway, &lanes.guarded, false),
        Target::new(mcp::ROW, &gateway, &mcp::request(&lanes.engine), false),
        Target::new("paced engine", &gateway, &lanes.engine, false).paced(settings.pause_ms),
    ];
    let translation = lanes.translation.iter();
    targets.extend(translation.map(|&(name, ref request)| Target::new(name, &gateway, request, false)));
    let before = match &settings.before {
        Some(program) => Some(place.other_gateway(program, direct.address, &store).await?),
        None => None,
    };
    if let Some((process, lanes)) = &before {
        targets.push(Target::new(BEFORE, process, &lanes.engine, true));
    }
    let is_wanted = |target: &Target| {
        let is_hits = target.name == NGINX_AGAIN && settings.only.iter().any(|name| name == "hit");
        target.name == BEFORE
            || is_hits
            || settings.only.is_empty()
            || settings.only.iter().any(|name| name == target.name)
    };
    targets.retain(is_wanted);
    let folder = place.folder.clone();
    let load =
        Load { folder: &folder, seconds: settings.round_seconds, connections: settings.connections, mock: mock.pid };
    for round in 0..settings.rounds {
        for step in 0..targets.len() {
            let index = (round + step) % targets.len();
            visit(&mut targets[index], &load).await?;
        }
        stream(&mut targets, settings.connections as usize).await?;
        say(&progress(round + 1, settings.rounds, &targets));
    }
    let steady = steady::measure(settings, place, direct.address, &store, &mock).await?;
    // Afterwards, on their own: they go on sending to Postgres when a round is over.
    let (noting, noted) = place.gateway(direct.address, &store, Variant::NOTING, &[]).await?;
    let (keeping, bodies) = place.gateway(direct.address, &store, Variant::KEEPING, &[]).await?;
    let (single, of_single) = place.gateway(direct.address, &store, Variant::ALONE, &[]).await?;
    let mut noted = vec![
        Target::new("journal", &noting, &noted.engine, false),
        Target::new("paced journal", &noting, &noted.engine, false).paced(settings.pause_ms),
        Target::new("bodies", &keeping, &bodies.engine, false),
        Target::new("limited", &noting, &noted.limited, false),
        Target::new("hit", &noting, &noted.hit, false),
        // Again, beside what is held against it: the machine is not as fast now as it was.
        Target::new(NGINX_AGAIN, &nginx, &through_nginx, false),
        Target::new("miss", &noting, &noted.miss, false),
        Target::new("journal on 1 thread", &single, &of_single.engine, false),
        Target::new("limited on 1 thread", &single, &of_single.limited, false),
    ];
    noted.retain(is_wanted);
    for round in 0..settings.rounds {
        for step in 0..noted.len() {
            let index = (round + step) % noted.len();
            // What the last round left is sent first; it is not this one's.
            for pid in [noting.pid, keeping.pid, single.pid].into_iter().chain(store.postmaster()) {
                usage::rest(pid).await;
            }
            store.step_back();
            visit(&mut noted[index], &load).await?;
        }
    }
    let mut rows: Vec<Row> = targets.iter().chain(&noted).chain(&steady).filter_map(Target::row).collect();
    drop((nginx, bare, gateway, noting, keeping, single, before));
    if !settings.no_callgrind {
        for row in &mut rows {
            (row.instructions, row.aside) = instructions(row.name, place, &direct, &store).await?;
        }
    }
    Ok(Comparison { rounds: settings.rounds, seconds: settings.round_seconds, connections: settings.connections, rows })
}

async fn visit(target: &mut Target, load: &Load<'_>) -> anyhow::Result<()> {
    target.rounds.push(load.round(target.name, target.pid, &target.request, target.pause_ms).await?);
    Ok(())
}

async fn stream(targets: &mut [Target], readers: usize) -> anyhow::Result<()> {
    let mut streaming: Vec<&mut Target> = targets.iter_mut().filter(|target| target.streams).collect();
    let requests: Vec<Request> = streaming.iter().map(|target| target.request.clone()).collect();
    let delays = tokio::task::spawn_blocking(move || events::measure(&requests, readers)).await??;
    for (target, delays) in streaming.iter_mut().zip(delays) {
        target.delays.push(delays);
    }
    Ok(())
}

/// Per request, and what threads that carry none take beside them. Only for what we can run under callgrind.
async fn instructions(
    name: &str,
    place: &mut Place,
    direct: &Request,
    store: &Store,
) -> anyhow::Result<(Option<f64>, Option<f64>)> {
    // Streams take their time, and long bodies would take callgrind's.
    let counted = [
        "bare",
        "engine",
        "routed",
        "relay",
        "guarded",
        mcp::ROW,
        prompt::ROW,
        translation::PLAIN,
        "journal",
        "bodies",
        "limited",
        "hit",
        "miss",
    ];
    if !counted.contains(&name) {
        return Ok((None, None));
    }
    say(&format!("counting instructions: {name}"));
    let variant = match name {
        "journal" | "limited" | "hit" | "miss" => Variant::NOTING,
        "bodies" => Variant::KEEPING,
        _ => Variant::PLAIN,
    };
    let has_journal = variant.journal;
    let mut counts = [callgrind::Count::default(); 2];
    for (count, requests) in counts.iter_mut().zip(callgrind::RUNS) {
        let file = place.folder.join(format!("callgrind.{name}.{requests}"));
        let wrapper = callgrind::wrapper(&file, has_journal);
        let (process, request, end) = if name == "bare" {
            let (process, request) = place.bare(direct.address, &wrapper).await?;
            (process, request, Signal::INT)
        } else {
            let (process, lanes) = place.gateway(direct.address, store, variant, &wrapper).await?;
            let of_translation = lanes.translation.into_iter().find(|(row, _)| *row == name);
            let request = match (name, of_translation) {
                (_, Some((_, request))) => request,
                ("relay", None) => lanes.relay,
                ("routed", None) => lanes.routed,
                (prompt::ROW, None) => lanes.prompt,
                ("guarded", None) => lanes.guarded,
                (mcp::ROW, None) => mcp::request(&lanes.engine),
                ("limited", None) => lanes.limited,
                ("hit", None) => lanes.hit,
                ("miss", None) => lanes.miss,
                _ => lanes.engine,
            };
            (process, request, Signal::TERM)
        };
        *count = callgrind::count(process, &request, requests, end, &file).await?;
    }
    let aside = callgrind::per_request(counts.map(|count| count.aside));
    Ok((Some(callgrind::per_request(counts.map(|count| count.instructions))), has_journal.then_some(aside)))
}

fn progress(round: usize, rounds: usize, targets: &[Target]) -> String {
    let last = |target: &Target| target.rounds.last().map_or(0.0, Round::cpu_us);
    let figures: Vec<_> = targets.iter().map(|target| format!("{} {:.1}", target.name, last(target))).collect();
    format!("round {round}/{rounds}, CPU µs/request: {}", figures.join("  "))
}

/// Also what callgrind wrote: `callgrind_annotate` tells from it where the instructions go.
fn keep_logs(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".log") || name.starts_with("callgrind.") {
            // A log that cannot be kept is missed only when something else failed, which is then said.
            let _ = fs::copy(entry.path(), to.join(entry.file_name()));
        }
    }
}

#[expect(clippy::print_stdout, reason = "the comparison is what this program prints")]
fn say(text: &str) {
    println!("{text}");
}
