//! What a command works with: a client of the gateway that the options, the environment or the context name.

use crate::context::{self, Context};
use crate::global::Global;
use crate::http::Client;
use crate::outcome::Failure;
use crate::output::Output;

pub struct Session {
    pub client: Client,
    /// Slug or id; none where the command is about all that the key can see.
    pub workspace: Option<String>,
    pub output: Output,
    pub is_sure: bool,
    pub url: String,
}

/// Where an address and a key may come from, in the order in which they are asked.
struct Sources {
    /// The option `--url`.
    option: Option<String>,
    url: Option<String>,
    key: Option<String>,
}

impl Sources {
    fn read(global: &Global) -> Self {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let (url, key) = match global.context {
            // A context that is named means its own address and key.
            Some(_) => (None, None),
            None => (set("PORTCULLIS_URL"), set("PORTCULLIS_API_KEY")),
        };
        Self { option: global.url.clone(), url, key }
    }

    fn is_whole(&self) -> bool {
        (self.option.is_some() || self.url.is_some()) && self.key.is_some()
    }

    /// The address and the key. A stored key goes only to the address that it was stored with.
    fn choose(self, saved: Option<&Context>) -> Result<(String, String), Failure> {
        let url = self.option.or(self.url);
        if let (Some(url), None) = (&url, &self.key) {
            let url = origin(url)?;
            if saved.is_none_or(|saved| saved.url != url) {
                return Err(Failure::SignIn("no key for this address: set PORTCULLIS_API_KEY".into()));
            }
        }
        let url = url.or_else(|| saved.map(|saved| saved.url.clone()));
        let key = self.key.or_else(|| saved.map(|saved| saved.key.clone()));
        let (Some(url), Some(key)) = (url, key) else {
            let how = "portcullis login URL --key-stdin, or PORTCULLIS_URL and PORTCULLIS_API_KEY";
            return Err(Failure::SignIn(format!("no gateway and key are known: {how}")));
        };
        Ok((origin(&url)?, key))
    }
}

/// The address that an option or the environment names, for what needs no key.
pub fn named_url(global: &Global) -> Option<String> {
    let Sources { option, url, .. } = Sources::read(global);
    option.or(url)
}

impl Session {
    /// The environment wins over the current context, and an option over the environment. A named context wins over the environment.
    pub fn open(global: &Global) -> Result<Self, Failure> {
        let sources = Sources::read(global);
        let saved = if sources.is_whole() { None } else { saved(global.context.as_deref())? };
        let (url, key) = sources.choose(saved.as_ref())?;
        let of_context = saved.and_then(|saved| saved.workspace).filter(|_| !global.all_workspaces);
        Ok(Self {
            client: Client::new(&url, Some(key), global.as_curl)?,
            workspace: global.workspace.clone().or(of_context),
            output: Output::new(global.output, global.quiet),
            is_sure: global.yes,
            url,
        })
    }

    /// The query that narrows a list to the workspace.
    pub fn in_workspace(&self) -> Vec<(String, String)> {
        self.workspace.iter().map(|workspace| ("workspace_id".to_owned(), workspace.clone())).collect()
    }

    /// The same for logs and analytics, which name it by another word.
    pub fn in_workspace_slug(&self) -> Vec<(String, String)> {
        self.workspace.iter().map(|workspace| ("workspace_slug".to_owned(), workspace.clone())).collect()
    }
}

fn saved(name: Option<&str>) -> Result<Option<Context>, Failure> {
    let contexts = context::read(&context::path()?)?;
    let Some(name) = name.or(contexts.current.as_deref()) else { return Ok(None) };
    match contexts.contexts.get(name) {
        Some(context) => Ok(Some(context.clone())),
        None => Err(Failure::new(format!("there is no context `{name}`: portcullis context list"))),
    }
}

/// The address without the version: `https://gw.test/v1/` and `https://gw.test` are one gateway.
pub fn origin(url: &str) -> Result<String, Failure> {
    let text = url.trim_end_matches('/').trim_end_matches("/v1");
    match url::Url::parse(text) {
        Ok(parsed) if ["http", "https"].contains(&parsed.scheme()) && parsed.password().is_none() => {
            Ok(text.to_owned())
        }
        _ => Err(Failure::new(format!("`{url}` is no address of a gateway, as https://gateway.example"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_only_to_the_address_that_it_belongs_to() {
        let saved = Context { url: "https://saved.test".into(), key: "saved".into(), workspace: None };
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        for (option, url, key, expected) in [
            ("", "", "", Some(("https://saved.test", "saved"))),
            ("", "https://a.test", "k", Some(("https://a.test", "k"))),
            ("https://b.test", "https://a.test", "k", Some(("https://b.test", "k"))),
            ("https://saved.test/v1", "", "", Some(("https://saved.test", "saved"))),
            ("https://b.test", "", "", None),
            ("", "https://a.test", "", None),
        ] {
            let sources = Sources { option: text(option), url: text(url), key: text(key) };
            let chosen = sources.choose(Some(&saved)).ok();
            let expected = expected.map(|(url, key)| (url.to_owned(), key.to_owned()));
            assert_eq!(chosen, expected, "{option} {url} {key}");
        }
    }

    #[test]
    fn an_address_is_the_same_with_and_without_its_version() {
        for url in ["https://gw.test", "https://gw.test/", "https://gw.test/v1", "https://gw.test/v1/"] {
            assert_eq!(origin(url).unwrap(), "https://gw.test");
        }
        for url in ["gw.test", "ftp://gw.test", "https://a:b@gw.test", ""] {
            assert!(origin(url).is_err(), "{url}");
        }
    }
}
