//! `GET /realtime`: a websocket that sends every message back. Just enough of RFC 6455 for a proxy to be proven
//! transparent: frames are unmasked and returned with their own opcode, pings become pongs, a close is returned.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::request::Parts;
use http::{Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::bill::{BillKey, reported};
use super::body::{Ending, Outgoing};
use super::counts::Outcome;
use super::state::Serving;
use super::wire::Link;

const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
/// A longer frame ends the connection: nothing here should need it.
const MAX_FRAME: u64 = 16 << 20;

pub fn upgrade(mut head: Parts, link: Arc<Link>, mut serving: Serving) -> Response<Outgoing> {
    let wants = head.headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let offered = head.headers.get(SEC_WEBSOCKET_PROTOCOL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let speaks_realtime = offered.split(',').any(|one| one.trim() == "realtime");
    let key = head.headers.get(SEC_WEBSOCKET_KEY).map(|key| accept(key.as_bytes()));
    let (Some(accept), Some(upgrade), true) = (key, head.extensions.remove::<OnUpgrade>(), wants) else {
        let ending = Ending::plain(link, Some(serving), Outcome::Error);
        let mut response = Response::new(Outgoing::whole(Bytes::from_static(b"websocket only"), ending));
        *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
        return response;
    };
    let state = link.state.clone();
    let mut response = Response::new(Outgoing::whole(Bytes::new(), Ending::plain(link, None, Outcome::Ok)));
    let asked = head.headers;
    // Of what the client lets the mock say, each end of a response is billed.
    let bill = move |payload: &[u8]| {
        if let Some(bill) = &state.bill
            && let Ok(event) = serde_json::from_slice::<Value>(payload)
            && event["type"] == "response.done"
            && let Some(key) = BillKey::find(&asked, payload)
        {
            bill.add(&key, reported(&event));
        }
    };
    tokio::spawn(async move {
        if let Ok(upgraded) = upgrade.await
            && echo(TokioIo::new(upgraded), bill).await.is_ok()
        {
            serving.ends(Outcome::Ok);
        }
    });
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if speaks_realtime {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("realtime"));
    }
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

fn accept(key: &[u8]) -> String {
    let salted = [key, b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"].concat();
    openssl::base64::encode_block(&openssl::sha::sha1(&salted))
}

/// Ends well only with a close frame.
async fn echo(mut io: impl AsyncRead + AsyncWrite + Unpin, heard: impl Fn(&[u8])) -> std::io::Result<()> {
    loop {
        let (first, mut payload) = read_frame(&mut io).await?;
        heard(&payload);
        let opcode = first & 0x0F;
        let first = if opcode == PING { (first & 0xF0) | PONG } else { first };
        let mut frame = frame_head(first, payload.len() as u64);
        frame.append(&mut payload);
        io.write_all(&frame).await?;
        io.flush().await?;
        if opcode == CLOSE {
            return io.shutdown().await;
        }
    }
}

/// The first byte (final flag and opcode) and the unmasked payload.
async fn read_frame(io: &mut (impl AsyncRead + Unpin)) -> std::io::Result<(u8, Vec<u8>)> {
    let mut start = [0; 2];
    io.read_exact(&mut start).await?;
    let length = match start[1] & 0x7F {
        126 => u64::from(io.read_u16().await?),
        127 => io.read_u64().await?,
        short => u64::from(short),
    };
    if length > MAX_FRAME {
        return Err(std::io::Error::other("frame too long"));
    }
    let mut mask = [0; 4];
    if start[1] & 0x80 != 0 {
        io.read_exact(&mut mask).await?;
    }
    let mut payload = vec![0; length as usize];
    io.read_exact(&mut payload).await?;
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    Ok((start[0], payload))
}

fn frame_head(first: u8, length: u64) -> Vec<u8> {
    let mut head = vec![first];
    match length {
        0..126 => head.push(length as u8),
        126..65_536 => {
            head.push(126);
            head.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            head.push(127);
            head.extend_from_slice(&length.to_be_bytes());
        }
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handshake_answers_as_the_standard_says() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[tokio::test]
    async fn frames_come_back_unmasked_until_the_close() {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let serving = tokio::spawn(echo(server, |_: &[u8]| {}));
        let masked = |first: u8, payload: &[u8]| {
            let mut frame = frame_head(first, payload.len() as u64);
            frame[1] |= 0x80;
            frame.extend_from_slice(&[1, 2, 3, 4]);
            frame.extend(payload.iter().zip([1, 2, 3, 4].iter().cycle()).map(|(byte, mask)| byte ^ mask));
            frame
        };
        for (first, payload, answered) in [
            (0x81, b"hello".to_vec(), 0x81),
            (0x82, vec![7; 300], 0x82),
            (0x82, vec![9; 70_000], 0x82),
            (0x80 | PING, b"p".to_vec(), 0x80 | PONG),
            (0x80 | CLOSE, vec![3, 232], 0x80 | CLOSE),
        ] {
            client.write_all(&masked(first, &payload)).await.unwrap();
            assert_eq!(read_frame(&mut client).await.unwrap(), (answered, payload));
        }
        assert!(serving.await.unwrap().is_ok());
    }
}
