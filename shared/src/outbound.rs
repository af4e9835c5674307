//! Which hosts this product may be made to call. Both services call addresses that customers name (custom hosts, key
//! sets), so the rules stand here, without any socket; whoever dials asks `Guard` for the origin and judges each
//! resolved address with `check_address`.

mod guard;
mod origin;

pub use guard::{Guard, check_address, check_host, path_of};
pub use origin::{BadHost, Host, Origin, Scheme};
