//! The control plane. A request passes `server` (`observe`: id, client address, log line, metrics, panics; `gate`: is it
//! an operation, who asks, may they) and then its handler in `resources`, which can rely on all of that. Handlers that
//! change something do so through a `crud::Action`, whose commit writes the audit record; plain resources get theirs
//! from `crud`. Operations of the route table that have no handler yet answer 501, so nothing pretends.
//!
//! The rooms, from the ground up. A room uses those above it in this list, never one below:
//!
//! | Room | Holds |
//! |---|---|
//! | `http` | errors, JSON bodies, queries, pages, times, fields that may be absent; queues that keep one caller from using up what all share (`backpressure`) |
//! | `outbound` | connections to addresses outside, guarded |
//! | `openapi` | how operations describe themselves, and the document made of that |
//! | `identity` | who calls, with which role and scopes, and whose objects they may touch |
//! | `saml` | the protocol of SAML: messages, signatures, whether an answer is to be believed |
//! | `limits` | rate and usage limits as the interface takes and shows them |
//! | `mail` | messages, and the SMTP server that they are handed to |
//! | `log_data` | the one door to logs and figures about them: rows, groups, series; whose they are, and which; logs as they arrive (`tail`), when budgets end, figures as sheets (`analytics`) |
//! | `app` | the state that every handler may use: database, services, metrics, and what the operator sets (`settings`) |
//! | `audit` | the trail of who did what, chained by hashes and verified |
//! | `crud` | the five verbs written once, versions, actions, routes, fields that several resources have, the rows by which cached responses are purged (`cache_purges`) |
//! | `logs` | logs of calls: bodies, add, price, erase, export, explain |
//! | `mcp_oauth` | tokens of people at MCP servers: discovery, registration, consent, refreshing |
//! | `resources` | the operations, one file or folder for each resource; how people sign in (`login`) |
//! | `console` | the page with which people use all of this, and its files |
//! | `jobs` | work that nobody asks for: expiry, rotation, reminders, resets, exports |
//! | `server` | the running service: router, gate, observation, connections, health |
//! | `cli` | the program `gateway-admin` and the commands of its operator |

pub mod app;
pub mod audit;
pub mod cli;
pub mod console;
pub mod crud;
pub mod http;
pub mod identity;
pub mod jobs;
pub mod limits;
pub mod log_data;
pub mod logs;
pub mod mail;
pub mod mcp_oauth;
pub mod openapi;
pub mod outbound;
pub mod resources;
pub mod saml;
pub mod server;

pub use crate::app::settings::Settings;
pub use app::App;
