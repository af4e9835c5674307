//! Logs of calls: who may see which (`view`), which are asked for (`filters`), and how one is shown (`row`, `logged_body`).
//! Lists, exports and everything else that reads `request_logs` goes through them, so that none can forget a tenant.
//! Calls that applications report (`custom`) are priced (`price`) and stored (`add`) here, and what must go is erased.
//! Why a call went where it went is explained by `routing_story`; whole files of them are made by `exports`.

pub mod account;
pub mod add;
pub mod count;
pub mod custom;
pub mod erase;
pub mod exports;
pub mod filters;
pub mod logged_body;
pub mod mask;
pub mod price;
pub mod routing_story;
pub mod row;
pub mod view;

pub use view::LogView;
