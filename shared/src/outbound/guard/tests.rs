//! Hosts by the hundred: every rule, every spelling that once slipped past somebody's filter.

use super::*;
use proptest::prelude::*;

/// The judgement of a whole URL, as `Guard::custom_host` makes it.
fn judge(url: &str, trusted: bool) -> Result<(), BadHost> {
    check_host(Origin::parse(url)?.host(), trusted)
}

fn guard(trusted: &[&str], own: &[&str]) -> Guard {
    let owned = |list: &[&str]| list.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>();
    Guard::new(&owned(trusted), &owned(own)).unwrap().allowing_plain(true)
}

#[test]
fn without_tls_a_public_host_is_named_only_where_the_operator_allows_it() {
    let trusted = ["gpu.example".to_owned(), "10.0.0.7".to_owned()];
    for allows in [false, true] {
        let guard = Guard::new(&trusted, &[]).unwrap().allowing_plain(allows);
        for (url, is_fine) in [
            ("http://api.example.com/v1", allows),
            ("http://8.8.8.8", allows),
            ("http://[2606:4700::1111]", allows),
            ("https://api.example.com/v1", true),
            ("http://gpu.example:8000", true),
            ("http://a.gpu.example", true),
            ("http://10.0.0.7:8000", true),
            ("http://10.0.0.8", false),
        ] {
            assert_eq!(guard.custom_host(url).is_ok(), is_fine, "{url}, allowed {allows}");
        }
        assert_eq!(guard.custom_url("http://keys.example.com/a").unwrap_err(), BadHost::Plain, "key sets never");
    }
    assert_eq!(Guard::default().custom_host("http://api.example.com").unwrap_err(), BadHost::Plain);
}

#[test]
fn public_hosts_pass() {
    for host in [
        "api.openai.com",
        "api.anthropic.com",
        "my-resource.openai.azure.com",
        "bedrock-runtime.us-east-1.amazonaws.com",
        "us-central1-aiplatform.googleapis.com",
        "8.8.8.8",
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "[2606:4700:4700::1111]",
        "[2a00:1450:4001::1]",
        "[2001:4860:4860::8888]",
        "[2001:200::1]",
        "[64:ff9b::8.8.8.8]",
        "internal.example.com",
        "localhost.example.com",
        "metadata.example.com",
        "consul.example.com",
        "notlocal",
        "mylan.example",
        "nip.io.example.com",
        "notnip.io",
        "myconsul",
        "0x.example.com",
        "127.0.0.1.example.com",
        "1e100.net",
        "0xdeadbeef.com",
        "3com.com",
        "xn--bcher-kva.example",
    ] {
        assert_eq!(judge(&format!("https://{host}"), false), Ok(()), "{host}");
    }
}

