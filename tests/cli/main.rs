//! The program `portcullis` as people and pipelines run it: the built file, in an empty home, against a real stack.

#![expect(clippy::unwrap_used, reason = "clippy takes the functions that tests share for ordinary code")]

mod connect;
mod docs;
mod files;
mod imports;
mod objects;
mod program;
mod runs;
mod session;
