//! A caller's body in any dialect is refused, or written to every format as JSON.
#![no_main]

use fuzz::{assert_json, chosen};
use libfuzzer_sys::fuzz_target;
use proxy::wire::codecs::{CODECS, RequestOptions};

fuzz_target!(|data: &[u8]| {
    let Some((codec, body)) = chosen(CODECS, data) else { return };
    let Ok(request) = codec.read_request(body) else { return };
    for target in CODECS {
        for is_strict in [true, false] {
            let options = RequestOptions { model: Some("m"), is_strict, ..RequestOptions::default() };
            let mut out = Vec::new();
            if target.write_request(&request, &options, &mut out).is_ok() {
                assert_json(&out, target.name());
            }
        }
    }
});
