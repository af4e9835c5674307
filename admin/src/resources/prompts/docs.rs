//! Prompts and their versions, described.

use super::comparison::MAX_DIFFERENCES;
use super::{MAX_VERSIONS, Prompt, VERSION_PAGES};
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use serde_json::json;
use shared::prompt::split::MAX_WEIGHT;
use shared::prompt::variables::{MAX_DECLARED, VariableType};

pub fn docs() -> Vec<Doc> {
    let item = item();
    let whole = whole(&item);
    let version = || schema::any_text().eg("latest").says("`latest`, `default`, a number, or the name of a label.");
    let kind = schema::choice(&["shared"]).or_empty().says("`shared` lists what others share, which is nothing.");
    vec![
        Doc::list::<Prompt>(&item).search().filter("collection_id", collection()).filter("type", kind),
        Doc::create::<Prompt>(new()).details(CREATED).answer(created("prompt")).untagged(),
        Doc::read::<Prompt>(&whole).details(NAMED).filter("version", version()),
        Doc::update::<Prompt>(change()).details(CHANGED).answer(updated()).also(409),
        Doc::delete::<Prompt>().details("Archives it with all its versions; it can no longer be rendered or run."),
        Doc::put("/prompts/{promptId}/makeDefault", "Publish a version of a prompt")
            .body(publication("prompt"))
            .conditional(),
        Doc::get("/prompts/{promptId}/versions", "List the versions of a prompt")
            .pages(VERSION_PAGES)
            .answer(versions(&listed())),
        Doc::get("/prompts/{promptId}/versions/diff", "Compare two versions of a prompt")
            .details(COMPARED)
            .filter("from", version().says("The version before: a number, an id, a label; the default one if absent."))
            .filter("to", version().says("The version after, named alike; the latest one if absent."))
            .answer(comparison()),
        Doc::get("/prompts/{promptId}/versions/{versionId}", "Read a version of a prompt").answer(whole),
        Doc::put("/prompts/{promptId}/versions/{versionId}", "Label a version of a prompt")
            .details("A label points to one version of a prompt: it is moved from another. A version may have several.")
            .body(schema::object("PromptVersionChange").need("label_id", label_id())),
        Doc::post("/prompts/{promptId}/render", "Render a prompt").details(RENDERED).body(render()).answer(rendered()),
    ]
}

const CREATED: &str = "Makes the prompt with its first version, which is its default. Without a collection it goes to the \
                       workspace's default one. A template must be well formed; partials may be made later.";
const NAMED: &str = "The path may name a version too: `slug@12`, `slug@latest`, `slug@staging`.";
const CHANGED: &str = "With `patch`, what is sent replaces fields of the latest version and makes a new one; without it \
                       a new version is sent whole: string, parameters and a model. The default version stays until \
                       another is published. A description or virtual_key alone corrects the latest version.";
const RENDERED: &str = "Fills in the template and answers the body that a chat completion takes as it is. Parameters of \
                        the model are sent at the root and win over the version's. The path may name a version; of a \
                        label that points to several, the one that the user (`_user` of the metadata header, or \
                        `user`) or the trace meets, and the heaviest without either. Declared variables are checked.";
const COMPARED: &str = "Field by field, messages one by one, texts of several lines by the lines that went and came. \
                        Without versions it shows what publishing the latest one would change.";

pub fn collection() -> Schema {
    schema::name_of("cl-support-3f9a01").or_empty().says("Id or slug of a collection.")
}

/// A number of a version to be served by default.
pub fn publication(object: &str) -> Schema {
    let title = if object == "prompt" { "PromptPublication" } else { "PartialPublication" };
    schema::object(title).need("version", schema::whole(1..=i64::from(MAX_VERSIONS)))
}

pub fn created(object: &'static str) -> Schema {
    schema::object("")
        .need("id", schema::uuid())
        .need("slug", slug())
        .need("version_id", schema::uuid())
        .need("object", schema::fixed(object))
}

pub fn slug() -> Schema {
    schema::slug().eg("pp-greeting-3f9a01")
}

pub fn versions(item: &Schema) -> Schema {
    schema::object("")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX).says("All versions, on this page and others."))
        .need("data", schema::list(item.clone()))
}

fn name() -> Schema {
    schema::text(1..=255).eg("Greeting")
}

fn in_collection() -> Schema {
    schema::name_of("cl-support-3f9a01").or_null().says("Id or slug of the collection to put it in.")
}

fn string() -> Schema {
    let example = json!([{ "role": "user", "content": "Greet {{name}}." }]).to_string();
    schema::any_text().eg(example).says("The template, in Mustache: messages as JSON text, or a plain text.")
}

