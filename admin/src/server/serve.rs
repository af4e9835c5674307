//! A running service, and its end: listen, and on SIGTERM or SIGINT answer what has begun before leaving.

use crate::app::App;
use crate::app::settings::Settings;
use crate::log_data::tail;
use crate::server::connections::{self, ConnectionLimits};
use crate::server::router::router;
use crate::{audit, jobs};
use anyhow::Context as _;
use shared::db;
use shared::supervisor::Task;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// Answers take milliseconds; what is not done after this long never will be.
const DRAIN: Duration = Duration::from_secs(30);
const KEYRING: Task = Task::periodic("keyring", Duration::from_secs(180));
const LOG_TAIL: Task = Task::waiting("log tail");
const TOKEN_FAILURES: Task = Task::periodic("token failures", Duration::from_secs(180));

/// Answers and runs jobs until told to stop by a signal.
pub async fn serve(settings: &Settings) -> anyhow::Result<()> {
    let address = SocketAddr::new(settings.listen.admin_host, settings.listen.admin_port);
    let app = App::new(db::pool(&settings.database).await?, settings)?;
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address} (ADMIN_HOST, ADMIN_PORT)"))?;
    tracing::info!(address = %listener.local_addr()?, "admin is listening");
    if !app.sealer.has_master_key() {
        tracing::warn!("there is no master key: operations that store secrets will be refused");
    }
    for (shown, instead, days) in app.retention.deleting_displays() {
        tracing::warn!(
            "{shown} is for showing, and deletes what is older than {days} days because {instead} is not set: \
             set {instead}, since 1.0 will delete by it alone"
        );
    }
    let mut jobs = jobs::start(&app);
    let (supervisor, sealer) = (app.supervisor.clone(), app.sealer.clone());
    jobs.spawn(supervisor.clone().keep(KEYRING, move || sealer.clone().watch()));
    let (stop, stopped) = oneshot::channel();
    let mut server = tokio::spawn(serve_on(listener, app, async {
        let _ = stopped.await;
    }));
    tokio::select! {
        asked = asked_to_stop() => asked?,
        // Nobody answers any more: whoever started this process is told by its end, and starts it again.
        ended = &mut server => anyhow::bail!("serving ended by itself: {ended:?}"),
    }
    tracing::info!("asked to stop; finishing what has begun");
    supervisor.leave();
    // What a job has not committed did not happen; another admin, or the next start, does it.
    drop(jobs);
    let _ = stop.send(());
    match tokio::time::timeout(DRAIN, server).await {
        Ok(ended) => ended.context("serving failed"),
        Err(_) => anyhow::bail!("some requests did not end within {} s and were cut", DRAIN.as_secs()),
    }
}

/// Answers on this listener; once `stop` is done it accepts nothing more and ends with the last answer.
pub async fn serve_on(listener: TcpListener, app: App, stop: impl Future<Output = ()> + Send + 'static) {
    let limits = ConnectionLimits { connections: app.max_connections, ..ConnectionLimits::default() };
    let open = app.metrics.connections.clone();
    let written = app.clone();
    let write = move || audit::write_token_failures(written.clone());
    let writing = app.supervisor.spawn_on(&Handle::current(), TOKEN_FAILURES, write);
    let (db, tail) = (app.db.clone(), app.log_tail.clone());
    let follow = move || tail::follow(db.clone(), tail.clone());
    let following = app.supervisor.spawn_on(&Handle::current(), LOG_TAIL, follow);
    let tail = app.log_tail.clone();
    // Streams without an end would keep their connections, and these the process.
    let stop = async move {
        stop.await;
        tail.close();
    };
    connections::serve(listener, router(app.clone()), limits, open, stop).await;
    following.abort();
    writing.abort();
    audit::write_last_token_failures(&app).await;
}

async fn asked_to_stop() -> anyhow::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
