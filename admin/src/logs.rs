//! Logs of calls: who may see which (`view`), which are asked for (`filters`), and how one is shown (`row`, `bodies`).
//! Lists, exports and everything else that reads `request_logs` goes through them, so that none can forget a tenant.
//! Calls that applications report (`custom`) are priced (`price`) and stored (`add`) here, and what must go is erased.
//! Why a call went where it went is told by `story`; whole files of them are made by `exports`.

pub mod account;
pub mod add;
pub mod bodies;
pub mod count;
pub mod custom;
pub mod erase;
pub mod exports;
pub mod filters;
pub mod mask;
pub mod price;
pub mod row;
pub mod story;
pub mod view;

pub use view::LogView;
