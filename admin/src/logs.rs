//! Logs of calls beyond reading them, which is `log_data`: the bodies of one (`logged_body`), calls that applications report
//! (`custom`), priced (`price`) and stored (`add`); what must go is erased. Why a call went where it went is explained by
//! `routing_story`; whole files of logs are made by `exports`.

pub mod account;
pub mod add;
pub mod custom;
pub mod erase;
pub mod exports;
pub mod logged_body;
pub mod mask;
pub mod price;
pub mod routing_story;
