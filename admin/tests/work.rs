//! What reading a stranger's bytes takes, held against their number: for every reader that is reached before, or by
//! little more than, a credential, the work of any input is at most some constant and so much for each byte. Work is counted
//! (allocations, bytes allocated, and for our own XML nodes, look-ups and bytes written), because a clock would measure
//! the machine. The shapes are those that hurt readers of their kind; between them stand ten thousand mixtures, each
//! made of its number alone.

use admin::http::{Query, schema_check};
use admin::identity::oidc::client::Tokens;
use admin::identity::oidc::discovery::Metadata;
use admin::resources::mcp_login::client_id::McpClient;
use admin::resources::mcp_login::request::LoginRequest;
use admin::resources::scim_filter;
use admin::saml::key::ServiceKey;
use admin::saml::message::ServiceProvider;
use admin::saml::metadata::{IdentityProvider, key_of};
use admin::saml::response::{self, Expected};
use admin::saml::work;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use openssl::encrypt::Encrypter;
use openssl::rsa::Padding;
use openssl::symm::{Cipher, encrypt_aead};
use serde_json::{Value, json};
use shared::config::{Strictness, parse_config};
use shared::guardrails;
use shared::identity::jwt::{Unverified, WebKeySet, looks_like_jwt};
use shared::outbound::Guard;
use shared::prompt::template::{Escape, Template, render};
use shared::settings::config_limits::ConfigLimits;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::sync::LazyLock;

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What an allocation is worth beside the bytes of it.
const ALLOCATION: u64 = 16;
const SIZES: [usize; 4] = [1 << 10, 8 << 10, 48 << 10, 190 << 10];
const MIXTURES: u64 = 10_000;

struct Reader {
    name: &'static str,
    read: fn(&[u8]),
    /// What any input may take, however short.
    base: u64,
    per_byte: u64,
    mixtures: u64,
    shapes: &'static [fn(usize) -> String],
    /// What mixtures are made of.
    pieces: &'static [&'static str],
    /// What mixtures stand in; `@` is their place.
    around: &'static str,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

