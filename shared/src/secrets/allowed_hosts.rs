//! Where the value of a secret reference may be sent. Whoever may make an integration can map a reference that they
//! cannot read; without a bound they could map it onto a host of their own and read it there. A value goes to the
//! provider's own address, and beyond that to the hosts that its reference names.

use crate::outbound::{BadHost, Host, Origin};

/// Entries of one reference.
pub const MAX_HOSTS: usize = 50;

/// An entry as it is kept: a name or address, and a port where only that one is meant.
pub fn parse(entry: &str) -> Result<String, BadHost> {
    let (host, port) = split(entry.trim());
    let host = match Host::parse(host)? {
        Host::Name(name) => name,
        Host::Address(address) if address.is_ipv6() => format!("[{address}]"),
        Host::Address(address) => address.to_string(),
    };
    match port {
        None => Ok(host),
        Some(port) => match port.parse::<u16>() {
            Ok(number) if number > 0 && !port.starts_with(['+', '0']) => Ok(format!("{host}:{number}")),
            _ => Err(BadHost::Port),
        },
    }
}

/// Whether one of the entries names the host of this origin.
pub fn name(entries: &[String], origin: &Origin) -> bool {
    entries.iter().any(|entry| {
        let (host, port) = split(entry);
        let is_host = Host::parse(host).is_ok_and(|host| host == *origin.host());
        is_host && port.is_none_or(|port| port.parse() == Ok(origin.port()))
    })
}

/// The colons of an IPv6 address stand in brackets.
fn split(entry: &str) -> (&str, Option<&str>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_host_with_or_without_a_port() {
        for (entry, kept) in [
            ("LLM.example.com", Some("llm.example.com")),
            (" llm.example.com:8443 ", Some("llm.example.com:8443")),
            ("127.0.0.1:80", Some("127.0.0.1:80")),
            ("[2606:4700::1111]", Some("[2606:4700::1111]")),
            ("[2606:4700:0::1111]:443", Some("[2606:4700::1111]:443")),
            ("https://llm.example.com", None),
            ("llm.example.com/v1", None),
            ("llm.example.com:", None),
            ("llm.example.com:0", None),
            ("llm.example.com:65536", None),
            ("*.example.com", None),
            ("user@llm.example.com", None),
            ("", None),
        ] {
            assert_eq!(parse(entry).ok().as_deref(), kept, "{entry}");
        }
    }

    #[test]
    fn an_entry_names_its_host_at_every_port_or_at_its_own() {
        let entries = ["llm.example.com".to_owned(), "gpu.example.com:8443".into(), "[2606:4700::1111]".into()];
        for (url, is_named) in [
            ("https://llm.example.com/v1", true),
            ("https://LLM.example.com:8443", true),
            ("https://llm.example.com.evil.test", false),
            ("https://evil-llm.example.com", false),
            ("https://gpu.example.com:8443/v1", true),
            ("https://gpu.example.com", false),
            ("https://[2606:4700:0:0::1111]:99", true),
            ("https://evil.test", false),
        ] {
            assert_eq!(name(&entries, &Origin::parse(url).unwrap()), is_named, "{url}");
        }
        assert!(!name(&[], &Origin::parse("https://llm.example.com").unwrap()));
    }
}
