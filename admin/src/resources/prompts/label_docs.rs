//! Where the labels of a prompt point, described.

use super::MAX_VERSIONS;
use crate::http::PageSizes;
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use serde_json::json;
use shared::prompt::split::{MAX_PARTS, MAX_WEIGHT};

pub fn docs() -> [Doc; 3] {
    const ONE: &str = "/prompts/{promptId}/labels/{labelId}";
    [
        Doc::get("/prompts/{promptId}/labels", "List the labels of a prompt").pages(PageSizes::USUAL).answer(listed()),
        Doc::put(ONE, "Point a label of a prompt to versions").details(POINTED).body(split()),
        Doc::remove(ONE, "Take a label from a prompt").details("The label itself stays, and may be put on it again."),
    ]
}

const POINTED: &str = "To one version, or to several by weight, so that a new one is tried on a part of the calls. Which \
                       of them a call meets is decided by its user (`_user` of the metadata) or else its trace, so that \
                       a user stays with one version; when weights change, users only move to versions that grow. The \
                       label is named by id or name. It is moved at once, from wherever it pointed.";

fn weight() -> Schema {
    schema::whole(0..=i64::from(MAX_WEIGHT)).eg(90).says("Its share of the calls, beside the other weights.")
}

fn number() -> Schema {
    schema::whole(1..=i64::from(MAX_VERSIONS)).eg(3).says("The number of a version of this prompt.")
}

fn split() -> Schema {
    let part = schema::object("SplitVersion")
        .need("version", number())
        .may("weight", weight().or_null().says("Its share of the calls, beside the other weights; 100 if absent."));
    let example = json!([{ "version": 3, "weight": 90 }, { "version": 4, "weight": 10 }]);
    let versions = schema::list(part).at_least(1).at_most(MAX_PARTS).eg(example);
    schema::object("LabelSplit").need("versions", versions.says("Each version once; one of them must have a weight."))
}

fn listed() -> Schema {
    let version = schema::object("LabelledVersion")
        .need("version", number())
        .need("version_id", schema::uuid())
        .need("weight", weight());
    let label = schema::object("PromptLabel")
        .need("id", schema::uuid().says("The id of the label."))
        .need("name", schema::slug().eg("staging").says("The name of the label."))
        .need("versions", schema::list(version).says("The versions that it points to, the heaviest first."));
    schema::object("")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX).says("All labels of the prompt, on this page and others."))
        .need("data", schema::list(label))
}