/// What trust can open.
const PRIVATE_HOSTS: &[(&str, BadHost)] = &[
    ("0.0.0.0", BadHost::Private),
    ("0.255.255.255", BadHost::Private),
    ("10.0.0.1", BadHost::Private),
    ("10.255.255.255", BadHost::Private),
    ("100.64.0.1", BadHost::Private),
    ("100.127.255.255", BadHost::Private),
    ("127.0.0.1", BadHost::Private),
    ("127.1.2.3", BadHost::Private),
    ("127.255.255.255", BadHost::Private),
    ("169.254.0.1", BadHost::Private),
    ("169.254.170.3", BadHost::Private),
    ("172.16.0.1", BadHost::Private),
    ("172.31.255.255", BadHost::Private),
    ("192.0.0.1", BadHost::Private),
    ("192.0.2.1", BadHost::Private),
    ("192.88.99.1", BadHost::Private),
    ("192.168.0.1", BadHost::Private),
    ("192.168.255.255", BadHost::Private),
    ("198.18.0.1", BadHost::Private),
    ("198.19.255.255", BadHost::Private),
    ("198.51.100.1", BadHost::Private),
    ("203.0.113.1", BadHost::Private),
    ("224.0.0.1", BadHost::Private),
    ("239.255.255.250", BadHost::Private),
    ("240.0.0.1", BadHost::Private),
    ("255.255.255.255", BadHost::Private),
    ("[::]", BadHost::Private),
    ("[::1]", BadHost::Private),
    ("[0:0:0:0:0:0:0:1]", BadHost::Private),
    ("[0000:0000::0001]", BadHost::Private),
    ("[::127.0.0.1]", BadHost::Private),
    ("[::7f00:1]", BadHost::Private),
    ("[::ffff:127.0.0.1]", BadHost::Private),
    ("[::ffff:7f00:1]", BadHost::Private),
    ("[::FFFF:10.0.0.1]", BadHost::Private),
    ("[::ffff:8.8.8.8]", BadHost::Private),
    ("[::ffff:0:127.0.0.1]", BadHost::Private),
    ("[64:ff9b::127.0.0.1]", BadHost::Private),
    ("[64:ff9b::10.1.2.3]", BadHost::Private),
    ("[64:ff9b::c0a8:1]", BadHost::Private),
    ("[64:ff9b:1::10.1.2.3]", BadHost::Private),
    ("[64:ff9b:1::8.8.8.8]", BadHost::Private),
    ("[2002:7f00:1::]", BadHost::Private),
    ("[2002:a00:1::1]", BadHost::Private),
    ("[2002:808:808::1]", BadHost::Private),
    ("[2001:0:4136:e378:8000:63bf:3fff:fdd2]", BadHost::Private),
    ("[2606:4700::5efe:127.0.0.1]", BadHost::Private),
    ("[2606:4700::200:5efe:10.0.0.1]", BadHost::Private),
    ("[fc00::1]", BadHost::Private),
    ("[fd12:3456:789a::1]", BadHost::Private),
    ("[fe80::1]", BadHost::Private),
    ("[febf::1]", BadHost::Private),
    ("[fec0::1]", BadHost::Private),
    ("[ff02::1]", BadHost::Private),
    ("[ff0e::1]", BadHost::Private),
    ("[100::1]", BadHost::Private),
    ("[2001:db8::1]", BadHost::Private),
    ("[3fff::1]", BadHost::Private),
    ("[2001:10::1]", BadHost::Private),
    ("[2001:2::1]", BadHost::Private),
    ("[5f00::1]", BadHost::Private),
    ("[4000::1]", BadHost::Private),
    ("2130706433", BadHost::Spelling),
    ("3232235521", BadHost::Spelling),
    ("134744072", BadHost::Spelling),
    ("0", BadHost::Spelling),
    ("1", BadHost::Spelling),
    ("4294967295", BadHost::Spelling),
    ("99999999999999999999", BadHost::Spelling),
    ("0x7f000001", BadHost::Spelling),
    ("0X7F000001", BadHost::Spelling),
    ("0x7f.1", BadHost::Spelling),
    ("0x7f.0x0.0x0.0x1", BadHost::Spelling),
    ("0x0a.0.0.1", BadHost::Spelling),
    ("127.0.0.0x1", BadHost::Spelling),
    ("0x", BadHost::Spelling),
    ("1.2.3.0x", BadHost::Spelling),
    ("017700000001", BadHost::Spelling),
    ("0177.0.0.1", BadHost::Spelling),
    ("0177.1", BadHost::Spelling),
    ("127.0.0.01", BadHost::Spelling),
    ("127.000.000.001", BadHost::Spelling),
    ("010.0.0.1", BadHost::Spelling),
    ("8.8.8.010", BadHost::Spelling),
    ("127.1", BadHost::Spelling),
    ("127.0.1", BadHost::Spelling),
    ("10.1", BadHost::Spelling),
    ("192.168.257", BadHost::Spelling),
    ("256.256.256.256", BadHost::Spelling),
    ("1.2.3.4.5", BadHost::Spelling),
    ("08.8.8.8", BadHost::Spelling),
    ("host.1", BadHost::Spelling),
    ("localhost", BadHost::Domain),
    ("LOCALHOST", BadHost::Domain),
    ("foo.localhost", BadHost::Domain),
    ("printer.local", BadHost::Domain),
    ("local", BadHost::Domain),
    ("localhost.localdomain", BadHost::Domain),
    ("vault.internal", BadHost::Domain),
    ("host.docker.internal", BadHost::Domain),
    ("wiki.intranet", BadHost::Domain),
    ("router.lan", BadHost::Domain),
    ("nas.home", BadHost::Domain),
    ("mail.corp", BadHost::Domain),
    ("a.test", BadHost::Domain),
    ("a.invalid", BadHost::Domain),
    ("abcdef.onion", BadHost::Domain),
    ("127.0.0.1.nip.io", BadHost::Rebinding),
    ("nip.io", BadHost::Rebinding),
    ("app.10-0-0-1.sslip.io", BadHost::Rebinding),
    ("10.0.0.1.XIP.io", BadHost::Rebinding),
    ("localtest.me", BadHost::Rebinding),
    ("a.b.localtest.me", BadHost::Rebinding),
    ("x.lvh.me", BadHost::Rebinding),
];

#[test]
fn private_hosts_are_refused_unless_trusted() {
    for (host, rule) in PRIVATE_HOSTS {
        let url = format!("http://{host}");
        assert_eq!(judge(&url, false), Err(*rule), "{host}");
        assert_eq!(judge(&url, true), Ok(()), "{host} trusted");
    }
}