static READERS: &[Reader] = &[
    Reader {
        name: "SAML",
        read: saml,
        base: 256 * KIB,
        per_byte: 512,
        mixtures: MIXTURES,
        shapes: &[
            |size| saml_with(&signed_info(&format!("<x PrefixList=\"{}\"/>", names(size)), "")),
            |size| saml_with(&signed_info(&prefix_list(size), "")),
            |size| saml_with(&signed_info("", &"<a/>".repeat(size / 4))),
            |size| saml_with(&signed_info(&prefix_list(size / 2), &nested(&"<a/>".repeat(size / 8)))),
            |size| saml_with(&nested(&"<n0:a n1:b='' n27:c=''/>".repeat(size / 24))),
            |size| saml_with(&format!("<a xmlns='{}'>{}</a>", "u".repeat(size / 2), "<b/>".repeat(size / 8))),
            |size| saml_with(&format!("<a xmlns='{}'>{}</a>", "u".repeat(1000), "<b/>".repeat(size / 4))),
            |size| {
                saml_with(&signed_info(
                    &format!("<a xmlns:z='{}'>{}</a>", "u".repeat(1000), "<z:b/>".repeat(50)),
                    &" ".repeat(size),
                ))
            },
            |size| saml_with(&wide_elements(size)),
            |size| saml_with(&"x<!-- y -->".repeat(size / 11)),
            |size| saml_with(&"&#65;<![CDATA[x]]>".repeat(size / 18)),
            |size| saml_with(&"<ds:Signature/>".repeat(size / 15)),
            |size| "<a>".repeat(size / 3),
            |size| "&".repeat(size),
        ],
        pieces: &[
            "<a>",
            "</a>",
            "<ds:Signature>",
            "</ds:Signature>",
            "<ds:SignedInfo>",
            "</ds:SignedInfo>",
            " ",
            "x",
            "&amp;",
            "<ds:Reference URI='#_r'>",
            "</ds:Reference>",
            "<ds:SignatureValue>AAAA</ds:SignatureValue>",
            "<!-- -->",
            "<b xmlns:p='urn:p' p:q='1'>",
            "</b>",
            "<saml:Assertion>",
            "</saml:Assertion>",
            "<![CDATA[<]]>",
            "&#x41;",
            "<ds:CanonicalizationMethod Algorithm='http://www.w3.org/2001/10/xml-exc-c14n#'/>",
            "<",
            ">",
            "\"",
            "'",
        ],
        around: "",
    },
    Reader {
        name: "SAML, encrypted for us",
        read: saml_hidden,
        base: 512 * KIB,
        per_byte: 640,
        // Each is an operation with a private key.
        mixtures: MIXTURES / 20,
        shapes: &[
            |size| asserted(&signed_info(&prefix_list(size), "")),
            |size| asserted(&signed_info("", &"<a/>".repeat(size / 4))),
            |size| asserted(&signed_info(&prefix_list(size / 2), &nested(&"<a/>".repeat(size / 8)))),
            |size| asserted(&nested(&"<n0:a n1:b='' n27:c=''/>".repeat(size / 24))),
            |size| asserted(&wide_elements(size)),
            |size| asserted(&"&#65;<![CDATA[x]]>".repeat(size / 18)),
            |size| asserted(&"<saml:EncryptedAssertion/>".repeat(size / 26)),
            |size| "<a>".repeat(size / 3),
            |size| "\0".repeat(size),
        ],
        pieces: &[
            "<a>",
            "</a>",
            "<ds:Signature>",
            "</ds:Signature>",
            "<saml:Assertion>",
            "</saml:Assertion>",
            "<saml:EncryptedAssertion/>",
            "<b xmlns:p='urn:p' p:q='1'>",
            "</b>",
            "&#x41;",
            "x",
            "<",
        ],
        around: "@",
    },
    Reader {
        name: "SAML, with many wrapped keys",
        read: saml,
        base: 256 * KIB,
        per_byte: 512,
        mixtures: MIXTURES,
        shapes: &[
            |size| saml_with(&"<saml:EncryptedAssertion/>".repeat(size / 26)),
            |size| saml_with(&encrypted(&wrapped_key("AAAA").repeat(size / 500), "AAAA", "")),
            |size| saml_with(&encrypted(&wrapped_key("AAAA"), &"A".repeat(size), "")),
            |size| saml_with(&encrypted(&wrapped_key(&"A".repeat(size)), "AAAA", "")),
            |size| saml_with(&encrypted(&wrapped_key("AAAA"), "AAAA", &wrapped_key("AAAA").repeat(size / 500))),
        ],
        pieces: &[
            "<saml:EncryptedAssertion>",
            "</saml:EncryptedAssertion>",
            "<xenc:EncryptedData xmlns:xenc='http://www.w3.org/2001/04/xmlenc#'>",
            "</xenc:EncryptedData>",
            "<xenc:CipherData xmlns:xenc='http://www.w3.org/2001/04/xmlenc#'>",
            "</xenc:CipherData>",
            "AAAA",
        ],
        around: "",
    },
    Reader {
        name: "JWT",
        read: jwt,
        base: 32 * KIB,
        per_byte: 256,
        mixtures: MIXTURES,
        shapes: &[
            |size| token(&json_list(size)),
            |size| token(&json_keys(size)),
            |size| token(&"[".repeat(size)),
            |size| ".".repeat(size),
            |size| "eyJ".repeat(size / 3),
        ],
        pieces: &["eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ", ".", "e30", "W10", "=", "A", "eyJ"],
        around: "@",
    },
    Reader {
        name: "answers of OIDC",
        read: oidc,
        base: 32 * KIB,
        per_byte: 512,
        mixtures: MIXTURES,
        shapes: &[
            json_list,
            json_keys,
            |size| "[".repeat(size),
            |size| {
                format!(
                    "{{\"keys\":[{}]}}",
                    vec![r#"{"kty":"RSA","kid":"a","n":"AQAB","e":"AQAB"}"#; size / 46 + 1].join(",")
                )
            },
            |size| format!("{{\"issuer\":\"https://id.test\",\"jwks_uri\":\"https://{}\"}}", "x".repeat(size)),
        ],
        pieces: &["{", "}", "[", "]", ",", ":", "\"keys\"", "\"issuer\"", "\"a\"", "1e999", "\"\\ud800\"", "null", " "],
        around: "@",
    },
    Reader {
        name: "filters of SCIM",
        read: scim,
        base: 32 * KIB,
        per_byte: 256,
        mixtures: MIXTURES,
        shapes: &[
            |size| "(".repeat(size),
            |size| vec!["a pr"; size / 8 + 1].join(" or "),
            |size| format!("{}[b pr]", "a".repeat(size)),
            |size| format!("{}[{}]", "a".repeat(size / 2), vec!["b pr"; size / 16 + 1].join(" or ")),
            |size| format!("a eq \"{}\"", "\\u0041".repeat(size / 6)),
            |size| format!("a{}pr", " ".repeat(size)),
            |size| format!("{}a pr{}", "not (".repeat(size / 6), ")".repeat(size / 6)),
        ],
        pieces: &[
            "a", " pr", " eq ", "\"x\"", "(", ")", "[", "]", "not ", " and ", " or ", " ", "\\", "\"", "1e9", ".",
        ],
        around: "@",
    },
    Reader {
        name: "registrations of OAuth",
        read: oauth,
        base: 64 * KIB,
        per_byte: 512,
        mixtures: MIXTURES,
        shapes: &[
            json_list,
            json_keys,
            |size| json!({ "client_name": "n".repeat(size), "redirect_uris": ["https://a.test/"] }).to_string(),
            |size| json!({ "redirect_uris": vec!["https://a.test/cb"; size / 20 + 1] }).to_string(),
            |size| json!({ "redirect_uris": [format!("https://a.test/{}", "%41".repeat(size / 3))] }).to_string(),
            |size| format!("client_id=mcp_{}&state={}", "A".repeat(size / 2), "%41".repeat(size / 6)),
            |size| "a=b&".repeat(size / 4),
        ],
        pieces: &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"redirect_uris\"",
            "\"https://a.test\"",
            "&",
            "=",
            "client_id",
            "%41",
        ],
        around: "@",
    },
    Reader {
        name: "templates",
        read: template,
        // Of the budget that filling in has.
        base: 16 * MIB,
        per_byte: 512,
        mixtures: MIXTURES,
        shapes: &[
            |size| "{{a}}".repeat(size / 5),
            |size| "{{#l}}".repeat(size / 6),
            |size| format!("{}{}", "{{#l}}".repeat(size / 12), "{{/l}}".repeat(size / 12)),
            |size| format!("{}{{{{a}}}}{}", "{{#l}}".repeat(30), "{{/l}}".repeat(30)) + &" ".repeat(size),
            |size| "{{=<% %>=}}<%={{ }}=%>".repeat(size / 22),
            |size| "{{!".repeat(size / 3),
            |size| format!("{{{{{}}}}}", "a.".repeat(size / 2)),
        ],
        pieces: &[
            "{{a}}",
            "{{#l}}",
            "{{/l}}",
            "{{^l}}",
            "{{>p}}",
            "{{!",
            "}}",
            "{{=<% %>=}}",
            "<%a%>",
            "\n",
            "{{o.a}}",
            "{{{",
        ],
        around: "@",
    },
    Reader {
        name: "configs",
        read: config,
        // The patterns of one config, each as large as one may be.
        base: 128 * MIB,
        per_byte: 2 * KIB,
        mixtures: MIXTURES,
        shapes: &[
            json_list,
            json_keys,
            |size| {
                json!({ "strategy": { "mode": "fallback" }, "targets": vec![json!({ "provider": "openai" }); size / 22 + 1] }).to_string()
            },
            |size| format!("{}{}", "{\"targets\":[".repeat(size / 14), "]}".repeat(size / 14)),
            |size| conditions(r"\\w{200}", size),
            |size| conditions(r"(((a{40}){40}){40}){40}", size),
            |size| conditions(&"(a|b)*".repeat(100), size),
        ],
        pieces: &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"targets\"",
            "\"strategy\"",
            "\"mode\"",
            "\"conditional\"",
            "\"query\"",
            "\"$regex\"",
            "\"$and\"",
            "\"\\\\w{99}\"",
            "1",
            "null",
        ],
        around: "@",
    },
    Reader {
        name: "bodies of the control plane",
        read: body,
        // What is told of fifty names that are not known.
        base: 8 * MIB,
        per_byte: KIB,
        mixtures: MIXTURES,
        shapes: &[
            json_list,
            json_keys,
            |size| format!("{{\"map\":{}}}", json_keys(size)),
            |size| format!("{{\"map\":{{\"{}\":{}}}}}", "n".repeat(size / 2), json_keys(size / 2)),
            |size| "[".repeat(size),
        ],
        pieces: &["{", "}", "[", "]", ",", ":", "\"map\"", "\"name1\"", "\"nam\"", "1", "null", "\"x\""],
        around: "@",
    },
    Reader {
        name: "patterns",
        read: pattern,
        base: 8 * MIB,
        per_byte: KIB,
        mixtures: MIXTURES,
        shapes: &[
            |size| "a".repeat(size),
            |size| "(".repeat(size),
            |size| format!("{}{}", "(".repeat(size / 2), ")".repeat(size / 2)),
            |size| r"\w{100}".repeat(size / 7),
            |_| "(((a{50}){50}){50}){50}".to_owned(),
            |_| r"(\p{L}{9}){999}".to_owned(),
            |size| "(?i)ß|".repeat(size / 7),
            |size| "[a-z&&[^b]]".repeat(size / 11),
        ],
        pieces: &[
            "(", ")", "a", "*", "+", "?", "{9}", "{9,99}", "|", "[", "]", "^", "\\w", "\\b", "\\p{L}", "(?:", "(?i)",
            ".", "\\1",
        ],
        around: "@",
    },
];

