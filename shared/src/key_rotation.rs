//! New keys for sealed values: `rotation` replaces data keys and seals anew, `report` says which keys are still in use,
//! `documents` knows the sealed texts inside JSON documents.

pub(crate) mod documents;
pub mod report;
pub mod rotation;