fn parameters() -> Schema {
    let says = "Parameters of the model, and default values of the template's variables.";
    schema::any_object().eg(json!({ "temperature": 0.2, "name": "Ada" })).says(says)
}

fn tool() -> Schema {
    schema::any_object().eg(json!({ "type": "function", "function": { "name": "lookup" } }))
}

fn raw() -> Schema {
    schema::bit().says("1 when the template is JSON for the whole body of a request.")
}

/// What a version has beside its template, parameters and provider; the same sent and shown.
fn more(all: Schema) -> Schema {
    let choice = schema::either([schema::any_text().eg("auto"), schema::any_object(), schema::nothing()]);
    all.may("model", schema::text(1..=255).eg("gpt-4o-mini").or_null().says("The model; null when the call names it."))
        .may("functions", schema::list(tool()).or_null().says("Functions that the model may call, in the older form."))
        .may("tools", schema::list(tool()).or_null().says("Tools that the model may call."))
        .may("tool_choice", choice.says("Whether and which tool the model must call."))
}

/// The same sent and shown.
fn declared() -> Schema {
    let variable = schema::object("DeclaredVariable")
        .need("name", schema::text(1..=255).eg("user.name").says("As the template names it."))
        .may("type", schema::choice(VariableType::NAMES).eg("string").says("What it must be; `any` if absent."))
        .may("required", schema::flag().eg(true).says("Whether a call without it is refused."));
    let says = "Variables that are checked before they are filled in: one that is missing or mistyped is 400 and named. \
                Null for none.";
    schema::list(variable).at_most(MAX_DECLARED).or_null().says(says)
}

fn sent(all: Schema) -> Schema {
    let metadata = || schema::any_object().eg(json!({ "team": "support" })).or_null();
    more(all)
        .may(
            "version_description",
            schema::text(0..=1000).eg("Friendlier").or_null().says("A note about this version."),
        )
        .may("template_metadata", metadata().says("Whatever belongs to the template; it is not sent to a model."))
        .may("prompt_metadata", metadata().says("As template_metadata."))
        .may(
            "is_raw_template",
            schema::either([raw(), schema::flag(), schema::nothing()])
                .says("As 0 or 1: whether the template is JSON for the whole body of a request."),
        )
        .may("declared_variables", declared())
}

fn virtual_key() -> Schema {
    schema::name_of("openai-main").says("The provider to run it with: its slug, `@slug` or id.")
}

fn new() -> Schema {
    let body = schema::object("NewPrompt")
        .need("name", name())
        .may("collection_id", in_collection())
        .need("string", string())
        .need("parameters", parameters().or_null())
        .need("virtual_key", virtual_key());
    sent(body)
}

fn change() -> Schema {
    let body = schema::object("PromptChange")
        .may("name", name().or_null())
        .may("collection_id", in_collection())
        .may(
            "patch",
            schema::flag().or_null().says("Whether fields that are not sent are those of the latest version."),
        )
        .may("string", string().or_null())
        .may("parameters", parameters().or_null())
        .may("virtual_key", virtual_key().or_null());
    sent(body)
}

fn updated() -> Schema {
    schema::object("")
        .need("id", schema::uuid())
        .need("slug", slug())
        .may("prompt_version_id", schema::uuid().says("The new version, if one was made."))
}

fn item() -> Schema {
    schema::shown("Prompt", "prompt")
        .need("slug", slug())
        .need("name", name())
        .need("collection_id", schema::uuid().says("The collection that it is in."))
        .need("model", schema::any_text().eg("gpt-4o-mini").or_null())
        .need("access_level", schema::fixed("workspace").says("Who may use it."))
        .need("prompt_owning_workspace_id", schema::uuid().says("The workspace that it belongs to."))
        .need("prompt_version_id", schema::uuid().says("The version that is shown; in lists, the default one."))
        .need("latest_version", schema::whole(1..=i64::MAX).says("The number of its newest version."))
        .archivable()
}

fn label_id() -> Schema {
    schema::uuid().or_null().says("The label to put on it; null takes all labels from it.")
}

fn labels() -> Schema {
    let weight = schema::whole(0..=i64::from(MAX_WEIGHT)).eg(90);
    let label = schema::object("VersionLabel")
        .need("id", schema::uuid())
        .need("name", schema::slug().eg("staging"))
        .may("weight", weight.says("Its share of the calls, where the label points to other versions too."));
    schema::list(label).says("All labels that point to this version, by name.")
}

