//! A minute at a fixed rate, as a service lives: the gateway with its default settings (journal and bodies), and without
//! a journal. Rounds of a second are over before what they leave behind is stored, so they cannot show what storing it
//! does to the calls of the next minute. Postgres shares the cores, and none steps back for another.

use super::Settings;
use super::load::Round;
use super::request::Request;
use super::store::Store;
use super::targets::{Place, Process, Variant};
use super::usage::{self, Cpu};
use super::{Target, say};
use crate::open_loop::OpenLoop;
use anyhow::ensure;
use std::net::SocketAddr;
use std::time::Duration;

const WARM_UP: Duration = Duration::from_secs(3);
const CONNECTIONS: usize = 64;

/// Their names in the table.
pub const PLAIN: &str = "steady plain";
pub const DEFAULT: &str = "steady default";

/// Twice each, by turns.
const TURNS: usize = 2;

pub async fn measure(
    settings: &Settings,
    place: &mut Place,
    upstream: SocketAddr,
    store: &Store,
    mock: &Process,
) -> anyhow::Result<Vec<Target>> {
    let is_wanted = |name: &str| settings.only.is_empty() || settings.only.iter().any(|wanted| wanted == name);
    if settings.steady_seconds == 0 || ![PLAIN, DEFAULT].into_iter().any(is_wanted) {
        return Ok(Vec::new());
    }
    let (plain, of_plain) = place.gateway(upstream, store, Variant::PLAIN, &[]).await?;
    let (keeping, of_keeping) = place.gateway(upstream, store, Variant::KEEPING, &[]).await?;
    let mut targets = vec![
        Target::new(PLAIN, &plain, &of_plain.engine, false),
        Target::new(DEFAULT, &keeping, &of_keeping.engine, false),
    ];
    targets.retain(|target| is_wanted(target.name));
    for turn in 1..=TURNS {
        for target in &mut targets {
            for pid in [plain.pid, keeping.pid].into_iter().chain(store.postmaster()) {
                usage::rest(pid).await;
            }
            say(&format!(
                "{}: {} calls a second for {} s, {turn}/{TURNS}",
                target.name, settings.steady_rate, settings.steady_seconds
            ));
            target.rounds.push(round(settings, target.pid, mock.pid, &target.request).await?);
        }
    }
    // The processes end here; what they held at most is read before.
    for target in &mut targets {
        target.peak_memory_mb = Some(usage::peak_memory(target.pid));
    }
    Ok(targets)
}

async fn round(settings: &Settings, target: u32, mock: u32, request: &Request) -> anyhow::Result<Round> {
    let load = OpenLoop {
        address: request.address,
        request: request.bytes().into(),
        rate: f64::from(settings.steady_rate),
        length: Duration::from_secs(settings.steady_seconds),
        warm_up: WARM_UP,
        connections: CONNECTIONS,
    };
    let (cpu, of_mock) = (Cpu::of_tree(target), Cpu::of_tree(mock));
    let outcome = load.run().await?;
    let (cpu, of_mock) = (Cpu::of_tree(target).since(cpu), Cpu::of_tree(mock).since(of_mock));
    ensure!(outcome.failures() == 0, "some calls failed: {:?}", outcome.failed);
    let calls = (load.rate * (load.length + WARM_UP).as_secs_f64()).max(1.0);
    let ms = |share: f64| outcome.percentile(share).as_secs_f64() * 1e3;
    Ok(Round {
        requests_per_second: outcome.calls as f64 / load.length.as_secs_f64(),
        p50_ms: ms(0.5),
        p99_ms: ms(0.99),
        p999_ms: ms(0.999),
        user_us: cpu.user * 1e6 / calls,
        system_us: cpu.system * 1e6 / calls,
        mock_us: of_mock.total() * 1e6 / calls,
    })
}
