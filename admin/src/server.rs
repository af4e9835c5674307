//! The running service: connections of clients (`connections`), the layers around every request (`observe`, `panics`),
//! the one door to the handlers (`gate`, with `conform`: does the request say what its operation knows), all routes (`router`), and pages for those who watch it (`health`).

mod conform;
mod connections;
mod gate;
mod health;
mod invite_page;
mod link_page;
mod mcp_login_pages;
mod mcp_oauth_pages;
mod observe;
mod panics;
mod plain_page;
mod router;
mod serve;
mod small_body;

pub use serve::{serve, serve_on};
