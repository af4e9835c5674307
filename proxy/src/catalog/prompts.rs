//! Stored prompts on their way to a model: which version a reference means for a call, and the body that it becomes.
//! Both are asked of the snapshot; only a version that is not held there is waited for.

mod find;
mod render;
mod skeleton;

pub use find::{PromptRun, StickyKey, find};
pub use render::{PromptUse, RenderedPrompt, render, write};
