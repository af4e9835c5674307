//! A provider's answer or refusal in any format is none, or is written to every dialect as JSON.
#![no_main]

use fuzz::{answer_options, assert_json, chosen};
use libfuzzer_sys::fuzz_target;
use proxy::wire::codecs::CODECS;

fuzz_target!(|data: &[u8]| {
    let Some((codec, body)) = chosen(CODECS, data) else { return };
    let answer = codec.read_answer(body).ok();
    let error = codec.read_error(429, None, body);
    for client in CODECS {
        for is_strict in [true, false] {
            let options = answer_options(is_strict);
            let mut out = Vec::new();
            client.write_error(&error, &options, &mut out);
            assert_json(&out, client.name());
            if let Some(answer) = &answer {
                out.clear();
                client.write_answer(answer, &options, &mut out);
                assert_json(&out, client.name());
            }
        }
    }
});
