//! The TXT records of a domain, by which an organisation proves that it is its own. One question to the resolver that the
//! operator has set, over UDP, and over TCP when the answer does not fit. Answers are read within bounds and believed as
//! far as that resolver is.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

const TIME: Duration = Duration::from_secs(3);
const TRIES: usize = 2;
const TXT: u16 = 16;
const INTERNET: u16 = 1;
/// Records read from one answer.
const MAX_RECORDS: u16 = 200;
/// Jumps while a compressed name is passed.
const MAX_NAME: usize = 128;

/// Asks for the TXT records of a domain. In words why not, if there is no answer; a domain without records has none.
pub async fn lookup(server: Option<SocketAddr>, domain: &str) -> Result<Vec<String>, String> {
    let server = match server {
        Some(server) => server,
        None => system_server().await,
    };
    let id: u16 = rand::random();
    let question = question(id, domain).ok_or("it is no domain name")?;
    for _ in 0..TRIES {
        if let Ok(Ok(answer)) = tokio::time::timeout(TIME, ask(server, &question, id)).await {
            return records(&answer);
        }
    }
    Err("the DNS server did not answer".to_owned())
}

async fn system_server() -> SocketAddr {
    let file = tokio::fs::read_to_string("/etc/resolv.conf").await.unwrap_or_default();
    let named = file.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    let address = named.filter_map(|rest| rest.trim().parse::<IpAddr>().ok()).next();
    SocketAddr::new(address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), 53)
}

/// The system gives the socket a port that nobody can guess, which together with the id keeps forged answers out.
async fn ask(server: SocketAddr, question: &[u8], id: u16) -> std::io::Result<Vec<u8>> {
    let local: SocketAddr = if server.is_ipv4() { ([0u8; 4], 0u16).into() } else { ([0u8; 16], 0u16).into() };
    let socket = UdpSocket::bind(local).await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut buffer = vec![0; 4096];
    loop {
        let length = socket.recv(&mut buffer).await?;
        let answer = &buffer[..length];
        if !answers(answer, question, id) {
            continue;
        }
        let is_cut = answer[2] & 0x02 != 0;
        return if is_cut { ask_by_tcp(server, question, id).await } else { Ok(answer.to_vec()) };
    }
}

async fn ask_by_tcp(server: SocketAddr, question: &[u8], id: u16) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let mut sent = (question.len() as u16).to_be_bytes().to_vec();
    sent.extend_from_slice(question);
    stream.write_all(&sent).await?;
    let length = stream.read_u16().await?;
    let mut answer = vec![0; length.into()];
    stream.read_exact(&mut answer).await?;
    match answers(&answer, question, id) {
        true => Ok(answer),
        false => Err(std::io::Error::other("an answer to something else")),
    }
}

/// Whether a message is the answer to this very question.
fn answers(answer: &[u8], question: &[u8], id: u16) -> bool {
    let asked = &question[12..];
    let is_answer = answer.len() >= question.len() && answer[..2] == id.to_be_bytes() && answer[2] & 0x80 != 0;
    is_answer && answer[4..6] == [0, 1] && answer[12..question.len()].eq_ignore_ascii_case(asked)
}

/// One question, for which recursion is desired.
fn question(id: u16, domain: &str) -> Option<Vec<u8>> {
    let mut question = id.to_be_bytes().to_vec();
    question.extend_from_slice(&[0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0]);
    if domain.is_empty() || domain.len() > 253 {
        return None;
    }
    for label in domain.split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        question.push(length);
        question.extend_from_slice(label.as_bytes());
    }
    question.push(0);
    question.extend_from_slice(&TXT.to_be_bytes());
    question.extend_from_slice(&INTERNET.to_be_bytes());
    Some(question)
}

fn records(answer: &[u8]) -> Result<Vec<String>, String> {
    match answer.get(3).map(|flags| flags & 0x0f) {
        Some(0) => parsed(answer).ok_or_else(|| "the DNS server's answer cannot be read".to_owned()),
        // No such domain.
        Some(3) => Ok(Vec::new()),
        _ => Err("the DNS server could not answer".to_owned()),
    }
}

fn parsed(answer: &[u8]) -> Option<Vec<String>> {
    let mut at = after_name(answer, 12)? + 4;
    let count = number(answer, 6)?;
    let mut found = Vec::new();
    for _ in 0..count.min(MAX_RECORDS) {
        at = after_name(answer, at)?;
        let (kind, length) = (number(answer, at)?, usize::from(number(answer, at + 8)?));
        let data = answer.get(at + 10..at + 10 + length)?;
        at += 10 + length;
        if kind == TXT {
            found.push(joined(data)?);
        }
    }
    Some(found)
}

fn number(answer: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(answer.get(at..at + 2)?.try_into().ok()?))
}

/// A name ends with an empty label or with a pointer to the rest of it.
fn after_name(answer: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..MAX_NAME {
        match *answer.get(at)? {
            0 => return Some(at + 1),
            length if length & 0xc0 == 0xc0 => return Some(at + 2),
            length if length & 0xc0 == 0 => at += 1 + usize::from(length),
            _ => return None,
        }
    }
    None
}

/// A record is one text in pieces of up to 255 bytes.
fn joined(mut data: &[u8]) -> Option<String> {
    let mut text = Vec::new();
    while let Some((length, rest)) = data.split_first() {
        let (piece, rest) = rest.split_at_checked(usize::from(*length))?;
        text.extend_from_slice(piece);
        data = rest;
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with these texts, the names of which point back to the question.
    fn answer(question: &[u8], texts: &[&str]) -> Vec<u8> {
        let mut answer = question.to_vec();
        answer[2] |= 0x80;
        answer[7] = texts.len() as u8;
        for text in texts {
            answer.extend_from_slice(&[0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60]);
            answer.extend_from_slice(&(text.len() as u16 + 1).to_be_bytes());
            answer.push(text.len() as u8);
            answer.extend_from_slice(text.as_bytes());
        }
        answer
    }

    #[test]
    fn records_are_read_from_an_answer_to_the_question_alone() {
        let question = question(7, "acme.test").unwrap();
        let whole = answer(&question, &["v=spf1 -all", "portcullis-verification=abc"]);
        assert!(answers(&whole, &question, 7));
        assert!(!answers(&whole, &question, 8));
        assert!(!answers(&question, &question, 7), "a question is no answer");
        let other = super::question(7, "evil.test").unwrap();
        assert!(!answers(&answer(&other, &[]), &question, 7));
        assert_eq!(records(&whole).unwrap(), ["v=spf1 -all", "portcullis-verification=abc"]);
    }

    #[test]
    fn an_answer_that_breaks_off_anywhere_is_refused_and_never_read_beyond() {
        let question = question(7, "acme.test").unwrap();
        let whole = answer(&question, &["portcullis-verification=abc"]);
        for length in 12..whole.len() {
            assert!(records(&whole[..length]).is_err(), "{length}");
        }
        let mut looping = whole.clone();
        looping[12] = 0x40;
        assert!(records(&looping).is_err());
    }

    #[test]
    fn what_is_no_domain_is_not_asked_for() {
        for domain in ["", "a..test", &"a".repeat(64), &"a.".repeat(200)] {
            assert!(question(1, domain).is_none(), "{domain}");
        }
    }

    #[test]
    fn a_domain_that_does_not_exist_has_no_records() {
        let mut answer = answer(&question(7, "acme.test").unwrap(), &[]);
        answer[3] = 3;
        assert_eq!(records(&answer), Ok(Vec::new()));
        answer[3] = 2;
        assert!(records(&answer).is_err());
    }
}
