//! How late stream events arrive. The mock writes into each event when it sent it; a reader on the same machine
//! subtracts that from its own clock.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;

use super::request::{Request, stream_body};
use super::stats::percentile;
use crate::mock::now_ns;

const STREAMS: usize = 8;
const EVENTS: usize = 60;
const APART: Duration = Duration::from_millis(2);
const MARK: &[u8] = b"\"mock_sent_ns\":";
const DIGITS: usize = 19;

/// Microseconds: from sending the request to the first event, and from an event's sending to its arrival.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Delays {
    pub first_p50_us: f64,
    pub first_p99_us: f64,
    pub event_p50_us: f64,
    pub event_p99_us: f64,
}

/// Eight streams at once, so that connections are pooled and threads awake as in service.
pub fn measure(request: &Request) -> anyhow::Result<Delays> {
    let streams = thread::scope(|scope| {
        let readers: Vec<_> = (0..STREAMS).map(|_| scope.spawn(|| read_streams(request))).collect();
        readers.into_iter().map(|reader| reader.join().unwrap_or_else(|_| bail!("a reader panicked"))).collect()
    });
    let streams: Vec<Vec<Stream>> = streams_or_error(streams)?;
    let sorted = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values
    };
    let firsts = sorted(streams.iter().flatten().map(|stream| stream.first_us).collect());
    let events = sorted(streams.iter().flatten().flat_map(|stream| stream.event_us.iter().copied()).collect());
    let at = |values: &[f64], share| percentile(values, share).context("no event arrived");
    Ok(Delays {
        first_p50_us: at(&firsts, 0.5)?,
        first_p99_us: at(&firsts, 0.99)?,
        event_p50_us: at(&events, 0.5)?,
        event_p99_us: at(&events, 0.99)?,
    })
}

fn streams_or_error(streams: Vec<anyhow::Result<Vec<Stream>>>) -> anyhow::Result<Vec<Vec<Stream>>> {
    streams.into_iter().collect()
}

struct Stream {
    first_us: f64,
    event_us: Vec<f64>,
}

/// Four streams one after the other; the first only warms the connection.
fn read_streams(request: &Request) -> anyhow::Result<Vec<Stream>> {
    let mut tcp = request.connect()?;
    let bytes = request.bytes(&stream_body(EVENTS, APART));
    let mut streams = Vec::new();
    for _ in 0..4 {
        let start = Instant::now();
        tcp.write_all(&bytes)?;
        streams.push(read_stream(&mut tcp, start)?);
    }
    streams.remove(0);
    Ok(streams)
}

fn read_stream(tcp: &mut impl Read, start: Instant) -> anyhow::Result<Stream> {
    let mut stream = Stream { first_us: 0.0, event_us: Vec::with_capacity(EVENTS + 2) };
    let mut seen = Vec::with_capacity(1 << 16);
    let mut buffer = [0; 16384];
    let mut searched = 0;
    loop {
        let count = tcp.read(&mut buffer)?;
        let now = now_ns();
        if count == 0 {
            bail!("the stream ended early: {}", String::from_utf8_lossy(&seen));
        }
        seen.extend_from_slice(&buffer[..count]);
        while let Some((sent, behind)) = next_stamp(&seen, searched) {
            if stream.event_us.is_empty() {
                stream.first_us = start.elapsed().as_nanos() as f64 / 1e3;
            }
            stream.event_us.push(now.saturating_sub(sent) as f64 / 1e3);
            searched = behind;
        }
        if seen.ends_with(b"0\r\n\r\n") {
            break;
        }
    }
    // The role and the finish are events too.
    if stream.event_us.len() != EVENTS + 2 {
        bail!("{} events instead of {}", stream.event_us.len(), EVENTS + 2);
    }
    Ok(stream)
}

/// The next stamp from `from` on, and where it ends.
fn next_stamp(seen: &[u8], from: usize) -> Option<(u64, usize)> {
    let mark = seen[from..].windows(MARK.len()).position(|window| window == MARK)?;
    let digits = from + mark + MARK.len();
    let text = seen.get(digits..digits + DIGITS)?;
    Some((std::str::from_utf8(text).ok()?.parse().ok()?, digits + DIGITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_cut_in_two_waits_for_its_rest() {
        let text = b"x\"mock_sent_ns\":1794709823791351705}";
        assert_eq!(next_stamp(&text[..20], 0), None);
        assert_eq!(next_stamp(text, 0), Some((1_794_709_823_791_351_705, text.len() - 1)));
        assert_eq!(next_stamp(text, 3), None);
    }

    #[test]
    fn delays_of_the_mock_itself_are_read() {
        let mock = crate::mock::Mock::start(crate::mock::Options::default());
        let request = Request {
            address: mock.address(),
            path: "/v1/chat/completions",
            headers: vec![("authorization", "Bearer k".into())],
        };
        let delays = measure(&request).unwrap();
        assert!(delays.event_p50_us > 0.0 && delays.event_p50_us <= delays.event_p99_us);
        assert!(delays.first_p50_us >= delays.event_p50_us / 2.0);
    }
}
