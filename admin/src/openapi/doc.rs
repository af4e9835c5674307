//! The description of one operation, written beside its handler. What the route table knows (who may call, which
//! scopes, which parameters the path has, which refusals) is not repeated here.

use super::schema::{self, Schema, any_text, object, whole};
use crate::http::PageSizes;
use shared::routes::Method;

#[derive(Debug, Clone)]
pub struct Doc {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(super) summary: String,
    pub(super) details: Option<String>,
    /// An object whose fields are the query's parameters.
    pub(super) query: Schema,
    pub(super) body: Option<Schema>,
    pub(super) answer: Schema,
    /// Answers with a file of one of these types instead of JSON.
    pub(super) file: &'static [&'static str],
    /// Types that it answers with instead of JSON where they are asked for.
    pub(super) also_as: &'static [&'static str],
    /// Sends the client elsewhere instead of answering; where to.
    pub(super) redirects: Option<&'static str>,
    /// Headers that it alone reads.
    pub(super) headers: Vec<(&'static str, Schema)>,
    /// Refusals beyond those that follow from the route table.
    pub(super) also: Vec<u16>,
    /// Answers with the `ETag` of an object.
    pub(super) sends_tag: bool,
    /// Reads `If-Match`.
    pub(super) reads_condition: bool,
}

impl Doc {
    pub fn get(path: &str, summary: &str) -> Self {
        Self::new(Method::Get, path, summary)
    }

    pub fn post(path: &str, summary: &str) -> Self {
        Self::new(Method::Post, path, summary)
    }

    pub fn put(path: &str, summary: &str) -> Self {
        Self::new(Method::Put, path, summary)
    }

    pub fn remove(path: &str, summary: &str) -> Self {
        Self::new(Method::Delete, path, summary)
    }

    /// Answers `{}` until told otherwise.
    pub fn new(method: Method, path: &str, summary: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            summary: summary.to_owned(),
            details: None,
            query: object(""),
            body: None,
            answer: schema::any_object(),
            file: &[],
            also_as: &[],
            redirects: None,
            headers: Vec::new(),
            also: Vec::new(),
            sends_tag: false,
            reads_condition: false,
        }
    }
}

impl Doc {
    pub fn summary(mut self, text: &str) -> Self {
        self.summary = text.to_owned();
        self
    }

    pub fn details(mut self, text: &str) -> Self {
        self.details = Some(text.to_owned());
        self
    }

    /// The same operation at another path: `from` at its beginning becomes `to`.
    pub fn moved(mut self, from: &str, to: &str) -> Self {
        if let Some(rest) = self.path.strip_prefix(from) {
            self.path = format!("{to}{rest}");
        }
        self
    }

    pub fn body(mut self, schema: Schema) -> Self {
        self.body = Some(schema);
        self
    }

    pub fn answer(mut self, schema: Schema) -> Self {
        self.answer = schema;
        self
    }

    /// Answers with a file of one of these types.
    pub fn file(mut self, kinds: &'static [&'static str]) -> Self {
        self.file = kinds;
        self
    }

    /// Answers with one of these types instead where `Accept` asks for it.
    pub fn also_as(mut self, kinds: &'static [&'static str]) -> Self {
        self.also_as = kinds;
        self
    }

    /// Sends the client elsewhere.
    pub fn redirects(mut self, whereto: &'static str) -> Self {
        self.redirects = Some(whereto);
        self
    }

    /// Parameters of the query that must be sent.
    /// A parameter of the query.
    pub fn filter(mut self, name: &str, schema: Schema) -> Self {
        self.query = self.query.may(name, schema);
        self
    }

    /// A header that it reads.
    pub fn header(mut self, name: &'static str, schema: Schema) -> Self {
        self.headers.push((name, schema));
        self
    }

    /// `search`, as every resource has it that does not say otherwise.
    pub fn search(self) -> Self {
        self.filter("search", any_text().eg("can").says("Part of the name, in upper or lower case."))
    }

    /// The parameters of a list, in both spellings.
    pub fn pages(self, sizes: PageSizes) -> Self {
        let size = format!(
            "Rows on a page; 0 is the default, {}. More than {} is {} too.",
            sizes.default, sizes.most, sizes.most
        );
        let page = || whole(0..=i64::MAX).eg(0).says("Which page; the first is 0.");
        let size = || whole(0..=i64::MAX).eg(20).says(&size);
        let doc = self.filter("current_page", page()).filter("page_size", size());
        doc.filter("currentPage", page().says("As current_page.")).filter("pageSize", size().says("As page_size."))
    }

    /// The schemas of its body and of its query, for checking requests.
    pub fn accepts(&self) -> (Option<&serde_json::Value>, &serde_json::Value) {
        (self.body.as_ref().map(|body| &body.json), &self.query.json)
    }

    /// The schema of its answer.
    pub fn answered(&self) -> &Schema {
        &self.answer
    }

    /// It answers with the `ETag` of the object.
    pub fn tagged(self) -> Self {
        Self { sends_tag: true, ..self }
    }

    /// It answers with no `ETag`, and reads no `If-Match`.
    pub fn untagged(self) -> Self {
        Self { sends_tag: false, reads_condition: false, ..self }
    }

    /// It changes the object only as `If-Match` has it.
    pub fn conditional(self) -> Self {
        Self { reads_condition: true, ..self }
    }

    /// Another status that it may answer with, as 409.
    pub fn also(mut self, status: u16) -> Self {
        self.also.push(status);
        self
    }
}

/// A comma-separated list in a query.
pub fn choices(values: &[&str]) -> Schema {
    // As it is read: blanks and empty items do not count.
    let one = format!(r"\s*({})?\s*", values.join("|"));
    let says = format!("Any of {}; several are separated by commas.", values.join(", "));
    any_text().matching(&format!("^{one}(,{one})*$")).eg(values.first().copied().unwrap_or_default()).says(&says)
}