/// One test, so that nothing else allocates meanwhile.
#[test]
fn no_reader_works_more_than_so_much_for_each_byte() {
    // What is made once is nobody's work.
    let _ = (&*PROVIDER, &*OURS, &*SCHEMA);
    for reader in READERS {
        let mut inputs: Vec<String> = Vec::new();
        for shape in reader.shapes {
            inputs.extend(SIZES.iter().map(|size| shape(*size)));
        }
        let hold = |input: &str| {
            let taken = work_of(reader, input.as_bytes());
            let bound = reader.base + reader.per_byte * input.len() as u64;
            let begin: String = input.chars().take(200).collect();
            assert!(taken <= bound, "{}: {taken} for {} bytes: {begin}", reader.name, input.len());
        };
        inputs.iter().for_each(|input| hold(input));
        (0..reader.mixtures).for_each(|number| hold(&mixture(reader, number)));
    }
}

fn work_of(reader: &Reader, input: &[u8]) -> u64 {
    let region = Region::new(COUNTING);
    let ((), steps) = work::counted(|| (reader.read)(input));
    let change = region.change();
    let grown = u64::try_from(change.bytes_reallocated).unwrap_or_default();
    let allocations = (change.allocations + change.reallocations) as u64;
    change.bytes_allocated as u64 + grown + allocations * ALLOCATION + steps
}