#[test]
fn metadata_services_are_refused_even_when_trusted() {
    for host in [
        "169.254.169.254",
        "169.254.169.0",
        "169.254.169.253",
        "169.254.170.2",
        "169.254.170.23",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "[fd00:ec2::254]",
        "[fd00:ec2::23]",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[::169.254.169.254]",
        "[::ffff:0:169.254.169.254]",
        "[64:ff9b::169.254.169.254]",
        "[64:ff9b:1::169.254.169.254]",
        "[64:ff9b::6464:64c8]",
        "[2002:a9fe:a9fe::]",
        "[2001:0:4136:e378:8000:63bf:5601:5601]",
        "[2606:4700::5efe:a9fe:a9fe]",
        "2852039166",
        "0xa9fea9fe",
        "0xA9FEA9FE",
        "025177524776",
        "0251.0376.0251.0376",
        "0251.254.169.254",
        "0xa9.0xfe.0xa9.0xfe",
        "169.0xfe.0251.254",
        "169.254.43518",
        "169.16689662",
        "169.254.169.0376",
        "2822734096",
        "metadata",
        "METADATA",
        "instance-data",
        "kubernetes",
        "metadata.google.internal",
        "x.metadata.google.internal",
        "metadata.azure.com",
        "vm.internal.cloudapp.net",
        "instance-data.ec2.internal",
        "ip-10-0-0-1.ec2.internal",
        "ip-10-0-0-1.us-west-2.compute.internal",
        "api.default.svc.cluster.local",
        "cluster.local",
        "consul",
        "web.service.consul",
    ] {
        let url = format!("http://{host}/latest/meta-data");
        assert_eq!(judge(&url, false), Err(BadHost::Metadata), "{host}");
        assert_eq!(judge(&url, true), Err(BadHost::Metadata), "{host} trusted");
    }
}

#[test]
fn a_listed_host_and_its_subdomains_are_trusted() {
    let guard = guard(&["Ollama.example.com", " 127.0.0.1", "::1", "[fd12::1]", "localhost", ""], &[]);
    for (host, trusted) in [
        ("ollama.example.com", true),
        ("gpu1.ollama.example.com", true),
        ("OLLAMA.example.com", true),
        ("notollama.example.com", false),
        ("example.com", false),
        ("127.0.0.1", true),
        ("127.0.0.2", false),
        ("[::1]", true),
        ("[0:0:0:0:0:0:0:1]", true),
        ("[fd12:0::1]", true),
        ("[fd12::2]", false),
        ("[::ffff:127.0.0.1]", false),
        ("localhost", true),
        ("a.localhost", true),
        ("2130706433", false),
    ] {
        assert_eq!(guard.is_trusted(&Host::parse(host).unwrap()), trusted, "{host}");
    }
}

#[test]
fn a_listed_entry_that_is_no_host_stops_the_start() {
    for entry in ["https://a.example", "a b", "a.example.", "10.0.0.0/8", "a.example:80", "[::1"] {
        let message = Guard::new(&[entry.to_owned()], &[]).unwrap_err().to_string();
        assert!(message.contains("TRUSTED_CUSTOM_HOSTS") && message.contains(entry), "{message}");
        let message = Guard::new(&[], &[entry.to_owned()]).unwrap_err().to_string();
        assert!(message.contains("OWN_HOSTNAMES"), "{message}");
    }
}

#[test]
fn own_names_are_matched_whole() {
    let guard = guard(&[], &["Gateway.example.com"]);
    assert!(guard.is_own(&Host::parse("gateway.EXAMPLE.com").unwrap()));
    assert!(!guard.is_own(&Host::parse("a.gateway.example.com").unwrap()));
}

fn refused_v4(address: Ipv4Addr) -> bool {
    check_address(IpAddr::V4(address), false).is_err()
}

/// Addresses inside the refused blocks, evenly over the blocks rather than over the address space.
fn private_v4() -> impl Strategy<Value = Ipv4Addr> {
    let nets: Vec<_> = ALWAYS
        .iter()
        .chain(PRIVATE)
        .filter_map(|net| if let IpNet::V4(net) = net { Some(*net) } else { None })
        .collect();
    (prop::sample::select(nets), any::<u32>())
        .prop_map(|(net, bits)| Ipv4Addr::from(u32::from(net.network()) | bits & u32::from(net.hostmask())))
}

#[derive(Debug, Clone, Copy)]
enum Base {
    Decimal,
    Octal,
    Hex,
}

fn write(value: u32, base: Base, zeros: usize) -> String {
    let pad = "0".repeat(zeros);
    match base {
        Base::Decimal => value.to_string(),
        Base::Octal => format!("0{pad}{value:o}"),
        Base::Hex => format!("0x{pad}{value:x}"),
    }
}

