//! One line of an input file, read from where it stands, and the request that it asks for.

use super::StepFailure;
use crate::batches::files::{ManagedFile, ManagedFiles};
use crate::batches::record::BatchRecord;
use bytes::{Bytes, BytesMut};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use shared::batches::MAX_LINE;
use shared::log_store::file_part;

/// None when the file is gone.
pub async fn read_line(
    files: &ManagedFiles,
    batch: &BatchRecord,
    file: &ManagedFile,
    at: u64,
    bytes: u64,
) -> Result<Option<Bytes>, StepFailure> {
    let part_bytes = file.part_bytes.max(1);
    let end = at.saturating_add(bytes.min(MAX_LINE as u64)).min(file.bytes);
    let mut line = BytesMut::new();
    let mut next = at;
    while next < end {
        let part = next / part_bytes;
        let first = part * part_bytes;
        let until = end.min(first + part_bytes);
        let path = file_part(batch.owner.organisation, batch.owner.workspace, batch.input_file, part);
        let piece = files.store.get_range(&path, next - first..until - first).await;
        let Some(piece) = piece.map_err(StepFailure::because)? else { return Ok(None) };
        if next == at && until == end {
            return Ok(Some(piece));
        }
        line.extend_from_slice(&piece);
        next = until;
    }
    Ok(Some(line.freeze()))
}

#[derive(serde::Deserialize)]
struct RowBody<'r> {
    #[serde(borrow)]
    body: &'r RawValue,
}

/// The body of its request. An answer is one JSON object in a line, so nothing is streamed. None when the line is no longer
/// what was found good.
pub fn body(line: &Bytes) -> Option<Bytes> {
    let row: RowBody<'_> = serde_json::from_slice(line).ok()?;
    let text = row.body.get();
    if !text.contains("\"stream") {
        return Some(line.slice_ref(text.as_bytes()));
    }
    let mut fields: Map<String, Value> = serde_json::from_str(text).ok()?;
    for name in ["stream", "stream_options"] {
        fields.shift_remove(name);
    }
    serde_json::to_vec(&fields).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_sent_as_it_stands_but_never_streamed() {
        for (line, expected) in [
            (r#"{"custom_id":"a","body":{"model": "m","z":1.50}}"#, Some(r#"{"model": "m","z":1.50}"#)),
            (
                r#"{"body":{"b":1,"stream":true,"a":2,"stream_options":{"include_usage":true}},"url":"u"}"#,
                Some(r#"{"b":1,"a":2}"#),
            ),
            (r#"{"body":{"text":"a \"stream"}}"#, Some(r#"{"text":"a \"stream"}"#)),
            (r#"{"custom_id":"a"}"#, None),
            ("half a li", None),
        ] {
            let found = body(&Bytes::copy_from_slice(line.as_bytes()));
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{line}");
        }
    }
}
