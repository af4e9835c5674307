//! The order of sources, what is refused, and that the shipped file tells the truth.

use super::*;
use crate::settings::{Database, DbSsl, Features, Identity, Listen};
use clap::builder::ArgAction;

#[derive(Debug, clap::Parser)]
struct Program {
    #[command(flatten)]
    listen: Listen,
    #[command(flatten)]
    database: Database,
    #[command(flatten)]
    identity: Identity,
    #[command(flatten)]
    features: Features,
}

/// Loads with a typed line, an environment and a file in a folder of its own.
fn program(typed: &str, env: &[(&str, &str)], file: &str) -> Result<Program, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("conf")).unwrap();
    std::fs::write(folder.path().join(DEFAULT_FILE), file).unwrap();
    let args: Vec<OsString> = std::iter::once("program").chain(typed.split_whitespace()).map(Into::into).collect();
    let env = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
    load_from(&args, &env, folder.path()).map_err(|error| error.to_string())
}

const URL: (&str, &str) = ("DATABASE_URL", "postgres://u:hunter2@h/d");

#[test]
fn the_command_line_wins_over_the_environment_over_the_file_over_the_default() {
    let (typed, env, file) = ("--proxy-port 1", ("PROXY_PORT", "2"), "proxy_port = 3");
    for (typed, env, file, expected) in [
        (typed, vec![URL, env], file, 1),
        ("", vec![URL, env], file, 2),
        ("", vec![URL], file, 3),
        ("", vec![URL], "", 8787),
        ("--proxy-port=1", vec![URL], file, 1),
        ("", vec![URL, ("PROXY_PORT", "")], file, 3),
    ] {
        assert_eq!(program(typed, &env, file).unwrap().listen.proxy_port, expected, "{typed:?} {env:?} {file:?}");
    }
}

#[test]
fn a_list_is_replaced_by_the_stronger_source_and_not_appended_to() {
    let file = "header_prefix_aliases = ['x-a-', 'x-b-']";
    for (typed, env, expected) in [
        ("", vec![URL], vec!["x-a-", "x-b-"]),
        ("", vec![URL, ("HEADER_PREFIX_ALIASES", "x-c-")], vec!["x-c-"]),
        ("--header-prefix-aliases x-d-,x-e-", vec![URL, ("HEADER_PREFIX_ALIASES", "x-c-")], vec!["x-d-", "x-e-"]),
    ] {
        assert_eq!(program(typed, &env, file).unwrap().identity.header_prefix_aliases, expected);
    }
}

#[test]
fn a_trusted_proxy_may_be_a_single_address() {
    let found = program("", &[URL, ("TRUSTED_PROXIES", "10.0.0.7, fd00::/8")], "").unwrap().identity.trusted_proxies;
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.7/32", "fd00::/8"]);
}

#[test]
fn a_feature_is_switched_off_by_any_spelling_of_off() {
    for (env, file) in [(vec![URL, ("SCIM_ENABLED", "OFF")], ""), (vec![URL], "[features]\nscim_enabled = false")] {
        let features = program("", &env, file).unwrap().features;
        assert!(!features.scim_enabled && features.policy_enabled);
    }
}

#[test]
fn settings_that_need_each_other_are_checked_across_sources() {
    let cert = "db_ssl_cert = '/c.pem'";
    assert!(program("", &[URL], cert).unwrap_err().contains("--db-ssl-key"));
    assert!(program("", &[URL, ("DB_SSL_KEY", "/k.pem")], cert).is_ok());
}

#[test]
fn a_setting_of_another_program_is_ignored_and_an_unknown_one_is_refused_by_name() {
    assert!(program("", &[URL], "upstream_pool_idle_ms = 5").is_ok());
    for key in ["proxi_port", "PROXY_PORT", "config", "gateway_config"] {
        let error = program("", &[URL], &format!("{key} = 1")).unwrap_err();
        assert!(error.contains(&format!("there is no setting `{key}`")) && error.contains(DEFAULT_FILE), "{error}");
    }
    let slip = program("", &[URL], "proxi_port = 1").unwrap_err();
    assert!(slip.contains("did you mean `proxy_port`?"), "{slip}");
}

