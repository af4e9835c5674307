//! What can be typed: the list of commands, and which function runs each. What a command takes stands in its own file.

use crate::commands::{
    api, audit, completion, connect, contexts, doctor, edit, explain, import, keys, login, logs, providers, resources,
    tree, try_call, usage, whoami,
};
use crate::global::Global;
use crate::outcome::{Exit, Failure};
use crate::session::Session;
use clap::{CommandFactory, Parser, Subcommand};

/// The gateway from a terminal, a script or a pipeline.
///
/// Exit codes: 0 fine, 1 failed, 2 there are changes (plan, diff, drift), 3 faults were found (validate, doctor), 4 sign in,
/// 5 refused, 6 changed by somebody else meanwhile.
#[derive(Parser)]
#[command(name = "portcullis", version, propagate_version = true, max_term_width = 100)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    Login(login::Login),
    #[command(subcommand)]
    Context(contexts::Contexts),
    /// Say whose key this is: its kind, workspace, scopes and end.
    Whoami,
    Get(resources::Get),
    List(resources::List),
    Create(resources::Create),
    Edit(edit::Edit),
    Delete(resources::Delete),
    #[command(subcommand)]
    Keys(keys::Keys),
    #[command(subcommand)]
    Providers(providers::Providers),
    Models(providers::Models),
    #[command(subcommand)]
    Logs(logs::Logs),
    Explain(explain::Explain),
    Try(try_call::Try),
    Usage(usage::Usage),
    Budgets(usage::Budgets),
    #[command(subcommand)]
    Audit(audit::Audit),
    Validate(tree::Validate),
    Plan(tree::PlanCommand),
    Apply(tree::Apply),
    Diff(tree::Diff),
    Drift(tree::Drift),
    Export(tree::Export),
    Import(import::ImportCommand),
    Doctor(doctor::Doctor),
    Connect(connect::Connect),
    Api(api::Api),
    /// Write the interface's OpenAPI document.
    Openapi,
    Completion(completion::Completion),
    Man(completion::Man),
}

pub async fn run(Arguments { global, command }: Arguments) -> Result<Exit, Failure> {
    let session = || Session::open(&global);
    match command {
        // These work without a gateway.
        Command::Login(login) => login::run(&global, login).await,
        Command::Context(contexts) => contexts::run(&global, contexts),
        Command::Validate(validate) => tree::validate(&validate),
        Command::Import(import) => import::run(&global, &import),
        Command::Completion(completion) => completion::run(&completion, Arguments::command()),
        Command::Man(man) => completion::man(&man, Arguments::command()),
        Command::Openapi => api::openapi(&global).await,
        Command::Connect(connect) => connect::run(&global, connect).await,
        Command::Doctor(doctor) => doctor::run(&global, &doctor).await,
        Command::Whoami => whoami::run(&session()?).await,
        Command::Get(get) => resources::get(&session()?, &get).await,
        Command::List(list) => resources::list(&session()?, &list).await,
        Command::Create(create) => resources::create(&session()?, &create).await,
        Command::Edit(edit) => edit::run(&session()?, &edit).await,
        Command::Delete(delete) => resources::delete(&session()?, &delete).await,
        Command::Keys(keys) => keys::run(&session()?, keys).await,
        Command::Providers(providers) => providers::run(&session()?, &providers).await,
        Command::Models(models) => providers::models(&session()?, &models).await,
        Command::Logs(logs) => logs::run(&session()?, logs).await,
        Command::Explain(explain) => explain::run(&session()?, &explain).await,
        Command::Try(call) => try_call::run(&session()?, &call).await,
        Command::Usage(usage) => usage::run(&session()?, &usage).await,
        Command::Budgets(budgets) => usage::budgets(&session()?, &budgets).await,
        Command::Audit(audit) => audit::run(&session()?, &audit).await,
        Command::Plan(plan) => tree::plan(&session()?, &plan).await,
        Command::Apply(apply) => tree::apply(&session()?, &apply).await,
        Command::Diff(diff) => tree::diff(&session()?, &diff).await,
        Command::Drift(drift) => tree::drift(&session()?, &drift).await,
        Command::Export(export) => tree::export(&session()?, &export).await,
        Command::Api(api) => api::run(&session()?, &api).await,
    }
}
