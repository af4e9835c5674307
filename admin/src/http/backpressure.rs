//! Queues and limits that keep one caller from using up what all share: database connections (`db_queue`), searches
//! of logs (`log_queries`), what takes a core (`turns`; messages of strangers: `judges`), calls of one credential (`request_limit`). Limits that customers
//! set are in `limits`.

pub mod db_queue;
pub mod judges;
pub mod log_queries;
pub mod request_limit;
pub mod turns;
