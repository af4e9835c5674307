//! Partials and their versions, described.

use super::VERSION_PAGES;
use super::docs::{collection, created, publication, versions};
use super::partials::Partial;
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};

pub fn docs() -> Vec<Doc> {
    let item = item();
    let version = schema::any_text().eg("latest").says("`latest`, `default`, or a number.");
    vec![
        Doc::list::<Partial>(&item).search().filter("collection_id", collection()),
        Doc::create::<Partial>(new()).answer(created("partial")),
        Doc::read::<Partial>(&whole(&item)).filter("version", version),
        Doc::update::<Partial>(change())
            .details("A new string makes a new version, which is served once it is published.")
            .answer(updated())
            .also(409),
        Doc::delete::<Partial>().details("Refused while prompts or other partials put it in.").forcible(),
        Doc::get("/prompts/partials/{id}/versions", "List the versions of a partial")
            .pages(VERSION_PAGES)
            .answer(versions(&listed())),
        Doc::put("/prompts/partials/{id}/makeDefault", "Publish a version of a partial")
            .body(publication("partial"))
            .conditional(),
    ]
}

fn name() -> Schema {
    schema::text(1..=255).eg("Tone")
}

fn slug() -> Schema {
    schema::slug().eg("pl-tone-3f9a01").says("How templates name it: `{{>slug}}`, or `{{>slug@3}}` for one version.")
}

fn string() -> Schema {
    schema::any_text().eg("Answer in a {{mood}} tone.").says("The text that is put in, in Mustache.")
}

fn note() -> Schema {
    schema::text(0..=1000).eg("Shorter").or_null().says("A note about this version.")
}

fn status() -> Schema {
    schema::choice(&["active", "archived"]).says("`active` for the default version, `archived` for others.")
}

fn new() -> Schema {
    schema::object("NewPartial").need("name", name()).need("string", string()).may("version_description", note()).may(
        "collection_id",
        schema::name_of("cl-support-3f9a01").or_null().says("Id or slug of the collection to put it in."),
    )
}

fn change() -> Schema {
    schema::object("PartialChange")
        .may("name", name().or_null())
        .may("string", string().or_null())
        .may("description", note())
        .may("version_description", note().says("As description."))
        .may("status", schema::choice(&["active", "archived"]).or_null().says("`archived` deletes it."))
}

fn updated() -> Schema {
    let new = || schema::uuid().says("The new version, if one was made.");
    schema::object("").may("id", schema::uuid()).may("slug", slug()).may("prompt_partial_version_id", new())
}

fn item() -> Schema {
    schema::shown("Partial", "partial")
        .need("slug", slug())
        .need("name", name())
        .need("collection_id", schema::uuid().says("The collection that it is in."))
        .need("workspace_id", schema::uuid())
        .need("prompt_partial_version_id", schema::uuid().says("The version that is shown; in lists, the default one."))
        .need("latest_version", schema::whole(1..=i64::MAX).says("The number of its newest version."))
        .archivable()
}

fn whole(item: &Schema) -> Schema {
    schema::object("WholePartial")
        .with(item)
        .need("string", string())
        .need("version", schema::whole(1..=i64::MAX))
        .need("version_description", note())
        .need("prompt_partial_version_status", status())
}

fn listed() -> Schema {
    schema::object("PartialVersion")
        .need("prompt_partial_id", schema::uuid().says("The partial that it is a version of."))
        .need("prompt_partial_version_id", schema::uuid().says("Its id."))
        .need("slug", slug())
        .need("version", schema::whole(1..=i64::MAX))
        .need("string", string())
        .need("description", note())
        .need("prompt_version_status", status())
        .need("created_by", schema::uuid().or_null())
        .need("created_at", schema::time())
        .need("object", schema::fixed("partial"))
}
