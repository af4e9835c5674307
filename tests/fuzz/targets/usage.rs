//! What an answer in pieces says of its usage does not depend on how it is cut, and is nothing that stands further in.
#![no_main]

use fuzz::pieces;
use libfuzzer_sys::fuzz_target;
use proxy::limits::usage::UsageReader;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let (whole, parts) = pieces(data);
    let found = read(parts);
    let by_byte = read(whole.chunks(1));
    assert_eq!((&found.usage, &found.model), (&by_byte.usage, &by_byte.model));
    assert_eq!(found.service_tier, by_byte.service_tier);
    let mut at_once = UsageReader::default();
    at_once.plain(whole, true);
    let _ = at_once.told();
    let Ok(Value::Object(object)) = serde_json::from_slice(whole) else { return };
    let names = ["usage", "usageMetadata", "meta"];
    if !names.iter().any(|name| object.get(*name).is_some_and(Value::is_object)) {
        // A name that comes twice may have been an object the first time.
        let is_twice = names.iter().any(|name| {
            let written = format!("\"{name}\"");
            whole.windows(written.len()).filter(|bytes| *bytes == written.as_bytes()).count() > 1
        });
        assert!(is_twice || found.usage.is_empty(), "{:?}", found.usage);
    }
});

fn read<'p>(parts: impl Iterator<Item = &'p [u8]>) -> UsageReader {
    let mut reader = UsageReader::default();
    parts.for_each(|part| reader.plain(part, false));
    reader.plain(b"", true);
    reader
}
