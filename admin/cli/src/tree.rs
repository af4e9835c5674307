//! Files that describe what a gateway should hold, and the way between them and what it does hold.
//!
//! Both sides are compared as templates: names stand in place of ids that the server makes, so that a plan can speak of objects
//! that do not exist yet, and the same files fit several installations.

mod address;
pub mod apply;
mod compare;
mod documents;
pub mod export;
pub mod live;
mod lock;
pub mod plan;
pub mod state;
pub mod template;
pub mod write;
pub mod yaml;

pub use address::Address;
pub use documents::{Tree, folder_of};
pub use lock::{Applied, Lock};

/// A unified difference for people.
pub fn text_diff(before: &str, after: &str) -> String {
    let difference = similar::TextDiff::from_lines(before, after);
    let text = difference.unified_diff().context_radius(3).to_string();
    if !crate::output::has_colour() {
        return text;
    }
    let colour = |line: &str| match line.chars().next() {
        Some('+') => format!("\x1b[32m{line}\x1b[0m\n"),
        Some('-') => format!("\x1b[31m{line}\x1b[0m\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(colour).collect()
}