fn base() -> impl Strategy<Value = Base> {
    prop::sample::select(vec![Base::Decimal, Base::Octal, Base::Hex])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_spelling_of_a_private_ipv4_address_passes(
        address in private_v4(),
        bases in prop::array::uniform4(base()),
        zeros in prop::array::uniform4(0usize..3),
        parts in 1usize..=4,
        upper in any::<bool>(),
    ) {
        let value = u32::from(address);
        let octets = address.octets();
        let tail = if parts == 1 { value } else { value & (u32::MAX >> (8 * (parts as u32 - 1))) };
        let mut labels: Vec<String> = (0..parts - 1).map(|i| write(octets[i].into(), bases[i], zeros[i])).collect();
        labels.push(write(tail, bases[3], zeros[3]));
        let mut host = labels.join(".");
        if upper {
            host = host.to_uppercase();
        }
        let judged = judge(&format!("http://{host}/"), false);
        prop_assert!(judged.is_err(), "{host} passed for {address}");
        // And what it spells is read right, so that metadata stays refused under trust.
        if let Host::Name(name) = Host::parse(&host).unwrap() {
            prop_assert_eq!(legacy_ipv4(&name), Some(address));
        }
    }

    #[test]
    fn no_ipv6_disguise_of_a_private_ipv4_address_passes(address in private_v4(), form in 0usize..8, noise in any::<u32>()) {
        let [high, low] = [(u32::from(address) >> 16) as u16, u32::from(address) as u16];
        let (n1, n2) = ((noise >> 16) as u16, noise as u16);
        let segments = match form {
            0 => [0, 0, 0, 0, 0, 0xffff, high, low],
            1 => [0, 0, 0, 0, 0, 0, high, low],
            2 => [0, 0, 0, 0, 0xffff, 0, high, low],
            3 => [0x64, 0xff9b, 0, 0, 0, 0, high, low],
            4 => [0x64, 0xff9b, 1, n1, n2, 0, high, low],
            5 => [0x2002, high, low, n1, n2, 0, 0, 1],
            6 => [0x2001, 0, n1, n2, 0, 0, !high, !low],
            _ => [0x2606, 0x4700, n1, n2, 0x200, 0x5efe, high, low],
        };
        let v6 = Ipv6Addr::from(segments);
        let always = is_in(IpAddr::V4(address), ALWAYS);
        prop_assert!(check_address(IpAddr::V6(v6), false).is_err(), "{} passed", v6);
        prop_assert_eq!(check_address(IpAddr::V6(v6), true).is_err(), always, "{} trusted", v6);
        let url = format!("http://[{v6}]");
        prop_assert!(judge(&url, false).is_err());
    }

    #[test]
    fn ipv6_outside_global_unicast_never_passes(first in any::<u16>(), rest in any::<[u16; 7]>()) {
        let [b, c, d, e, f, g, h] = rest;
        let v6 = Ipv6Addr::new(first, b, c, d, e, f, g, h);
        let passed = check_address(IpAddr::V6(v6), false).is_ok();
        let nat64 = v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
        prop_assert!(!passed || first & 0xe000 == 0x2000 || nat64, "{} passed", v6);
    }

    #[test]
    fn the_guard_agrees_with_the_standard_library_on_ipv4(bits in any::<u32>()) {
        let v4 = Ipv4Addr::from(bits);
        let known = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_broadcast() || v4.is_multicast()
            || v4.is_documentation() || v4.is_unspecified();
        prop_assert!(!known || refused_v4(v4), "{} passed", v4);
    }

    #[test]
    fn no_text_makes_the_guard_panic(text in "\\PC{0,60}", host in "[0-9a-fx.:\\[\\]%-]{0,40}") {
        let _ = judge(&text, false);
        let _ = judge(&format!("https://{text}"), false);
        let _ = judge(&format!("https://{host}"), false);
    }
}

#[test]
fn a_whole_url_keeps_its_query_and_needs_tls_unless_its_host_is_listed() {
    let guard = guard(&["127.0.0.1"], &[]);
    for (url, found) in [
        ("https://keys.example.com/a/?p=1&q=/x", Ok("/a/?p=1&q=/x")),
        ("https://keys.example.com", Ok("/")),
        ("https://keys.example.com?p=1", Ok("/?p=1")),
        ("http://127.0.0.1:8080/keys", Ok("/keys")),
        ("http://keys.example.com/a", Err(BadHost::Plain)),
        ("https://keys.example.com/a#b", Err(BadHost::Query)),
        ("https://keys.example.com/a?b#c", Err(BadHost::Query)),
        ("https://10.0.0.1/keys", Err(BadHost::Private)),
        ("https://user@keys.example.com/", Err(BadHost::Credentials)),
    ] {
        let read = guard.custom_url(url).map(|(_, path)| path.to_string());
        assert_eq!(read, found.map(str::to_owned), "{url}");
    }
}
