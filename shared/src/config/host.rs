//! The form of a custom host: what no setting and no network makes right. Whether it may be dialled from here is
//! asked again, with the operator's trust and the resolved address, by the only code that opens sockets.

use crate::outbound::{BadHost, Origin, check_host};

/// Says which rule a URL breaks. Private hosts pass: an operator may trust them.
pub fn check(url: &str) -> Result<(), BadHost> {
    let origin = Origin::parse(url)?;
    check_host(origin.host(), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_custom_host_is_judged_and_private_addresses_are_left_to_the_dialer() {
        for (url, is_fine) in [
            ("https://api.example.com/v1", true),
            ("http://10.0.0.7:8080", true),
            ("http://[::1]:9/v1", true),
            ("https://API.Example.com", true),
            ("", false),
            ("api.example.com", false),
            ("ftp://example.com", false),
            ("https://user@example.com", false),
            ("https://example.com/@x", false),
            ("https://exa%6dple.com", false),
            ("https://ex ample.com", false),
            ("https://exämple.com", false),
            ("https://example.com.", false),
            ("https://a..b", false),
            ("https://a.b.c.d.e.f.g.h.i.j.k", false),
            ("https://example.com:0", false),
            ("https://example.com:65536", false),
            ("https://example.com:+1", false),
            ("https://example.com?x=1", false),
            ("https://exa\tmple.com", false),
            ("https://", false),
            ("https://[::1", false),
            ("https://[::1]x", false),
            ("http://169.254.169.254/latest", false),
            ("http://[::ffff:169.254.169.254]", false),
            ("http://[fd00:ec2::254]", false),
            ("http://metadata", false),
            ("http://x.metadata.google.internal", false),
            ("http://vault.consul", false),
        ] {
            assert_eq!(check(url).is_ok(), is_fine, "{url}: {:?}", check(url));
        }
        assert!(check(&format!("https://example.com/{}", "a".repeat(2048))).is_err());
    }
}
