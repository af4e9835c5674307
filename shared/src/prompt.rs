//! A stored prompt, rendered: one of its versions and the values of a call become the body of a request to a model. Pure:
//! whoever renders (admin on request, the proxy for every run) brings the version and the partials that it names.

mod body;
mod reference;
mod render;
mod skeleton;
pub mod split;
pub mod template;
#[cfg(test)]
mod tests;
pub mod variables;

pub use body::PromptBody;
pub use reference::{VersionName, split_reference};
pub use render::{ParsedPartial, PartialSet, PromptParts, RenderError, RenderRequest, render, render_within};
pub use skeleton::{RequestSkeleton, WrittenCall, WrittenField};
pub use variables::DeclaredVariable;