fn mixture(reader: &Reader, number: u64) -> String {
    let mut state = number;
    let mut below = |limit: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap_or_default()
    };
    let count = below(120);
    let pieces: String = (0..count).map(|_| reader.pieces[below(reader.pieces.len())]).collect();
    match reader.around {
        "" => saml_with(&pieces),
        around => around.replace('@', &pieces),
    }
}

// The readers.

static PROVIDER: LazyLock<IdentityProvider> = LazyLock::new(|| {
    let certificate = ServiceKey::generate("idp").expect("a key is made").certificate_base64();
    let base = "urn:oasis:names:tc:SAML:2.0";
    let metadata = format!(
        "<EntityDescriptor xmlns=\"{base}:metadata\" entityID=\"urn:idp\"><IDPSSODescriptor \
         protocolSupportEnumeration=\"{base}:protocol\"><KeyDescriptor><KeyInfo xmlns=\"{DSIG}\"><X509Data>\
         <X509Certificate>{certificate}</X509Certificate></X509Data></KeyInfo></KeyDescriptor><SingleSignOnService \
         Binding=\"{base}:bindings:HTTP-Redirect\" Location=\"https://idp.test/sso\"/></IDPSSODescriptor>\
         </EntityDescriptor>"
    );
    IdentityProvider::parse(metadata.as_bytes()).expect("it is metadata")
});

static OURS: LazyLock<Vec<ServiceKey>> =
    LazyLock::new(|| vec![ServiceKey::generate("gateway").expect("a key is made")]);

