//! The frames of a websocket are found alike in whatever pieces they pass, and a session that is watched never stops.
#![no_main]

use fuzz::pieces;
use http::{HeaderMap, HeaderValue, header};
use libfuzzer_sys::fuzz_target;
use proxy::fuzzing::{FramePart, Frames};
use proxy::request::realtime::Websocket;

fn found<'d>(pieces: impl Iterator<Item = &'d [u8]>) -> (Vec<String>, bool) {
    let (mut frames, mut found) = (Frames::default(), Vec::new());
    for piece in pieces {
        frames.push(piece, |part: FramePart<'_>| found.push(format!("{part:?}")));
    }
    (found, frames.is_between_frames())
}

fuzz_target!(|data: &[u8]| {
    let (whole, parts) = pieces(data);
    assert_eq!(found(parts), found(std::iter::once(whole)));
    let mut head = HeaderMap::new();
    head.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    let mut session = Websocket::from_answer_head(&head).expect("it is a websocket");
    for (index, piece) in pieces(data).1.enumerate() {
        match index % 3 {
            0 => drop(session.client_sends(piece, |_| {})),
            _ => drop(session.provider_sends(piece, |_| {})),
        }
    }
    session.provider_ends();
    let _ = (session.farewell(), session.guess(), session.outcome());
});
