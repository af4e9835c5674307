//! A provider's stream says the same in whatever pieces it comes, and is written to every dialect as events of JSON.
#![no_main]

use bytes::Bytes;
use fuzz::{answer_options, assert_json, chosen, pieces};
use libfuzzer_sys::fuzz_target;
use proxy::wire::codecs::{CODECS, Codec, CodecError, SseSink, WireEvent};
use proxy::wire::conversation::Delta;
use proxy::wire::sse::{Splitter, events};

fuzz_target!(|data: &[u8]| {
    let Some((codec, data)) = chosen(CODECS, data) else { return };
    let (whole, parts) = pieces(data);
    // Of these two, how they are cut decides how events are told apart.
    if whole.contains(&b'\r') || whole.windows(3).any(|bytes| bytes == b"\xef\xbb\xbf") {
        return;
    }
    let (deltas, ended) = read(codec, parts);
    let at_once = read(codec, std::iter::once(whole));
    assert_eq!((&deltas, &ended), (&at_once.0, &at_once.1));
    for client in CODECS {
        let mut sink = SseSink::default();
        let mut writer = client.stream_writer(answer_options(true));
        deltas.iter().for_each(|delta| writer.push(delta, &mut sink));
        writer.finish(&mut sink);
        for event in events(&sink.bytes).filter(|event| &*event.data != b"[DONE]") {
            assert_json(&event.data, client.name());
        }
    }
});

fn read<'p>(codec: &dyn Codec, parts: impl Iterator<Item = &'p [u8]>) -> (Vec<Delta>, Result<(), CodecError>) {
    let (mut splitter, mut reader, mut deltas) = (Splitter::default(), codec.stream_reader(), Vec::new());
    for part in parts {
        let out = splitter.push(Bytes::copy_from_slice(part)).expect("it is short");
        for event in events(&out) {
            let event = WireEvent { name: event.name.as_deref(), data: &event.data };
            if let Err(error) = reader.push(&event, &mut deltas) {
                return (deltas, Err(error));
            }
        }
    }
    let ended = reader.finish(&mut deltas);
    (deltas, ended)
}
