//! `providers test` and `models`: whether an account works, and what it offers.

use crate::http::{Call, segment};
use crate::kinds;
use crate::objects;
use crate::outcome::{Exit, Failure};
use crate::output::{Column, printable};
use crate::session::Session;
use reqwest::Method;

/// Try the accounts of providers.
#[derive(clap::Subcommand)]
pub enum Providers {
    /// Ask the provider whether it accepts the account. Ends with 3 when it does not.
    Test {
        /// Slug of a provider; --integration takes that of an integration.
        name: String,
        /// The name is that of an integration.
        #[arg(long)]
        integration: bool,
    },
}

/// List the models that the key can ask.
#[derive(clap::Args)]
pub struct Models {
    /// Only those of these providers, by commas.
    #[arg(long)]
    provider: Option<String>,
}

const COLUMNS: &[Column] = &[
    Column::new("id", "id"),
    Column::new("owned by", "owned_by"),
    Column::new("context", "context_window"),
    Column::wide("max output", "max_output_tokens"),
    Column::wide("input", "input_modalities"),
    Column::wide("retired", "deprecation_date"),
];

pub async fn run(session: &Session, command: &Providers) -> Result<Exit, Failure> {
    let Providers::Test { name, integration } = command;
    let slug = if *integration {
        name.clone()
    } else {
        let provider = objects::find(session, kinds::find("provider")?, name).await?.body;
        provider["integration_id"].as_str().unwrap_or_default().to_owned()
    };
    let answer = session.client.call(Call::new(Method::POST, format!("/integrations/{}/test", segment(&slug)))).await?;
    session.output.object(&answer)?;
    let is_accepted = answer["success"] != false;
    session.output.hint(if is_accepted { "portcullis models" } else { "portcullis edit integration NAME" });
    match is_accepted {
        true => Ok(Exit::Fine),
        false => Err(Failure::Wanting(printable(answer["message"].as_str().unwrap_or("the account was refused")))),
    }
}

pub async fn models(session: &Session, models: &Models) -> Result<Exit, Failure> {
    let query = models.provider.iter().map(|slugs| ("provider".to_owned(), slugs.clone()));
    let answer = session.client.call(Call::get("/models").query(query)).await?;
    session.output.rows(answer["data"].as_array().map_or(&[][..], Vec::as_slice), COLUMNS)?;
    session.output.hint("portcullis try \"Hello\" -m MODEL");
    Ok(Exit::Fine)
}
