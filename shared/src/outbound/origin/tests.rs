//! URLs, good and bad, each rule by its name.

use super::*;

#[test]
fn a_url_falls_apart_into_its_parts() {
    for (url, shown, name, port, path) in [
        ("https://api.openai.com", "https://api.openai.com", "api.openai.com", 443, ""),
        ("https://api.openai.com/", "https://api.openai.com", "api.openai.com", 443, ""),
        ("https://API.OpenAI.com/v1/", "https://api.openai.com", "api.openai.com", 443, "/v1"),
        ("HTTP://example.com:8080/a/b", "http://example.com:8080", "example.com", 8080, "/a/b"),
        ("https://example.com:443", "https://example.com", "example.com", 443, ""),
        ("http://example.com:443", "http://example.com:443", "example.com", 443, ""),
        ("http://8.8.8.8", "http://8.8.8.8", "8.8.8.8", 80, ""),
        ("https://[2606:4700::1111]/v1", "https://[2606:4700::1111]", "2606:4700::1111", 443, "/v1"),
        ("https://[2606:4700:0:0:0:0:0:1111]:8443", "https://[2606:4700::1111]:8443", "2606:4700::1111", 8443, ""),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example", "xn--bcher-kva.example", 443, ""),
        ("https://a-b.c3.example/%41", "https://a-b.c3.example", "a-b.c3.example", 443, "/%41"),
    ] {
        let origin = Origin::parse(url).unwrap();
        assert_eq!(origin.to_string(), shown, "{url}");
        assert_eq!((origin.host_name(), origin.port(), origin.base_path()), (name, port, path), "{url}");
        assert_eq!(origin.authority_value().to_str().unwrap(), origin.authority().as_str(), "{url}");
    }
}

#[test]
fn each_rule_of_the_syntax_refuses_by_its_name() {
    let long = format!("https://example.com/{}", "a".repeat(2048));
    let label = format!("https://{}.example", "a".repeat(64));
    let name =
        format!("https://{}.example", ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(63)].join("."));
    for (url, rule) in [
        ("", BadHost::Empty),
        ("https://", BadHost::Empty),
        ("https:///path", BadHost::Empty),
        ("https://:443", BadHost::Empty),
        ("https://exa\nmple.com", BadHost::Control),
        ("https://example.com/\u{0}", BadHost::Control),
        ("\thttps://example.com", BadHost::Control),
        ("https://example.com\u{85}", BadHost::Control),
        (&long, BadHost::TooLong),
        ("example.com", BadHost::Scheme),
        ("//example.com", BadHost::Scheme),
        ("ftp://example.com", BadHost::Scheme),
        ("file:///etc/passwd", BadHost::Scheme),
        ("gopher://example.com", BadHost::Scheme),
        ("https:/example.com", BadHost::Scheme),
        ("https:example.com", BadHost::Scheme),
        (" https://example.com", BadHost::Scheme),
        ("https://user:pass@example.com", BadHost::Credentials),
        ("https://user@example.com", BadHost::Credentials),
        ("https://example.com/@x", BadHost::Credentials),
        ("https://example.com#@evil.example", BadHost::Credentials),
        ("https://example%2ecom", BadHost::Escape),
        ("https://%31%32%37.0.0.1", BadHost::Escape),
        ("https://[fe80::1%25eth0]", BadHost::Escape),
        ("https://exam ple.com", BadHost::Character),
        ("https://example.com /", BadHost::Character),
        ("https://<example>.com", BadHost::Character),
        ("https://{host}.com", BadHost::Character),
        ("https://a|b.com", BadHost::Character),
        ("https://example.com\\.evil.example", BadHost::Character),
        ("https://a^b.com", BadHost::Character),
        ("https://`id`.com", BadHost::Character),
        ("https://example\u{a0}.com", BadHost::Character),
        ("https://exаmple.com", BadHost::Alphabet),
        ("https://ｅxample.com", BadHost::Alphabet),
        ("https://127。0。0。1", BadHost::Alphabet),
        ("https://①②⑦.0.0.1", BadHost::Alphabet),
        ("https://ex_ample.com", BadHost::Alphabet),
        ("https://exam!ple.com", BadHost::Alphabet),
        ("https://*.example.com", BadHost::Alphabet),
        ("https://[::1", BadHost::Alphabet),
        ("https://[::1]x", BadHost::Alphabet),
        ("https://[127.0.0.1]", BadHost::Alphabet),
        ("https://[v1.a]", BadHost::Alphabet),
        ("https://[::g]", BadHost::Alphabet),
        ("https://[]", BadHost::Alphabet),
        ("https://example.com.", BadHost::TrailingDot),
        ("https://.", BadHost::TrailingDot),
        ("https://a.b.c.d.e.f.g.h.i.j.k", BadHost::Labels),
        ("https://a..b", BadHost::Label),
        ("https://.example.com", BadHost::Label),
        (&label, BadHost::Label),
        (&name, BadHost::Label),
        ("https://example.com:", BadHost::Port),
        ("https://example.com:0", BadHost::Port),
        ("https://example.com:65536", BadHost::Port),
        ("https://example.com:-1", BadHost::Port),
        ("https://example.com:+80", BadHost::Port),
        ("https://example.com:8080:80", BadHost::Port),
        ("https://example.com:80a", BadHost::Port),
        ("https://example.com:000080", BadHost::Port),
        ("https://example.com:٨٠", BadHost::Port),
        ("https://example.com?x=1", BadHost::Query),
        ("https://example.com/v1?x=1", BadHost::Query),
        ("https://example.com/v1#x", BadHost::Query),
        ("https://example.com/a b", BadHost::Path),
        ("https://example.com/ü", BadHost::Path),
        ("https://example.com/a\\b", BadHost::Path),
    ] {
        assert_eq!(Origin::parse(url).err(), Some(rule), "{url:?}");
    }
}

#[test]
fn ten_labels_are_still_allowed() {
    assert!(Origin::parse("https://a.b.c.d.e.f.g.h.i.j").is_ok());
}

#[test]
fn an_origin_is_its_scheme_host_and_port() {
    let origin = |url| Origin::parse(url).unwrap();
    assert_eq!(origin("https://a.example/v1"), origin("https://A.example:443/v2"));
    assert_ne!(origin("https://a.example"), origin("http://a.example:443"));
    assert_ne!(origin("https://a.example"), origin("https://a.example:444"));
    assert_ne!(origin("https://a.example"), origin("https://b.example"));
    assert_eq!(origin("https://[::ffff:1.2.3.4]"), origin("https://[0:0:0:0:0:ffff:102:304]"));
}

#[test]
fn trusted_and_public_origins_never_share_a_pool() {
    let public = Origin::parse("https://a.example").unwrap();
    let mut trusted = public.clone();
    trusted.set_trusted(true);
    assert_eq!(public, trusted);
    assert_ne!(public.pool_key(), trusted.pool_key());
}
