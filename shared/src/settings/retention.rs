//! How long logs and metrics are kept, and what the interface says of it. The two are apart: a number that is only to be
//! shown must not delete anything. Earlier versions deleted by the shown number, so it still does where nothing else
//! is set; that ends with 1.0.

/// Where nothing is set.
const LOG_DAYS: u32 = 90;
const METRICS_DAYS: u32 = 365;

#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Retention")]
pub struct Retention {
    /// Days after which logs of calls, their bodies and exports of them are deleted; 0 is never, 90 when it is not set.
    ///
    /// Whole days (UTC) are dropped. Where it is not set and LOG_RETENTION_DISPLAY is, that number deletes, until 1.0.
    #[arg(long, env = "LOG_RETENTION_DAYS", value_parser = days())]
    pub log_retention_days: Option<u32>,
    /// Days that the interface says logs are kept; LOG_RETENTION_DAYS when it is not set.
    #[arg(long, env = "LOG_RETENTION_DISPLAY", value_parser = days())]
    pub log_retention_display: Option<u32>,
    /// Days after which figures (what analytics add up) are deleted; 0 is never, 365 when it is not set.
    ///
    /// Where it is not set and METRICS_RETENTION_DISPLAY is, that number deletes, until 1.0.
    #[arg(long, env = "METRICS_RETENTION_DAYS", value_parser = days())]
    pub metrics_retention_days: Option<u32>,
    /// Days that the interface says metrics are kept; METRICS_RETENTION_DAYS when it is not set.
    #[arg(long, env = "METRICS_RETENTION_DISPLAY", value_parser = days())]
    pub metrics_retention_display: Option<u32>,
}

impl Retention {
    /// After how many days logs are deleted; 0 is never.
    pub fn log_days(&self) -> u32 {
        self.log_retention_days.or(self.log_retention_display).unwrap_or(LOG_DAYS)
    }

    /// After how many days metrics are deleted; 0 is never.
    pub fn metrics_days(&self) -> u32 {
        self.metrics_retention_days.or(self.metrics_retention_display).unwrap_or(METRICS_DAYS)
    }

    pub fn shown_log_days(&self) -> u32 {
        self.log_retention_display.unwrap_or_else(|| self.log_days())
    }

    pub fn shown_metrics_days(&self) -> u32 {
        self.metrics_retention_display.unwrap_or_else(|| self.metrics_days())
    }

    /// The settings that are for showing and delete all the same, each with the one to set instead.
    pub fn deleting_displays(&self) -> Vec<(&'static str, &'static str, u32)> {
        let named = [
            ("LOG_RETENTION_DISPLAY", "LOG_RETENTION_DAYS", self.log_retention_display, self.log_retention_days),
            (
                "METRICS_RETENTION_DISPLAY",
                "METRICS_RETENTION_DAYS",
                self.metrics_retention_display,
                self.metrics_retention_days,
            ),
        ];
        let deletes = |(display, instead, shown, days): (_, _, Option<u32>, Option<u32>)| match (shown, days) {
            (Some(shown), None) => Some((display, instead, shown)),
            _ => None,
        };
        named.into_iter().filter_map(deletes).collect()
    }
}

/// A thousand years: more is a slip of the keyboard, and no date.
fn days() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(0..=365_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_shown_deletes_only_while_no_other_is_set_and_is_reported_then() {
        for (days, display, deletes, shows, is_reported) in [
            (None, None, LOG_DAYS, LOG_DAYS, false),
            (Some(7), None, 7, 7, false),
            (Some(7), Some(30), 7, 30, false),
            (Some(0), Some(30), 0, 30, false),
            (None, Some(30), 30, 30, true),
            (None, Some(0), 0, 0, true),
        ] {
            let logs = Retention { log_retention_days: days, log_retention_display: display, ..Retention::default() };
            assert_eq!((logs.log_days(), logs.shown_log_days()), (deletes, shows), "{days:?} {display:?}");
            assert_eq!(!logs.deleting_displays().is_empty(), is_reported, "{days:?} {display:?}");
            assert_eq!((logs.metrics_days(), logs.shown_metrics_days()), (METRICS_DAYS, METRICS_DAYS));
            let metrics =
                Retention { metrics_retention_days: days, metrics_retention_display: display, ..Retention::default() };
            let expected = if days.is_none() && display.is_none() { (365, 365) } else { (deletes, shows) };
            assert_eq!((metrics.metrics_days(), metrics.shown_metrics_days()), expected, "{days:?} {display:?}");
            let reported = metrics.deleting_displays();
            assert_eq!(reported.first().map(|(name, ..)| *name), is_reported.then_some("METRICS_RETENTION_DISPLAY"));
        }
    }
}
