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

impl Session {
    /// The environment wins over the context, and an option over the environment.
    pub fn open(global: &Global) -> Result<Self, Failure> {
        let key = std::env::var("PORTCULLIS_API_KEY").ok().filter(|key| !key.is_empty());
        let saved = match (&global.context, &global.url, &key) {
            (None, Some(_), Some(_)) => None,
            _ => saved(global.context.as_deref())?,
        };
        // A stored key goes only to the address that it was stored with.
        if let (Some(url), None) = (&global.url, &key) {
            let url = origin(url)?;
            if saved.as_ref().is_none_or(|saved| saved.url != url) {
                return Err(Failure::SignIn("no key for this address: set PORTCULLIS_API_KEY".into()));
            }
        }
        let url = global.url.clone().or_else(|| saved.as_ref().map(|saved| saved.url.clone()));
        let key = key.or_else(|| saved.as_ref().map(|saved| saved.key.clone()));
        let (Some(url), Some(key)) = (url, key) else {
            let how = "portcullis login URL --key-stdin, or PORTCULLIS_URL and PORTCULLIS_API_KEY";
            return Err(Failure::SignIn(format!("no gateway and key are known: {how}")));
        };
        let of_context = saved.and_then(|saved| saved.workspace).filter(|_| !global.all_workspaces);
        let url = origin(&url)?;
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
    fn an_address_is_the_same_with_and_without_its_version() {
        for url in ["https://gw.test", "https://gw.test/", "https://gw.test/v1", "https://gw.test/v1/"] {
            assert_eq!(origin(url).unwrap(), "https://gw.test");
        }
        for url in ["gw.test", "ftp://gw.test", "https://a:b@gw.test", ""] {
            assert!(origin(url).is_err(), "{url}");
        }
    }
}
