//! The bytes of a kept file, or some of them, passed on as the store gives them. The request is noted before the last piece
//! leaves, without what the file holds.

use crate::batches::files::{AskedRange, FileOwner, FileReader, ManagedFile, ManagedFiles, asked_range};
use crate::context::Visit;
use crate::context::metrics::Metrics;
use crate::engine::{Delivered, refuse};
use crate::net::downstream::{ClientGone, Downstream};
use crate::request::refusal::Refusal;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use pingora_http::ResponseHeader;
use std::ops::Range;

pub(crate) async fn send_file(
    metrics: &Metrics,
    client: &mut impl Downstream,
    visit: &mut Visit,
    files: &ManagedFiles,
    owner: FileOwner,
    file: &ManagedFile,
) -> Delivered {
    let asked = client.head().headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    let (status, range) = match asked_range(asked, file.bytes) {
        AskedRange::Whole => (StatusCode::OK, 0..file.bytes),
        AskedRange::Some(range) => (StatusCode::PARTIAL_CONTENT, range),
        AskedRange::Outside => return refuse(metrics, client, visit, &Refusal::range_not_satisfiable()).await,
    };
    let mut reader = FileReader::new(&files.store, owner, file, &range);
    // Before the head: a store that is away can still be told.
    let first = match reader.next_piece().await {
        Ok(first) => first.unwrap_or_default(),
        Err(away) => return refuse(metrics, client, visit, &away.into()).await,
    };
    let mut head = content_head(status, file, &range);
    visit.answer.status = status.as_u16();
    visit.stamp(&mut head);
    visit.answers(&head.headers);
    if client.write_head(head).await.is_err() {
        return Delivered::ClientGone;
    }
    pass(client, visit, &mut reader, first).await
}

async fn pass(
    client: &mut impl Downstream,
    visit: &mut Visit,
    reader: &mut FileReader<'_>,
    mut piece: Bytes,
) -> Delivered {
    loop {
        let is_last = reader.left() == 0;
        if is_last {
            visit.ends_with(&[]);
        }
        match client.write_body(piece, is_last).await {
            Err(ClientGone) => return Delivered::ClientGone,
            Ok(()) if is_last => return Delivered::Answered,
            Ok(()) => {}
        }
        piece = match reader.next_piece().await {
            Ok(Some(next)) => next,
            Ok(None) | Err(_) => return Delivered::Torn,
        };
    }
}

fn content_head(status: StatusCode, file: &ManagedFile, range: &Range<u64>) -> ResponseHeader {
    let mut head = ResponseHeader::build_no_case(status, Some(10)).expect("a status code is a status");
    let _ = head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let _ = head.insert_header(header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    let _ = head.insert_header(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let part = format!("bytes {}-{}/{}", range.start, range.end.saturating_sub(1), file.bytes);
    if let (StatusCode::PARTIAL_CONTENT, Ok(part)) = (status, HeaderValue::try_from(part)) {
        let _ = head.insert_header(header::CONTENT_RANGE, part);
    }
    if let Ok(name) = HeaderValue::try_from(format!("attachment; filename=\"{}\"", plain(&file.filename))) {
        let _ = head.insert_header(header::CONTENT_DISPOSITION, name);
    }
    // Whatever a tenant uploaded is no page of ours.
    let _ = head.insert_header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    head
}

/// The name as a header may quote it.
fn plain(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " ._-()".contains(letter);
    name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_quotes() {
        assert_eq!(plain("rows (1).jsonl"), "rows (1).jsonl");
        assert_eq!(plain("a\"; b=\"c\r\nd/é"), "a__ b__c__d__");
    }
}
