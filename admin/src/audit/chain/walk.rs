//! Reads a chain from its first record and reports each record that does not fit. Each fault is reported once: the
//! walk continues from the record that it found.

use super::{ChainEnd, hash};
use uuid::Uuid;

/// A record as it is stored.
#[derive(Debug, Clone)]
pub struct ChainedRecord {
    pub id: Uuid,
    pub sequence: i64,
    pub previous_hash: Vec<u8>,
    pub hash: Vec<u8>,
    pub fields: Vec<Option<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainFinding {
    #[error("record {sequence} ({id}) was edited: it does not give its hash")]
    Edited { sequence: i64, id: Uuid },
    #[error("record {sequence} ({id}) does not follow from the record before it: one of the two was replaced")]
    Unlinked { sequence: i64, id: Uuid },
    #[error("{} missing", records(*from, *to))]
    Missing { from: i64, to: i64 },
    #[error("record {sequence} ({id}) was added: its number is taken or was never given")]
    Added { sequence: i64, id: Uuid },
    #[error("record {sequence} is not the one that the chain ended with: it was replaced")]
    OtherEnd { sequence: i64 },
    #[error("the note of where the chain ends is missing")]
    NoEnd,
    #[error("record {sequence} is not the one that the anchor names: the chain was computed anew")]
    OtherAnchor { sequence: i64 },
}

fn records(from: i64, to: i64) -> String {
    if from == to { format!("record {from} is") } else { format!("records {from} to {to} are") }
}

#[derive(Debug)]
pub struct ChainWalk {
    /// The number and the hash of the last record seen.
    sequence: i64,
    hash: Vec<u8>,
    anchor: Option<ChainEnd>,
    count: u64,
    findings: Vec<ChainFinding>,
}

impl ChainWalk {
    pub fn new(anchor: Option<ChainEnd>) -> Self {
        let ChainEnd { sequence, hash } = ChainEnd::BEGINNING;
        Self { sequence, hash: hash.to_vec(), anchor, count: 0, findings: Vec::new() }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The next record in the order of their numbers.
    pub fn step(&mut self, record: &ChainedRecord) {
        let (sequence, id) = (record.sequence, record.id);
        self.count += 1;
        let expected = self.sequence + 1;
        if sequence < expected {
            self.findings.push(ChainFinding::Added { sequence, id });
            return;
        }
        if sequence > expected {
            self.findings.push(ChainFinding::Missing { from: expected, to: sequence - 1 });
        }
        if hash(&record.previous_hash, sequence, &record.fields).as_slice() != record.hash {
            self.findings.push(ChainFinding::Edited { sequence, id });
        } else if sequence == expected && record.previous_hash != self.hash {
            self.findings.push(ChainFinding::Unlinked { sequence, id });
        }
        if self.anchor.is_some_and(|anchor| anchor.sequence == sequence && anchor.hash.as_slice() != record.hash) {
            self.findings.push(ChainFinding::OtherAnchor { sequence });
        }
        self.sequence = sequence;
        self.hash.clone_from(&record.hash);
    }

    /// Compares the last record with where the chain is known to end.
    pub fn end(mut self, known: Option<ChainEnd>) -> Vec<ChainFinding> {
        let last = self.sequence;
        let must_reach = known.iter().chain(&self.anchor).map(|end| end.sequence).max().unwrap_or(0);
        match known {
            None if last > 0 => self.findings.push(ChainFinding::NoEnd),
            Some(end) if end.sequence < last => {
                self.findings.push(ChainFinding::OtherEnd { sequence: end.sequence });
            }
            Some(end) if end.sequence == last && end.hash.as_slice() != self.hash => {
                self.findings.push(ChainFinding::OtherEnd { sequence: last });
            }
            _ => {}
        }
        if must_reach > last {
            self.findings.push(ChainFinding::Missing { from: last + 1, to: must_reach });
        }
        self.findings
    }
}

#[cfg(test)]
mod tests;
