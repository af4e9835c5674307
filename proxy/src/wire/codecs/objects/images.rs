//! Images of those who do not speak OpenAI's form (contract 7.6 and 7.9). Most differ by the names of their fields alone,
//! and are rows of a table; two wrap them, and have code.

mod asked;
mod bedrock;
mod made;
mod vendor;
mod vendor_table;
mod vertex;

pub(super) use bedrock::BedrockImages;
pub(super) use vendor_table::{
    FAL, FIREWORKS, FIREWORKS_WORKFLOW, HYPERBOLIC, SEGMIND, SILICONFLOW, STABILITY_FIRST, STABILITY_SD3,
    STABILITY_SECOND, WORKERS,
};
pub(super) use vertex::VertexImages;

#[cfg(test)]
mod tests;
