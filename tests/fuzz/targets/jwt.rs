//! Any text in the place of a token is refused; none is believed without a key that signed it.
#![no_main]

use chrono::DateTime;
use clap::{CommandFactory as _, FromArgMatches as _};
use libfuzzer_sys::fuzz_target;
use shared::settings;
use shared::identity::jwt::{TokenRules, Unverified, VerifiedToken, WebKeySet, looks_like_jwt};
use std::sync::LazyLock;

#[derive(clap::Parser)]
struct Settings {
    #[command(flatten)]
    jwt: settings::Jwt,
}

static SETTINGS: LazyLock<settings::Jwt> = LazyLock::new(|| {
    let matches = Settings::command().get_matches_from(["fuzz"]);
    Settings::from_arg_matches(&matches).expect("every setting has a default").jwt
});

fuzz_target!(|data: &[u8]| {
    let now = DateTime::from_timestamp(1_768_473_000, 0).expect("it is a time");
    let _ = looks_like_jwt(data);
    if let Ok(token) = Unverified::parse(data) {
        let _ = token.organisation_id(&SETTINGS);
        if let Ok(keys) = WebKeySet::parse(br#"{"keys":[]}"#) {
            assert!(token.verify(&keys, &TokenRules::default(), &SETTINGS, now).is_err());
        }
    }
    // The claims themselves, and the sets of keys that organisations name, are foreign too.
    if let Ok(serde_json::Value::Object(claims)) = serde_json::from_slice(data) {
        let _ = VerifiedToken::from_claims(&claims, &SETTINGS, now);
    }
    let _ = WebKeySet::parse(data);
});
