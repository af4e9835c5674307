//! How the OpenAPI document shows the five verbs: one description for each, made of what the resource says about itself.

use super::Resource;
use crate::http::FLAGS;
use crate::openapi::Doc;
use crate::openapi::schema::{Schema, any_text, choice, fixed, list, object, uuid, whole};
use shared::db::table::Tenancy;
use shared::routes::Method;

impl Doc {
    /// All five, for what can be searched by name: as it is shown, and as it is sent. A change may leave out any field.
    pub fn five<R: Resource>(item: &Schema, sent: Schema, change: &str) -> [Self; 5] {
        [
            Self::list::<R>(item).search(),
            Self::create::<R>(sent.clone()),
            Self::read::<R>(item),
            Self::update::<R>(sent.as_change(change)),
            Self::delete::<R>(),
        ]
    }

    pub fn list<R: Resource>(item: &Schema) -> Self {
        let title = format!("{}List", item.title());
        let answer = object(&title)
            .need("object", fixed("list"))
            .need("total", whole(0..=i64::MAX).says("All matches, on this page and others."))
            .need("data", list(item.clone()));
        let doc = Self::new(Method::Get, R::PATH, &format!("List {}", plural(&spoken(R::OBJECT))));
        doc.pages(R::PAGES).in_workspace::<R>().answer(answer)
    }

    pub fn create<R: Resource>(body: Schema) -> Self {
        let is_of_one = has_workspaces::<R>() && R::TABLE.tenancy != Tenancy::OneOrSeveral;
        let body = if is_of_one { body.may("workspace_id", workspace().or_null()) } else { body };
        let doc = Self::new(Method::Post, R::PATH, &format!("Create {}", article(R::OBJECT)));
        doc.body(body).answer(object("").need("id", uuid()).need("object", fixed(R::OBJECT))).tagged()
    }

    pub fn read<R: Resource>(item: &Schema) -> Self {
        let doc = Self::new(Method::Get, &item_path::<R>(), &format!("Read {}", article(R::OBJECT)));
        doc.in_workspace::<R>().answer(item.clone()).tagged()
    }

    /// Absent fields keep their value; the answer is empty unless another is given.
    pub fn update<R: Resource>(body: Schema) -> Self {
        let body = if has_workspaces::<R>() { body.may("workspace_id", workspace().or_null()) } else { body };
        let doc = Self::new(Method::Put, &item_path::<R>(), &format!("Change {}", article(R::OBJECT)));
        doc.details("Sets the fields that are sent and keeps the others.").body(body).tagged().conditional()
    }

    pub fn delete<R: Resource>() -> Self {
        let doc = Self::new(Method::Delete, &item_path::<R>(), &format!("Delete {}", article(R::OBJECT)));
        doc.in_workspace::<R>().conditional()
    }

    /// A delete that is refused while others use the object.
    pub fn forcible(self) -> Self {
        let says = "`true` deletes it although others use it; without it they are listed with 409.";
        self.filter("force", choice(FLAGS).or_empty().says(says)).also(409)
    }

    fn in_workspace<R: Resource>(self) -> Self {
        if has_workspaces::<R>() { self.filter("workspace_id", workspace()) } else { self }
    }
}

fn workspace() -> Schema {
    any_text().eg("ws-market-3f9a01").says("Id or slug of a workspace. A workspace's own key may leave it out.")
}

fn has_workspaces<R: Resource>() -> bool {
    matches!(R::TABLE.tenancy, Tenancy::Either | Tenancy::OneOrSeveral | Tenancy::Workspace("workspace_id"))
}

fn item_path<R: Resource>() -> String {
    format!("{}/{{id}}", R::PATH)
}

/// The object's name as a person says it; the names of policies begin with what they are.
fn spoken(object: &str) -> String {
    match object.strip_prefix("policy_") {
        Some(what) => format!("{} policy", what.replace('_', " ")),
        None => object.replace(['-', '_'], " ").replace("api key", "API key"),
    }
}

fn plural(name: &str) -> String {
    name.strip_suffix('y')
        .filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']))
        .map_or_else(|| format!("{name}s"), |stem| format!("{stem}ies"))
}

fn article(object: &str) -> String {
    let name = spoken(object);
    // `a user`, `a usage limits policy`: only these of our words begin with a vowel that is heard.
    let word = if name.starts_with(['a', 'e', 'i', 'o', 'A']) { "an" } else { "a" };
    format!("{word} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_in_english() {
        for (object, one, many) in [
            ("policy_rate_limits", "a rate limits policy", "rate limits policies"),
            ("policy_usage_limits", "a usage limits policy", "usage limits policies"),
            ("api-key", "an API key", "API keys"),
            ("virtual-key", "a virtual key", "virtual keys"),
            ("integration", "an integration", "integrations"),
            ("user", "a user", "users"),
        ] {
            assert_eq!((article(object).as_str(), plural(&spoken(object)).as_str()), (one, many));
        }
    }
}
