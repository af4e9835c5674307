//! Variables of the environment that look like a setting with a slip. The environment is everybody's, so an unknown name
//! cannot be refused there as it is in the file and on the command line; a name that is almost ours is worth a warning.

use super::AllSettings;
use crate::nearest::slip;
use clap::CommandFactory;

/// Says so, once log lines can be written.
pub fn warn_of_misspelt<S: CommandFactory>() {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for (name, meant) in misspelt(names, &known::<S>()) {
        tracing::warn!(name, meant, "this variable of the environment is no setting: was another name meant?");
    }
}

fn known<S: CommandFactory>() -> Vec<String> {
    let names = |command: clap::Command| {
        let names = command.get_arguments().filter_map(|argument| argument.get_env()?.to_str().map(str::to_owned));
        names.collect::<Vec<_>>()
    };
    let mut known = names(S::command());
    known.extend(names(AllSettings::command()));
    known.push("GATEWAY_CONFIG".to_owned());
    known
}

fn misspelt(names: impl Iterator<Item = String>, known: &[String]) -> Vec<(String, String)> {
    let strange = names.filter(|name| name.contains('_') && !known.contains(name));
    let slips = strange.filter_map(|name| {
        let meant = slip(&name, known.iter().map(String::as_str))?.to_owned();
        Some((name, meant))
    });
    slips.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_and_names_of_others_are_left_alone() {
        let known = known::<AllSettings>();
        for (name, meant) in [
            ("PROXY_PROT", Some("PROXY_PORT")),
            ("ACESS_LOG", Some("ACCESS_LOG")),
            ("REDIS_URI", Some("REDIS_URL")),
            ("JOURNALDIR", None),
            ("JOURNAL_DIRS", Some("JOURNAL_DIR")),
            ("PROXY_PORT", None),
            ("GATEWAY_CONFIG", None),
            ("HTTP_PROXY", None),
            ("LOG_DIR", None),
            ("AWS_REGION", None),
            ("PORTCULLIS_PROXY_PORT", None),
            ("SSL_CERT_FILE", None),
            ("PATH", None),
        ] {
            let found = misspelt(std::iter::once(name.to_owned()), &known);
            assert_eq!(found.first().map(|(_, meant)| meant.as_str()), meant, "{name}: {found:?}");
        }
    }
}