#[test]
fn a_malformed_value_is_told_by_setting_and_source() {
    for (typed, env, file, expected) in [
        ("--proxy-port x", vec![URL], "", "PROXY_PORT has a malformed value `x` (from the command line)"),
        ("", vec![URL, ("PROXY_PORT", "x")], "", "PROXY_PORT has a malformed value `x` (from the environment)"),
        ("", vec![URL], "proxy_port = 70000", "PROXY_PORT has a malformed value `70000` (from the settings file)"),
        (
            "",
            vec![URL, ("DB_SSL", "maybe")],
            "",
            "it must be one of DISABLED, PREFERRED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY",
        ),
        ("", vec![URL, ("SCIM_ENABLED", "perhaps")], "", "expected ON or OFF"),
        ("", vec![URL, ("DATABASE_POOL_SIZE", "0")], "", "DATABASE_POOL_SIZE has a malformed value `0`"),
        ("", vec![URL], "trusted_proxies = []", "`trusted_proxies` cannot be an empty list"),
        ("", vec![URL, ("TRUSTED_PROXIES", "10.0.0.0/99")], "", "networks or addresses, as 10.0.0.0/8"),
        ("", vec![], "", "--database-url"),
        ("--no-such-thing", vec![URL], "", "--no-such-thing"),
    ] {
        let error = program(typed, &env, file).unwrap_err();
        assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_named_file_must_exist_and_the_usual_one_need_not() {
    let missing = program("--config /nonexistent/x.toml", &[URL], "").unwrap_err();
    assert!(missing.contains("/nonexistent/x.toml"), "{missing}");
    let args: Vec<OsString> = vec!["program".into(), "--database-url=postgres://h".into()];
    let folder = tempfile::tempdir().unwrap();
    assert!(load_from::<Program>(&args, &|_| None, folder.path()).is_ok());
}

#[test]
fn a_file_named_by_the_environment_replaces_the_usual_one() {
    let other = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(other.path(), "db_ssl = 'verify_ca'").unwrap();
    let env = [URL, ("GATEWAY_CONFIG", other.path().to_str().unwrap())];
    let program = program("", &env, "proxy_port = 3").unwrap();
    assert_eq!((program.database.db_ssl, program.listen.proxy_port), (DbSsl::VerifyCa, 8787));
}

#[test]
fn help_is_answered_even_when_the_settings_are_broken() {
    let help = program("--help", &[], "no_such_setting = 1").unwrap_err();
    let (general, concerns) = help.split_once("Addresses:").unwrap();
    assert!(general.contains("--config") && concerns.contains("PROXY_PORT"), "{help}");
}

#[test]
fn settings_do_not_print_their_secrets() {
    let program = program("--database-listen-url postgres://u:hunter3@h/d", &[URL], "").unwrap();
    let text = format!("{program:?}");
    assert!(!text.contains("hunter"), "{text}");
}

#[test]
fn every_setting_takes_a_value_has_help_and_is_named_after_its_variable() {
    for argument in AllSettings::command().get_arguments().filter(|argument| argument.get_env().is_some()) {
        let name = argument.get_env().unwrap().to_str().unwrap();
        assert_eq!(argument.get_long().unwrap().replace('-', "_").to_ascii_uppercase(), name);
        assert!(matches!(argument.get_action(), ArgAction::Set | ArgAction::Append), "{name}");
        assert!(argument.get_help().is_some(), "{name}");
    }
}

#[test]
fn the_shipped_file_shows_every_setting_with_its_default_and_its_help() {
    let shipped = include_str!("../../../../conf/gateway.toml");
    assert!(shipped == rendered(), "conf/gateway.toml should read:\n{}", rendered());
}

#[test]
fn the_shipped_file_without_its_comment_marks_changes_nothing() {
    let uncommented: String = rendered()
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line))
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_eq!(file::parse(&uncommented).unwrap().len(), AllSettings::command().get_arguments().count());
    let (plain, with_file) = (program("", &[URL], "").unwrap(), program("", &[URL], &uncommented).unwrap());
    assert_eq!(format!("{plain:?}"), format!("{with_file:?}"));
}

fn rendered() -> String {
    let mut text = String::from(
        "# Settings of Portcullis. Stronger than this file: the environment (the same names in capitals), and stronger\n\
         # still the command line (`--proxy-port 8787`). Every line shows the default; an empty value means: not set.\n",
    );
    let mut heading = String::new();
    for argument in AllSettings::command().get_arguments() {
        let Some(name) = argument.get_env().and_then(OsStr::to_str) else { continue };
        let under = argument.get_help_heading().unwrap_or_default();
        if under != heading {
            text += &format!("\n# === {under} ===\n");
            heading = under.to_owned();
        }
        let help = argument.get_long_help().or(argument.get_help()).unwrap().to_string();
        text += "\n";
        for line in format!("{}.", help.trim_end_matches('.')).lines() {
            text += format!("# {line}").trim_end();
            text += "\n";
        }
        text += &format!("#{} = {}\n", name.to_ascii_lowercase(), shown(argument));
    }
    text
}

fn shown(argument: &Arg) -> String {
    let default =
        argument.get_default_values().iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>().join(",");
    match (argument.get_value_delimiter(), default.parse::<i64>()) {
        (Some(_), _) if default.is_empty() => "[]".into(),
        (Some(comma), _) => format!("{:?}", default.split(comma).collect::<Vec<_>>()),
        (None, Ok(number)) => number.to_string(),
        (None, Err(_)) => format!("{default:?}"),
    }
}
