//! Where settings come from: the command line, then the environment, then the file, then the default.
//!
//! Values of the environment and the file are handed to clap as if they had been typed, before what was typed. So
//! every rule about values and about settings that need each other holds wherever a value comes from.

use super::{AllSettings, file};
use crate::nearest::nearest;
use clap::builder::{Arg, Command, Resettable};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Error, Parser};
use std::collections::BTreeMap;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Read when no file is named, if it is there.
pub const DEFAULT_FILE: &str = "conf/gateway.toml";

/// Reads the settings of a program. On an error, `Error::exit` prints the sentence and ends the process as clap does.
pub fn load<S: Parser>(args: impl IntoIterator<Item = OsString>) -> Result<S, Error> {
    load_from(&args.into_iter().collect::<Vec<_>>(), &|name| std::env::var_os(name), Path::new(""))
}

fn load_from<S: Parser>(args: &[OsString], env: &dyn Fn(&str) -> Option<OsString>, folder: &Path) -> Result<S, Error> {
    let mut command = S::command().arg(config_argument());
    if let Some(help) = asked_for_help(&command, args) {
        return Err(help);
    }
    let settings: Vec<Setting> = command.get_arguments().filter_map(Setting::from_argument).collect();
    let lookup = |name: &str| env(name).filter(|value| !value.is_empty());
    let from_file = match file_to_read(args, lookup("GATEWAY_CONFIG"), folder) {
        Some((path, text)) => file_values(&path, text.map_err(refuse)?, &settings)?,
        None => BTreeMap::new(),
    };

    let mut typed: Vec<OsString> = args.iter().take(1).cloned().collect();
    let mut sources = BTreeMap::new();
    for setting in &settings {
        // clap would read the environment itself and take an empty variable for a value.
        command = command.mut_arg(&setting.id, |argument| argument.env(Resettable::Reset));
        if is_typed(args, &setting.long) {
            sources.insert(&setting.long, "the command line");
        } else if let Some(value) = lookup(&setting.name) {
            typed.push(as_typed(&setting.long, &value));
            sources.insert(&setting.long, "the environment");
        } else if let Some(value) = from_file.get(&setting.name) {
            typed.push(as_typed(&setting.long, OsStr::new(value)));
            sources.insert(&setting.long, "the settings file");
        }
    }
    typed.extend(args.iter().skip(1).cloned());
    command = command.mut_arg("config", |argument| argument.env(Resettable::Reset));
    let matches = command.try_get_matches_from_mut(typed).map_err(|error| sentence(error, &settings, &sources))?;
    S::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// An argument that has an environment variable: that is what makes it a setting.
struct Setting {
    id: String,
    long: String,
    /// The environment variable, which is the setting's name everywhere.
    name: String,
    is_secret: bool,
    has_default: bool,
}

impl Setting {
    fn from_argument(argument: &Arg) -> Option<Self> {
        let name = argument.get_env()?.to_str()?.to_owned();
        (name != "GATEWAY_CONFIG").then_some(())?;
        Some(Self {
            id: argument.get_id().to_string(),
            long: argument.get_long()?.to_owned(),
            name,
            is_secret: argument.is_hide_env_values_set(),
            has_default: !argument.get_default_values().is_empty(),
        })
    }
}

fn config_argument() -> Arg {
    Arg::new("config")
        .long("config")
        .env("GATEWAY_CONFIG")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .global(true)
        .help_heading(Resettable::Reset)
        .help(format!("Settings file, used below the environment [default: {DEFAULT_FILE} if it exists]"))
}

/// Help and version are answered before any file is looked at: they must work when the settings are broken.
fn asked_for_help(command: &Command, args: &[OsString]) -> Option<Error> {
    let error = command.clone().try_get_matches_from(args).err()?;
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    matches!(error.kind(), DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion).then_some(error)
}

/// The file to read and its text; a file that is named must be there.
fn file_to_read(args: &[OsString], env: Option<OsString>, folder: &Path) -> Option<(PathBuf, Result<String, String>)> {
    let named = typed_value(args, "config").or(env);
    let path = folder.join(named.as_deref().unwrap_or(OsStr::new(DEFAULT_FILE)));
    match std::fs::read_to_string(&path) {
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            let problem = format!("the settings file {} cannot be read: {error}", path.display());
            Some((path, Err(problem)))
        }
        Ok(text) => Some((path, Ok(text))),
    }
}