/// What anybody encrypts for our certificate, which is public, in a response that nobody signed.
fn saml_hidden(content: &[u8]) {
    const SECRET: [u8; 32] = [7; 32];
    static WRAPPED: LazyLock<String> = LazyLock::new(|| {
        let public = key_of(&OURS[0].certificate_base64()).expect("the certificate has a key");
        let mut encrypter = Encrypter::new(&public).expect("RSA encrypts");
        encrypter.set_rsa_padding(Padding::PKCS1_OAEP).expect("OAEP is known");
        let mut wrapped = vec![0; encrypter.encrypt_len(&SECRET).expect("a length")];
        let length = encrypter.encrypt(&SECRET, &mut wrapped).expect("a key is wrapped");
        STANDARD.encode(&wrapped[..length])
    });
    let (nonce, mut tag) = ([3u8; 12], [0u8; 16]);
    let sealed = encrypt_aead(Cipher::aes_256_gcm(), &SECRET, Some(&nonce), &[], content, &mut tag);
    let sealed = STANDARD.encode([&nonce[..], &sealed.expect("AES encrypts"), &tag].concat());
    saml(saml_with(&encrypted(&wrapped_key(&WRAPPED), &sealed, "")).as_bytes());
}

fn saml(xml: &[u8]) {
    let _ = response::claimed_request(xml);
    let to = ServiceProvider { entity_id: "urn:us".into(), consumer_url: "https://gateway.test/acs".into() };
    let now = DateTime::<Utc>::from_timestamp(1_768_473_000, 0).unwrap_or_default();
    let expected = Expected { from: &PROVIDER, to: &to, request_id: "_1", keys: &OURS, wants_encrypted: false, now };
    assert!(response::believed(xml, &expected).is_err());
    let _ = IdentityProvider::parse(xml);
}

fn jwt(text: &[u8]) {
    let _ = looks_like_jwt(text);
    let _ = Unverified::parse(text);
}

fn oidc(body: &[u8]) {
    let _ = Metadata::parse(body, "https://id.test", &Guard::default());
    let _ = serde_json::from_slice::<Tokens>(body).is_ok();
    let _ = WebKeySet::parse(body);
}

fn scim(text: &[u8]) {
    let _ = scim_filter::parse(&String::from_utf8_lossy(text));
}

fn oauth(body: &[u8]) {
    if let Ok(asked) = serde_json::from_slice::<Value>(body)
        && let Ok(client) = McpClient::register(&asked)
    {
        assert!(McpClient::parse(&client.id()).is_some());
    }
    let text = String::from_utf8_lossy(body);
    let _ = McpClient::parse(&text);
    if let Ok(query) = Query::parse(Some(&text)) {
        let _ = LoginRequest::parse(&query, "https://gateway.test");
    }
}

fn template(text: &[u8]) {
    let Ok(template) = Template::parse(&String::from_utf8_lossy(text)) else { return };
    let _ = template.components();
    let list = json!({ "a": "x", "l": [1, 2, 3], "o": { "a": "y" } });
    let _ = render(&template, &list, &(), Escape::JsonText);
}

fn config(text: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(text) else { return };
    let _ = parse_config(&value, Strictness::Inline, &ConfigLimits::default().inline());
}

/// Sixty fields, and a map whose names the client chooses.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut fields: serde_json::Map<String, Value> =
        (0..60).map(|n| (format!("name{n}"), json!({ "type": "string" }))).collect();
    let numbers = json!({ "type": "object", "additionalProperties": { "type": "number" } });
    fields.insert("map".into(), json!({ "type": "object", "additionalProperties": numbers }));
    json!({ "type": "object", "properties": fields, "additionalProperties": false })
});

fn body(text: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(text) else { return };
    let _ = schema_check::check(&SCHEMA, &value, |_| false);
}

fn pattern(text: &[u8]) {
    let rule = String::from_utf8_lossy(text).into_owned();
    let _ = guardrails::compile("default.regexMatch", &json!({ "rule": rule }));
}

// The shapes.

const DSIG: &str = "http://www.w3.org/2000/09/xmldsig#";
const XENC: &str = "http://www.w3.org/2001/04/xmlenc#";
const EXCLUSIVE: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";

/// A response that is for us, says success, and has this inside of it.
fn saml_with(inside: &str) -> String {
    let base = "urn:oasis:names:tc:SAML:2.0";
    format!(
        "<p:Response xmlns:p=\"{base}:protocol\" xmlns:ds=\"{DSIG}\" xmlns:saml=\"{base}:assertion\" Version=\"2.0\" ID=\"_r\" \
         Destination=\"https://gateway.test/acs\" InResponseTo=\"_1\"><p:Status><p:StatusCode \
         Value=\"{base}:status:Success\"/></p:Status>{inside}</p:Response>"
    )
}

