//! Addresses of providers: which of them hold a credential, and how another gateway's differ from ours, which end before the
//! path of an operation.

/// Paths of operations that other gateways write behind an address.
const OPERATIONS: &[&str] =
    &["/chat/completions", "/completions", "/embeddings", "/responses", "/messages", "/api/chat", "/api/generate"];

/// Whether it has a user with a password, a query or a fragment. Ours have none of them, and a token may stand there.
pub fn has_credential(address: &str) -> bool {
    address.contains(['@', '?', '#'])
}

/// An address with this path at its end, where ours has it and the other gateway adds it by itself.
pub fn with_path(address: &str, path: &str) -> String {
    if path.is_empty() {
        return address.to_owned();
    }
    let address = address.trim_end_matches('/');
    let full = format!("{path}/messages");
    let address = address.strip_suffix(full.as_str()).unwrap_or(address);
    if address.ends_with(path) { address.to_owned() } else { format!("{address}{path}") }
}

/// The address without the operation's path; nothing where it has none.
pub fn before_operation(address: &str) -> Option<&str> {
    let address = address.trim_end_matches('/');
    OPERATIONS.iter().find_map(|operation| address.strip_suffix(operation))
}

/// `my-resource` of `https://my-resource.openai.azure.com/`.
pub fn azure_resource(address: &str) -> Option<&str> {
    let host = address.strip_prefix("https://")?.split('/').next()?;
    let resource = host.strip_suffix(".openai.azure.com")?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    (!resource.is_empty() && resource.chars().all(is_name)).then_some(resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_end_with_the_version_once() {
        for (address, expected) in [
            ("https://a.test", "https://a.test/v1"),
            ("https://a.test/", "https://a.test/v1"),
            ("https://a.test/v1", "https://a.test/v1"),
            ("https://a.test/v1/messages", "https://a.test/v1"),
            ("https://a.test/x", "https://a.test/x/v1"),
        ] {
            assert_eq!(with_path(address, "/v1"), expected);
        }
        assert_eq!(with_path("http://a.test/x/", ""), "http://a.test/x/");
        assert_eq!(before_operation("https://a.test/v1/chat/completions"), Some("https://a.test/v1"));
        assert_eq!(before_operation("https://a.test/v1"), None);
    }

    #[test]
    fn only_addresses_of_azure_name_a_resource() {
        assert_eq!(azure_resource("https://acme-eu.openai.azure.com/x"), Some("acme-eu"));
        for address in
            ["https://my.proxy.test/azure", "https://.openai.azure.com", "https://u@x.openai.azure.com", "http://a"]
        {
            assert_eq!(azure_resource(address), None, "{address}");
        }
    }

    #[test]
    fn users_and_queries_are_credentials() {
        assert!(has_credential("http://u:pw@host") && has_credential("https://a.test/mcp?token=x"));
        assert!(!has_credential("https://a.test/v1"));
    }
}
