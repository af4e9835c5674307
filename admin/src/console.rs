//! The console as this program serves it: one page for every address below `/console`, and the files which that page
//! loads. All of it is built from `admin/console` before the program is, and embedded; no key and no session is asked for,
//! because there is nothing in it but the page. What the page shows comes from the public interface alone.

mod assets;
mod page;

use axum::Router;
use axum::routing::get;

/// Where an invitation is accepted.
pub const INVITATION: &str = "/console/invite";

/// Whether this program was compiled with the console in it.
pub fn is_built() -> bool {
    assets::FILES.iter().any(|(name, _)| *name == assets::INDEX)
}

/// The files are named by hashes of what they hold; any other address is a screen, which the page itself reads.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/console", get(page::show))
        .route("/console/", get(page::show))
        .route("/console/{*screen}", get(page::show))
        .route("/console/assets/{name}", get(assets::show))
}

#[cfg(test)]
mod tests;