fn asserted(inside: &str) -> String {
    let base = "urn:oasis:names:tc:SAML:2.0:assertion";
    format!("<saml:Assertion xmlns:saml=\"{base}\" xmlns:ds=\"{DSIG}\" ID=\"_a\">{inside}</saml:Assertion>")
}

/// An encrypted assertion: its wrapped keys, its content, and what stands beside that.
fn encrypted(keys: &str, content: &str, beside: &str) -> String {
    format!(
        "<saml:EncryptedAssertion xmlns:xenc=\"{XENC}\"><xenc:EncryptedData><xenc:EncryptionMethod \
         Algorithm=\"http://www.w3.org/2009/xmlenc11#aes256-gcm\"/><ds:KeyInfo>{keys}</ds:KeyInfo><xenc:CipherData>\
         <xenc:CipherValue>{content}</xenc:CipherValue></xenc:CipherData></xenc:EncryptedData>{beside}\
         </saml:EncryptedAssertion>"
    )
}

fn wrapped_key(value: &str) -> String {
    format!(
        "<xenc:EncryptedKey><xenc:EncryptionMethod Algorithm=\"{XENC}rsa-oaep-mgf1p\"/><xenc:CipherData>\
         <xenc:CipherValue>{value}</xenc:CipherValue></xenc:CipherData></xenc:EncryptedKey>"
    )
}

/// A signature of algorithms that are taken, with this in its `CanonicalizationMethod` and this behind.
fn signed_info(inside: &str, behind: &str) -> String {
    format!(
        "<ds:Signature><ds:SignedInfo><ds:CanonicalizationMethod Algorithm=\"{EXCLUSIVE}\">{inside}\
         </ds:CanonicalizationMethod><ds:SignatureMethod Algorithm=\"http://www.w3.org/2001/04/xmldsig-more#rsa-sha256\"/>\
         <ds:Reference URI=\"#_r\"><ds:Transforms><ds:Transform Algorithm=\"{DSIG}enveloped-signature\"/><ds:Transform \
         Algorithm=\"{EXCLUSIVE}\"/></ds:Transforms><ds:DigestMethod \
         Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"/><ds:DigestValue>AAAA</ds:DigestValue></ds:Reference>{behind}\
         </ds:SignedInfo><ds:SignatureValue>AAAA</ds:SignatureValue></ds:Signature>"
    )
}

fn names(size: usize) -> String {
    (0..size / 5).map(|n| format!("p{n:03x} ")).collect()
}

fn prefix_list(size: usize) -> String {
    format!("<InclusiveNamespaces xmlns=\"{EXCLUSIVE}\" PrefixList=\"{}\"/>", names(size))
}

/// As deep as may be, with as many declarations as may be on each level.
fn nested(inside: &str) -> String {
    let declared: String = (0..28).map(|n| format!(" xmlns:n{n}='urn:{n}'")).collect();
    format!("{}{inside}{}", format!("<b{declared}>").repeat(20), "</b>".repeat(20))
}

/// Elements with as many attributes as may be, each of another long namespace.
fn wide_elements(size: usize) -> String {
    let declared: String = (0..30).map(|n| format!(" xmlns:w{n}='{}{n}'", "u".repeat(900))).collect();
    let one: String = (0..30).map(|n| format!(" w{n}:x=''")).collect();
    format!("<b{declared}>{}</b>", format!("<c{one}/>").repeat(size / 260))
}

fn token(json: &str) -> String {
    let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","kid":"a"}"#);
    format!("{head}.{}.AAAA", URL_SAFE_NO_PAD.encode(json))
}

fn json_list(size: usize) -> String {
    format!("{{\"a\":[{}]}}", vec!["{}"; size / 3 + 1].join(","))
}

fn json_keys(size: usize) -> String {
    let fields: Vec<String> = (0..size / 10).map(|n| format!("\"k{n:04x}\":0")).collect();
    format!("{{{}}}", fields.join(","))
}

fn conditions(pattern: &str, size: usize) -> String {
    let one = json!({ "query": { "metadata.a": { "$regex": pattern } }, "then": "a" });
    let count = size / one.to_string().len() + 1;
    json!({
        "strategy": { "mode": "conditional", "conditions": vec![one; count], "default": "a" },
        "targets": [{ "name": "a", "provider": "openai" }],
    })
    .to_string()
}
