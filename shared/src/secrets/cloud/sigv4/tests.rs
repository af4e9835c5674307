//! AWS's published vectors. Requests to Bedrock are held against botocore's signer in `tests/clients`.

use super::*;

const SCOPE: SigningScope<'_> = SigningScope { region: "us-east-1", service: "service" };

fn keys() -> AwsKeys {
    AwsKeys {
        id: "AKIDEXAMPLE".to_owned().into(),
        secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned().into(),
        session: None,
    }
}

type Vector<'v> = (&'v str, &'v str, &'v str, &'v [(&'v str, &'v str)], &'v [u8], &'v str);

/// From the test suite that AWS publishes; all of it was signed at this moment for `us-east-1/service`.
#[test]
fn the_published_examples_are_signed_as_published() {
    let now = "2015-08-30T12:36:00Z".parse().unwrap();
    let form = ("content-type", "application/x-www-form-urlencoded");
    let form_utf8 = ("content-type", "application/x-www-form-urlencoded; charset=utf8");
    let unreserved = "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let vectors: &[Vector<'_>] = &[
        ("GET", "/", "", &[], b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        (
            "GET",
            "/",
            "Param2=value2&Param1=value1",
            &[],
            b"",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        ("GET", "/", "Param1=value1", &[], b"", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"),
        ("GET", "/", "%E1%88%B4=bar", &[], b"", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
        ("GET", "/ሴ", "", &[], b"", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
        ("GET", unreserved, "", &[], b"", "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
        ("GET", "/example space/", "", &[], b"", "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"),
        ("GET", "/example/..", "", &[], b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("GET", "/./", "", &[], b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("GET", "/./example", "", &[], b"", "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5"),
        ("GET", "//example//", "", &[], b"", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
        (
            "GET",
            "/",
            "",
            &[("my-header1", " value1"), ("my-header2", " \"a   b   c\"")],
            b"",
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
        ),
        (
            "GET",
            "/",
            "",
            &[("my-header1", "value4"), ("my-header1", "value1"), ("my-header1", "value3"), ("my-header1", "value2")],
            b"",
            "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
        ),
        ("POST", "/", "", &[], b"", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "POST",
            "/",
            "",
            &[("my-header1", "VALUE1")],
            b"",
            "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
        ),
        (
            "POST",
            "/",
            "",
            &[form],
            b"Param1=value1",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        (
            "POST",
            "/",
            "",
            &[form_utf8],
            b"Param1=value1",
            "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe",
        ),
    ];
    for (method, path, query, own, body, signature) in vectors {
        let body = SignedBody::Whole(body);
        let request = RequestToSign { method, host: "example.amazonaws.com", path, query, headers: own, body };
        let added = headers(&request, &keys(), SCOPE, now);
        let value = &added.last().unwrap().1;
        assert!(value.ends_with(&format!("Signature={signature}")), "{method} {path}?{query} {own:?}: {value}");
        assert!(value.contains("Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request"));
    }
}

/// `post-sts-token/post-sts-header-before` of the same suite.
#[test]
fn a_session_is_sent_and_signed() {
    let token = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
    let keys = AwsKeys { session: Some(token.to_owned().into()), ..keys() };
    let request = Request { method: "POST", ..Request::get("https://example.amazonaws.com/".into()) };
    let signed = signed(request, &keys, SCOPE, "2015-08-30T12:36:00Z".parse().unwrap());
    let header = |name: &str| signed.headers.iter().find(|(one, _)| *one == name).map(|(_, value)| value.as_str());
    assert_eq!(header("x-amz-security-token"), Some(token));
    let signature = "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead";
    let expected = format!("SignedHeaders=host;x-amz-date;x-amz-security-token, Signature={signature}");
    assert!(header("authorization").unwrap().ends_with(&expected));
}

#[test]
fn a_body_that_nobody_reads_is_told_to_s3() {
    let scope = SigningScope { region: "us-east-1", service: "s3" };
    let body = SignedBody::Unsigned;
    let request = RequestToSign {
        method: "PUT",
        host: "b.s3.us-east-1.amazonaws.com",
        path: "/a%20b//c",
        query: "",
        headers: &[],
        body,
    };
    let added = headers(&request, &keys(), scope, "2015-08-30T12:36:00Z".parse().unwrap());
    assert!(added.contains(&("x-amz-content-sha256", "UNSIGNED-PAYLOAD".to_owned())));
    assert!(added.last().unwrap().1.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date,"));
}
