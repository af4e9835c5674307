//! Images that were fetched for a check, and what keeps their memory counted.

use std::any::Any;
use std::sync::Arc;

pub struct Image {
    /// As `image/png`.
    pub media_type: String,
    /// In base64.
    pub data: String,
}

pub struct Images {
    /// Or why it could not be had, in words that do not repeat its address.
    pub fetched: Vec<Result<Image, String>>,
    /// Whoever fetched them counts them as long as this lives.
    pub held: Option<Arc<dyn Any + Send + Sync>>,
}

impl Images {
    pub fn size(&self) -> usize {
        self.fetched.iter().flatten().map(|image| image.data.len()).sum()
    }
}
