//! Logs of calls: who may see which (`view`), which are asked for (`filters`), and how one is shown (`row`). Lists, exports
//! and everything else that reads `request_logs` goes through all three, so that none can forget a tenant.

pub mod filters;
pub mod row;
pub mod view;

pub use view::View;
