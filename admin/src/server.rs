//! The running service: connections of clients (`connections`), the layers around every request (`observe`, `panics`),
//! the one door to the handlers (`gate`), all routes (`router`), and pages for those who watch it (`health`).

mod connections;
mod gate;
mod health;
mod observe;
mod panics;
mod router;
mod serve;

pub use serve::{serve, serve_on};
