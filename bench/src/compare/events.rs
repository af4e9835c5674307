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

/// Long streams tell how late events are.
const LONG: Set = Set { streams: 3, events: 30, apart: Duration::from_millis(4) };
/// Short ones bring many beginnings in little time. Each set has connections of its own: how they fall on the threads
/// of a target is chance, and one fall would be one sample.
const SHORT: Set = Set { streams: 10, events: 1, apart: Duration::from_millis(2) };
const SHORT_SETS: usize = 4;
const MARK: &[u8] = b"\"mock_sent_ns\":";
const DIGITS: usize = 19;

/// Microseconds: from sending the request to the first event, also when nobody else asks, and from an event's sending
/// to its arrival.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Delays {
    pub first_p50_us: f64,
    pub first_p99_us: f64,
    pub first_alone_us: f64,
    pub event_p50_us: f64,
    pub event_p99_us: f64,
}

/// What all of them show, in turns of a fraction of a second: a slow moment of the machine hits all of them.
pub fn measure(requests: &[Request], readers: usize) -> anyhow::Result<Vec<Delays>> {
    let mut seen: Vec<Seen> = requests.iter().map(|_| Seen::default()).collect();
    for (request, seen) in requests.iter().zip(&mut seen) {
        seen.long.extend(read(request, LONG, readers)?);
    }
    for _ in 0..SHORT_SETS {
        for (request, seen) in requests.iter().zip(&mut seen) {
            seen.short.extend(read(request, SHORT, readers)?);
            seen.alone.extend(read(request, SHORT, 1)?);
        }
    }
    seen.iter().map(Delays::of).collect()
}

/// The streams of one target.
#[derive(Default)]
struct Seen {
    long: Vec<Stream>,
    short: Vec<Stream>,
    alone: Vec<Stream>,
}

impl Delays {
    fn of(seen: &Seen) -> anyhow::Result<Self> {
        let at = |values: &[f64], share| percentile(values, share).context("no event arrived");
        let (firsts, alone) = (firsts(&seen.short), firsts(&seen.alone));
        let events = sorted(seen.long.iter().flat_map(|stream| stream.event_us.iter().copied()));
        Ok(Self {
            first_p50_us: at(&firsts, 0.5)?,
            first_p99_us: at(&firsts, 0.99)?,
            first_alone_us: at(&alone, 0.5)?,
            event_p50_us: at(&events, 0.5)?,
            event_p99_us: at(&events, 0.99)?,
        })
    }
}

fn firsts(streams: &[Stream]) -> Vec<f64> {
    sorted(streams.iter().map(|stream| stream.first_us))
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// So many streams of so many events, one after the other on a connection.
#[derive(Clone, Copy)]
struct Set {
    streams: usize,
    events: usize,
    apart: Duration,
}

struct Stream {
    first_us: f64,
    event_us: Vec<f64>,
}

fn read(request: &Request, set: Set, readers: usize) -> anyhow::Result<Vec<Stream>> {
    let read: anyhow::Result<Vec<Vec<Stream>>> = thread::scope(|scope| {
        let readers: Vec<_> = (0..readers).map(|_| scope.spawn(|| read_streams(request, set))).collect();
        readers.into_iter().map(|reader| reader.join().unwrap_or_else(|_| bail!("a reader panicked"))).collect()
    });
    let read = read.with_context(|| format!("streams through {}{}", request.address, request.path))?;
    Ok(read.into_iter().flatten().collect())
}

/// The set on one connection, which one stream more warms first.
fn read_streams(request: &Request, set: Set) -> anyhow::Result<Vec<Stream>> {
    let mut tcp = request.connect()?;
    let bytes = request.bytes_with(&stream_body(set.events, set.apart));
    let mut streams = Vec::with_capacity(set.streams);
    for number in 0..=set.streams {
        let start = Instant::now();
        tcp.write_all(&bytes)?;
        let stream = read_stream(&mut tcp, start, set.events)?;
        if number > 0 {
            streams.push(stream);
        }
    }
    Ok(streams)
}

fn read_stream(tcp: &mut impl Read, start: Instant, events: usize) -> anyhow::Result<Stream> {
    let mut stream = Stream { first_us: 0.0, event_us: Vec::with_capacity(events + 2) };
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
    if stream.event_us.len() != events + 2 {
        bail!("{} events instead of {}", stream.event_us.len(), events + 2);
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
            body: "".into(),
        };
        let delays = measure(&[request], 4).unwrap()[0];
        assert!(delays.event_p50_us > 0.0 && delays.event_p50_us <= delays.event_p99_us);
        assert!(delays.first_p50_us >= delays.event_p50_us / 2.0);
    }
}
