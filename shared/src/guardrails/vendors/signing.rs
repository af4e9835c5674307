//! The credential in the head of a call: the only place where it stands.

use super::super::remote::RemoteCall;
use super::super::verdict::Verdict;
use super::places::{Places, text_of};
use super::wire::Auth;
use crate::secrets::cloud::AwsKeys;
use crate::secrets::cloud::sigv4;
use crate::secrets::cloud::sigv4::{RequestToSign, SignedBody, SigningScope};
use crate::secrets::seal::Secret;
use chrono::DateTime;

pub fn authorise(call: &mut RemoteCall, auth: Auth, places: &Places<'_>) -> Result<(), Box<Verdict>> {
    match auth {
        Auth::None => Ok(()),
        Auth::Bearer(field) => call.put_secret("authorization", &format!("Bearer {}", stored(places, &[field])?)),
        Auth::Header(name, field) => call.put_secret(name, &stored(places, &[field])?),
        Auth::Azure(group) => match stored(places, &[&format!("{group}.apiKey"), "apiKey"]) {
            Ok(key) => call.put_secret("ocp-apim-subscription-key", &key),
            Err(missing) => {
                let token = stored(places, &[&format!("{group}.accessToken"), "accessToken"]).map_err(|_| missing)?;
                call.put_secret("authorization", &format!("Bearer {token}"))
            }
        },
        Auth::Aws => sign(call, places),
    }
}

/// A field of the credentials by one of its names.
fn stored(places: &Places<'_>, names: &[&str]) -> Result<String, Box<Verdict>> {
    let found = names.iter().find_map(|name| text_of(&places.find(&format!("c.{name}"))?));
    found.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).ok_or_else(|| {
        let wanted = names.first().copied().unwrap_or_default();
        Verdict::error("BadCredentials", format!("the stored credentials of this vendor lack `{wanted}`")).into()
    })
}

fn sign(call: &mut RemoteCall, places: &Places<'_>) -> Result<(), Box<Verdict>> {
    let session = stored(places, &["awsSessionToken"]).ok();
    let keys = AwsKeys {
        id: Secret::from(stored(places, &["awsAccessKeyId", "accessKeyId"])?.into_bytes()),
        secret: Secret::from(stored(places, &["awsSecretAccessKey", "accessKeySecret"])?.into_bytes()),
        session: session.map(|token| Secret::from(token.into_bytes())),
    };
    let region = stored(places, &["awsRegion", "region"])?;
    let rest = call.url.strip_prefix("https://").unwrap_or(&call.url);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let request = RequestToSign {
        method: "POST",
        host,
        path,
        query: "",
        headers: &[("content-type", "application/json")],
        body: SignedBody::Whole(&call.body),
    };
    let now = DateTime::from_timestamp(places.subject.now, 0).unwrap_or_default();
    let added = sigv4::headers(&request, &keys, SigningScope { region: &region, service: "bedrock" }, now);
    for (name, value) in added {
        // The dialer says whom it asks.
        if name != "host" {
            call.put_secret(name, &value)?;
        }
    }
    Ok(())
}
