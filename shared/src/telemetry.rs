//! Log lines: JSON by default, on standard error, so that standard output stays free for what a command answers.
//! Pingora speaks through the `log` crate; its lines come out here too.

mod log_limit;

pub use log_limit::{Brief, LogLimit};

use crate::settings::Logs;
use crate::settings::logs::LogFormat;
use std::fmt;
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format, Json, Writer};
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("LOG_LEVEL is not a filter of log lines (for example `info` or `proxy=debug,info`): {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    #[error("LOG_LEVEL: `{0}` is no level (error, warn, info, debug, trace, off) and no `module=level`")]
    Level(String),
    #[error("LOG_LEVEL may not ask for trace lines of `{0}`: they quote whole request heads, credentials included")]
    TooMuch(&'static str),
    #[error("log lines are already being written: {0}")]
    Twice(Box<dyn std::error::Error + Send + Sync>),
}

/// Libraries that quote what they send and receive when asked for much. They only warn unless they are named.
const TALKATIVE: &[&str] = &["pingora_core", "pingora_proxy", "pingora_http", "h2"];

/// It dumps the options of a peer when one does not answer; whoever uses it says so in a line of our own.
const DUMPS: &str = "pingora_load_balancing";

/// Call once, first thing in `main`.
pub fn init(settings: &Logs, service: &'static str) -> Result<(), TelemetryError> {
    // A line that nobody reads any more (a closed pipe) is lost. The library would say so on standard error, where nobody
    // reads either, and that panics in whichever task had something to log.
    let lines = tracing_subscriber::fmt().log_internal_errors(false);
    let lines = lines.with_env_filter(filter(&settings.log_level)?).with_writer(std::io::stderr);
    match settings.log_format {
        LogFormat::Json => lines.json().event_format(JsonLine::new(service)).try_init(),
        LogFormat::Text => lines.with_ansi(false).try_init(),
    }
    .map_err(TelemetryError::Twice)
}

fn filter(text: &str) -> Result<EnvFilter, TelemetryError> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    if let Some(word) = words.iter().find(|word| is_lone_word(word)) {
        return Err(TelemetryError::Level((*word).to_owned()));
    }
    // The library knows no spaces.
    let text = &words.join(",");
    let mut filter = EnvFilter::builder().parse(text)?;
    for library in TALKATIVE {
        match text.split(',').find(|directive| directive.trim().starts_with(library)) {
            Some(directive) if directive.to_ascii_lowercase().contains("trace") => {
                return Err(TelemetryError::TooMuch(library));
            }
            Some(_) => {}
            None => filter = filter.add_directive(format!("{library}=warn").parse()?),
        }
    }
    if !text.contains(DUMPS) {
        filter = filter.add_directive(format!("{DUMPS}=error").parse()?);
    }
    Ok(filter)
}

/// The library takes a word that is no level for the name of a module, and then prints nothing of any other: a slip in
/// `LOG_LEVEL` would make the process silent. Modules of ours and others are written with their level here.
fn is_lone_word(word: &str) -> bool {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let is_name = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    is_name && !LEVELS.contains(&word.to_ascii_lowercase().as_str()) && !matches!(word.parse::<u8>(), Ok(0..=5))
}

/// The library's JSON with the service's name in front: lines of both services end in one place.
struct JsonLine {
    start: String,
    rest: Format<Json, SystemTime>,
}

impl JsonLine {
    fn new(service: &'static str) -> Self {
        let rest = tracing_subscriber::fmt::format().json().flatten_event(true).with_span_list(false);
        Self { start: format!("{{\"service\":\"{service}\","), rest }
    }
}

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::with_capacity(256);
        self.rest.format_event(context, Writer::new(&mut line), event)?;
        writer.write_str(&self.start)?;
        writer.write_str(line.strip_prefix('{').unwrap_or(&line))
    }
}

#[cfg(test)]
mod tests;