/// The file's values by setting name. One file serves every program, so a setting of another one is no mistake.
fn file_values(path: &Path, text: String, settings: &[Setting]) -> Result<BTreeMap<String, String>, Error> {
    let values = file::parse(&text).map_err(|problem| refuse(format!("{}: {problem}", path.display())))?;
    let all: Vec<Setting> = AllSettings::command().get_arguments().filter_map(Setting::from_argument).collect();
    let mut known = BTreeMap::new();
    for (key, value) in values {
        let name = key.to_ascii_uppercase();
        let is_name = |setting: &&Setting| setting.name == name && setting.name.to_ascii_lowercase() == key;
        let Some(setting) = settings.iter().chain(&all).find(is_name) else {
            let names = settings.iter().chain(&all).map(|setting| setting.name.to_ascii_lowercase());
            let names: Vec<String> = names.collect();
            let meant = nearest(&key, names.iter().map(String::as_str));
            let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
            return Err(refuse(format!("{}: there is no setting `{key}`{meant}", path.display())));
        };
        match value {
            file::FileValue::EmptyList if setting.has_default => {
                let problem = format!("{}: `{key}` cannot be an empty list", path.display());
                return Err(refuse(problem));
            }
            file::FileValue::EmptyList => {}
            // As with the environment, empty means: not set.
            file::FileValue::Text(text) if text.is_empty() => {}
            file::FileValue::Text(text) => {
                known.insert(name, text);
            }
        }
    }
    Ok(known)
}

fn is_typed(args: &[OsString], long: &str) -> bool {
    before_separator(args).any(|arg| flag_of(arg).is_some_and(|(name, _)| name == long))
}

fn typed_value(args: &[OsString], long: &str) -> Option<OsString> {
    let mut args = before_separator(args);
    while let Some(arg) = args.next() {
        match flag_of(arg) {
            Some((name, Some(value))) if name == long => return Some(value.into()),
            Some((name, None)) if name == long => return args.next().cloned(),
            _ => {}
        }
    }
    None
}

fn before_separator(args: &[OsString]) -> impl Iterator<Item = &OsString> {
    args.iter().skip(1).take_while(|arg| arg.as_os_str() != "--")
}

/// `--name=value` or `--name`.
fn flag_of(arg: &OsStr) -> Option<(&str, Option<&str>)> {
    let flag = arg.to_str()?.strip_prefix("--")?;
    Some(flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value))))
}

fn as_typed(long: &str, value: &OsStr) -> OsString {
    let mut typed = OsString::from(format!("--{long}="));
    typed.push(value);
    typed
}

/// A malformed value, said with the setting's name and where the value came from. Secrets are not repeated.
fn sentence(error: Error, settings: &[Setting], sources: &BTreeMap<&String, &str>) -> Error {
    let is_about_value = matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue);
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg).filter(|_| is_about_value) else {
        return error;
    };
    let long = argument.trim_start_matches("--").split([' ', '=']).next().unwrap_or_default();
    let Some(setting) = settings.iter().find(|setting| setting.long == long) else { return error };
    let source = sources.get(&setting.long).copied().unwrap_or("its default");
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) if !setting.is_secret => format!(" `{value}`"),
        _ => String::new(),
    };
    let reason = match (error.source(), error.get(ContextKind::ValidValue)) {
        (Some(cause), _) if !setting.is_secret => format!(": {cause}"),
        (_, Some(ContextValue::Strings(valid))) => format!(": it must be one of {}", valid.join(", ")),
        _ => String::new(),
    };
    refuse(format!("{} has a malformed value{value} (from {source}){reason}", setting.name))
}

fn refuse(problem: String) -> Error {
    Error::raw(ErrorKind::ValueValidation, problem + "\n")
}

#[cfg(test)]
mod tests;
