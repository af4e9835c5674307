//! Handlers by operation. Only an operation of the route table can be given a handler, and which ones have one is
//! known from here: the gate answers 501 for the others, and the OpenAPI document says so.

use crate::app::App;
use crate::openapi::Doc;
use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use shared::routes::{Method, Operation, operations};
use std::collections::HashMap;
use std::sync::LazyLock;

#[derive(Default)]
pub struct Routes {
    router: Router<App>,
    built: Vec<&'static Operation>,
    docs: Vec<(&'static Operation, Doc)>,
}

impl Routes {
    /// `path` is as in the route table: relative to `/v1`, `{…}` for parameters whatever their name.
    pub fn get<H: Handler<T, App>, T: 'static>(self, path: &str, handler: H) -> Self {
        self.add(Method::Get, path, get(handler))
    }

    pub fn post<H: Handler<T, App>, T: 'static>(self, path: &str, handler: H) -> Self {
        self.add(Method::Post, path, post(handler))
    }

    pub fn put<H: Handler<T, App>, T: 'static>(self, path: &str, handler: H) -> Self {
        self.add(Method::Put, path, put(handler))
    }

    pub fn patch<H: Handler<T, App>, T: 'static>(self, path: &str, handler: H) -> Self {
        self.add(Method::Patch, path, patch(handler))
    }

    pub fn delete<H: Handler<T, App>, T: 'static>(self, path: &str, handler: H) -> Self {
        self.add(Method::Delete, path, delete(handler))
    }

    pub fn merge(mut self, other: Self) -> Self {
        self.built.extend(other.built);
        self.docs.extend(other.docs);
        Self { router: self.router.merge(other.router), ..self }
    }

    /// How the OpenAPI document shows these operations; see `openapi`.
    pub fn describe(mut self, docs: impl IntoIterator<Item = Doc>) -> Self {
        let docs = docs.into_iter().map(|doc| (operation(doc.method, &doc.path), doc));
        self.docs.extend(docs);
        self
    }

    pub fn built(&self) -> &[&'static Operation] {
        &self.built
    }

    pub fn docs(&self) -> &[(&'static Operation, Doc)] {
        &self.docs
    }

    pub fn into_router(self) -> Router<App> {
        self.router
    }

    fn add(mut self, method: Method, path: &str, handler: MethodRouter<App>) -> Self {
        let operation = operation(method, path);
        self.built.push(operation);
        // axum wants one name per position, the contract has several.
        Self { router: self.router.route(&format!("/v1{}", numbered(operation.path)), handler), ..self }
    }
}

/// Found by the numbered template: equal but for the names of parameters.
fn operation(method: Method, path: &str) -> &'static Operation {
    static BY_TEMPLATE: LazyLock<HashMap<(Method, String), &'static Operation>> =
        LazyLock::new(|| operations().map(|one| ((one.method, numbered(one.path)), one)).collect());
    let operation = BY_TEMPLATE.get(&(method, numbered(path)));
    operation.unwrap_or_else(|| panic!("{} {path} is not in the route table", method.as_str()))
}

/// `/configs/{slug}/versions/{id}` is `/configs/{p2}/versions/{p4}`.
fn numbered(template: &str) -> String {
    let segments = template.split('/').enumerate().map(|(n, segment)| {
        if segment.starts_with("{*") {
            format!("{{*p{n}}}")
        } else if segment.starts_with('{') {
            format!("{{p{n}}}")
        } else {
            segment.to_owned()
        }
    });
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn nothing() {}

    #[test]
    fn the_names_of_parameters_do_not_matter() {
        let routes = Routes::default().get("/labels/{x}", nothing).put("/labels/{labelId}", nothing);
        let built: Vec<_> = routes.built().iter().map(|one| (one.method, one.path)).collect();
        assert_eq!(built, [(Method::Get, "/labels/{labelId}"), (Method::Put, "/labels/{labelId}")]);
        assert_eq!(numbered("/p/{provider}/{*model}"), "/p/{p2}/{*p3}");
    }

    #[test]
    #[should_panic(expected = "is not in the route table")]
    fn what_the_table_does_not_have_cannot_be_built() {
        let _ = Routes::default().get("/invented", nothing);
    }
}
