//! How a vendor is asked and how its answer is read, as a row: an address, where the credential goes, a body with places in
//! it, and where the verdict stands. Code is named by a row only where that does not suffice.

use super::super::subject::{Hook, Shape, Subject};
use super::super::verdict::Verdict;
use super::reading::{Judged, Reading};

pub struct Wire {
    /// Of the check. A check may have several rows: the first that fits what is judged is used.
    pub id: &'static str,
    pub when: When,
    /// The first whose places can all be filled. A place that begins an address is a whole base, from the credentials.
    pub addresses: &'static [&'static str],
    pub auth: Auth,
    /// More headers; one whose place is not there is left out.
    pub headers: &'static [(&'static str, &'static str)],
    /// JSON with places (`template`).
    pub body: &'static str,
    pub judge: Judge,
    /// Where the vendor says that it could not look.
    pub error: &'static str,
    /// Where the texts stand with what was found taken out; empty for vendors that give none.
    pub redacted: &'static str,
    /// What of the answer is told; empty for all of it.
    pub data: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Always,
    /// A chat, before it is asked.
    Chat,
}

impl When {
    pub fn fits(self, subject: &Subject<'_>) -> bool {
        match self {
            Self::Always => true,
            Self::Chat => subject.hook == Hook::BeforeRequest && subject.shape == Shape::Chat && subject.text.is_none(),
        }
    }
}

/// Where the credential goes. The name is the field of the stored credentials.
#[derive(Debug, Clone, Copy)]
pub enum Auth {
    None,
    Bearer(&'static str),
    Header(&'static str, &'static str),
    /// A key in Azure's own header, or a bearer token; the name is of the group of credentials.
    Azure(&'static str),
    /// A signature over the whole call.
    Aws,
}

/// Paths are JSON pointers in which `*` stands for every item or field.
pub enum Judge {
    /// Passes where every text at the path is one of these words.
    PassesOn(&'static str, &'static [&'static str]),
    /// Fails where a text at the path is one of these words.
    FailsOn(&'static str, &'static [&'static str]),
    /// Passes where everything at the path is true.
    PassesIfTrue(&'static str),
    /// Fails where something at one of the paths is there and neither null, false, 0 nor empty. The first path must be
    /// there at all, or the answer is none.
    FailsIfSet(&'static str, &'static [&'static str]),
    Code(fn(&Reading<'_>) -> Result<Judged, Box<Verdict>>),
}

impl Wire {
    /// What most rows have.
    pub const fn new(
        id: &'static str,
        addresses: &'static [&'static str],
        auth: Auth,
        body: &'static str,
        judge: Judge,
    ) -> Self {
        Self { id, when: When::Always, addresses, auth, headers: &[], body, judge, error: "", redacted: "", data: "" }
    }

    pub const fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    pub const fn headers(self, headers: &'static [(&'static str, &'static str)]) -> Self {
        Self { headers, ..self }
    }

    pub const fn error(self, error: &'static str) -> Self {
        Self { error, ..self }
    }

    pub const fn redacted(self, redacted: &'static str) -> Self {
        Self { redacted, ..self }
    }

    pub const fn data(self, data: &'static str) -> Self {
        Self { data, ..self }
    }

    /// It asks once for every text.
    pub fn is_for_each_text(&self) -> bool {
        self.body.contains("\"$each\"")
    }
}
