//! A provider's address with places in it, such as a region or an account, and where the values for them are found. A
//! value becomes a part of a host's name, so it may hold nothing but what such a part is made of.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    template: Box<str>,
    /// Addresses of their own for some values of a place: `global` is no region's.
    exceptions: BTreeMap<String, String>,
    /// What stands behind a bare name where the whole address is a place.
    domain: Option<Box<str>>,
}

impl Address {
    /// None when there is nothing to fill.
    pub(super) fn parse(template: &str, exceptions: BTreeMap<String, String>, domain: Option<&str>) -> Option<Self> {
        template.contains('{').then(|| Self { template: template.into(), exceptions, domain: domain.map(Into::into) })
    }

    /// One of a row's further addresses, which may have no place at all.
    pub(super) fn whole(template: &str) -> Result<Self, String> {
        let is_url = template.starts_with("https://") || template.starts_with('{');
        if !is_url || template.ends_with('/') {
            return Err(format!("`{template}` is no address: it starts with https:// and does not end in a slash"));
        }
        Ok(Self { template: template.into(), exceptions: BTreeMap::new(), domain: None })
    }

    pub fn has(&self, place: &str) -> bool {
        self.template.contains(&format!("{{{place}}}"))
    }

    /// The address, as soon as every place has a value. Of what fills a place whose name ends in `_origin` the path is cut
    /// off. The error names one that has no value, or none that can stand there.
    pub fn fill<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> Result<String, String> {
        let mut url = String::new();
        let mut rest = &*self.template;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            let value = value(name).ok_or_else(|| name.to_owned())?.trim();
            let value = if name.ends_with("_origin") { origin(value) } else { value };
            if let Some(exception) = self.exceptions.get(value) {
                return Ok(exception.clone());
            }
            let is_whole = before.is_empty() && url.is_empty();
            let is_fit = is_label(value) || (is_whole && is_url(value));
            if !is_fit {
                return Err(name.to_owned());
            }
            url.push_str(before);
            match &self.domain {
                Some(_) if is_whole && value.contains('.') && !is_url(value) => url.extend(["https://", value]),
                Some(domain) if is_whole && !is_url(value) => url.extend(["https://", value, ".", domain]),
                _ => url.push_str(value.trim_end_matches('/')),
            }
            rest = after;
        }
        url.push_str(rest);
        Ok(url)
    }
}

/// What the guard of custom hosts then judges.
fn is_url(value: &str) -> bool {
    value.starts_with("https://") || value.starts_with("http://")
}

/// A URL without its path.
fn origin(url: &str) -> &str {
    let Some((scheme, rest)) = url.split_once("://") else { return url };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    &url[..scheme.len() + 3 + authority.len()]
}

fn is_label(value: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !value.is_empty() && value.len() <= 253 && value.bytes().all(is_plain) && !value.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_become_more_than_a_part_of_the_host() {
        let exceptions = BTreeMap::from([("global".to_owned(), "https://g.test".to_owned())]);
        let regional = Address::parse("https://{region}-x.test/v1", exceptions, None).unwrap();
        let whole = Address::parse("{url}", BTreeMap::new(), None).unwrap();
        let beside = Address::whole("{url_origin}/openai").unwrap();
        let named = Address::parse("{url}", BTreeMap::new(), Some("cloud.test")).unwrap();
        for (address, value, expected) in [
            (&regional, Some("eu-west-1"), Ok("https://eu-west-1-x.test/v1")),
            (&regional, Some("global"), Ok("https://g.test")),
            (&regional, Some("evil.test/"), Err("region")),
            (&regional, Some("evil.test#"), Err("region")),
            (&regional, Some("user@evil"), Err("region")),
            (&regional, Some("https://evil.test"), Err("region")),
            (&regional, Some(""), Err("region")),
            (&regional, None, Err("region")),
            (&whole, Some("https://own.test/base/"), Ok("https://own.test/base")),
            (&whole, Some("ftp://own.test"), Err("url")),
            (&named, Some("dbc-1"), Ok("https://dbc-1.cloud.test")),
            (&named, Some("dbc-1.other.test"), Ok("https://dbc-1.other.test")),
            (&named, Some("https://own.test/"), Ok("https://own.test")),
            (&named, Some("dbc/1"), Err("url")),
            (&beside, Some("https://own.test:8443/models?x"), Ok("https://own.test:8443/openai")),
            (&beside, Some("https://own.test"), Ok("https://own.test/openai")),
        ] {
            let filled = address.fill(|_| value);
            assert_eq!(filled.as_deref().map_err(String::as_str), expected, "{value:?}");
        }
        assert_eq!(Address::parse("https://plain.test", BTreeMap::new(), None), None);
        assert_eq!(
            Address::whole("https://plain.test/v1").unwrap().fill(|_| None).as_deref(),
            Ok("https://plain.test/v1")
        );
        assert!(Address::whole("http://plain.test").is_err() && Address::whole("https://plain.test/").is_err());
    }
}
