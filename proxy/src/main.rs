//! `gateway-proxy`: reads its settings, then serves until told to leave.

mod gateway;

use std::process::ExitCode;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    without_huge_pages();
    let settings: proxy::runtime::settings::Settings = match shared::settings::load(std::env::args_os()) {
        Ok(settings) => settings,
        Err(error) => error.exit(),
    };
    if let Err(error) = shared::telemetry::init(&settings.logs, "proxy") {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    shared::settings::warn_of_misspelt::<proxy::runtime::settings::Settings>();
    match check(&settings).and_then(|()| gateway::serve::serve(settings)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "the proxy could not start");
            ExitCode::FAILURE
        }
    }
}

/// Stores that are away are waited for; an address that no store can have is a mistake, and told at once.
fn check(settings: &proxy::runtime::settings::Settings) -> anyhow::Result<()> {
    shared::db::check(&settings.database)?;
    proxy::cache::remote::check(&settings.cache_store, settings.limits.redis_url.as_deref())?;
    proxy::limits::check_redis_url(&settings.limits)
}

/// The allocator takes memory in large pieces and uses a little of each. Where the kernel backs every first touch with
/// a huge page, an idle process holds twice the memory it uses, and a waiting stream costs three times as much.
fn without_huge_pages() {
    // A kernel that knows no such switch has no huge pages to switch off.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