fn status() -> Schema {
    schema::choice(&["active", "archived"]).says("`active` for the default version, `archived` for others.")
}

fn whole(item: &Schema) -> Schema {
    let note = schema::any_text().eg("Friendlier").or_null().says("A note about this version.");
    let body = schema::object("WholePrompt")
        .with(item)
        .need("string", string())
        .need("parameters", parameters().says("As they were sent, with the model."))
        .need("virtual_key", schema::slug().eg("openai-main"));
    more(body)
        .need("template_metadata", schema::any_object().says("Whatever belongs to the template."))
        .need("prompt_version", schema::whole(1..=i64::MAX).says("The number of this version, from 1."))
        .need("prompt_version_status", status())
        .need("prompt_version_description", note)
        .need("prompt_version_label_id", schema::uuid().or_null().says("The first of its labels; null for none."))
        .need("prompt_version_label_name", schema::any_text().eg("staging").or_null().says("The name of that label."))
        .need("prompt_version_labels", labels())
        .need("is_raw_template", raw())
        .need("declared_variables", declared())
        .need("variable_components", components())
        .whole()
}

fn components() -> Schema {
    let names = |says: &str| schema::list(schema::any_text().eg("name")).says(says);
    schema::object("VariableComponents")
        .need("partials", names("Partials that it puts in."))
        .need("sections", names("Names of its sections."))
        .need("variables", names("Variables outside of sections."))
        .need("sectionVariables", schema::map(names("")).eg(json!({})).says("Variables inside of each section."))
        .need("variablePartials", names("Always empty: partials are named, not computed.").eg(json!([])))
        .says("What the template asks for.")
}

fn listed() -> Schema {
    let template = schema::object("PromptTemplate")
        .need("string", string())
        .need("parameters", parameters())
        .need("virtual_key", schema::slug().eg("openai-main"));
    let template = more(template)
        .need("template_metadata", schema::any_object().says("Whatever belongs to the template."))
        .need("is_raw_template", raw())
        .need("declared_variables", declared())
        .whole();
    schema::shown("PromptVersion", "prompt")
        .need("prompt_id", schema::uuid().says("The prompt that it is a version of."))
        .need("prompt_template", template.says("What the version holds."))
        .need("prompt_version", schema::whole(1..=i64::MAX).says("Its number, from 1."))
        .need("prompt_description", schema::any_text().eg("Friendlier").or_null().says("A note about this version."))
        .need("label_id", schema::uuid().or_null().says("The first of its labels; null for none."))
        .need("labels", labels())
        .need("status", status())
        .need("created_by", schema::uuid().or_null())
        .need("created_at", schema::time())
}

fn comparison() -> Schema {
    let line = schema::object("LineChange")
        .need("op", schema::choice(&["add", "remove"]).says("Whether it came or went."))
        .need(
            "line",
            schema::whole(1..=i64::MAX).says("Its number: in the new text if it came, in the old if it went."),
        )
        .need("text", schema::any_text().eg("Be brief.").says("The line."));
    let lines =
        schema::list(line).or_null().says("In place of both values, where a text of several lines was replaced.");
    let change = schema::object("PromptDifference")
        .need("op", schema::choice(&["replace", "add", "remove"]).says("What happened to the value."))
        .need(
            "path",
            schema::any_text().eg("string[0].content").says("Where in the version; messages are in `string`."),
        )
        .need("from", schema::anything().says("The value before; null when it was added, or told by lines."))
        .need("to", schema::anything().says("The value after; null when it was removed, or told by lines."))
        .need("lines", lines);
    let version = |number: i64, says: &str| {
        schema::object("").need("id", schema::uuid()).need("version", schema::whole(1..=i64::MAX).eg(number)).says(says)
    };
    schema::object("PromptComparison")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX).says("How many differences are listed."))
        .need("data", schema::list(change).at_most(MAX_DIFFERENCES).says("What differs."))
        .need("from", version(1, "The version before."))
        .need("to", version(2, "The version after."))
        .need("is_complete", schema::flag().eg(true).says("False where more differs than is listed."))
}

fn render() -> Schema {
    schema::object("PromptRender")
        .may("variables", schema::any_object().eg(json!({ "name": "Ada" })).or_null().says("Values of the variables."))
        .may("stream", schema::flag().or_null())
        .may("workspace_id", schema::name_of("ws-market-3f9a01").or_null())
        .open()
}

fn rendered() -> Schema {
    let data = json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": "Greet Ada." }] });
    schema::object("")
        .need("success", schema::fixed(true))
        .need("data", schema::any_object().eg(data).says("The body of a request to a model."))
}
