//! `validate`, `plan`, `apply`, `diff`, `drift` and `export`: files and a gateway.

use crate::context::replace_privately;
use crate::http::Call;
use crate::kinds;
use crate::outcome::{Exit, Failure, at_path};
use crate::output::{self, yaml};
use crate::secret_file::SecretList;
use crate::session::Session;
use crate::tree::plan::{Action, Options, Plan};
use crate::tree::state::{State, all_kinds};
use crate::tree::{Lock, Tree, apply as applying, export as exporting, plan as planning, text_diff};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Check files without a gateway: YAML, fields, variables, references. Ends with 3 when there are faults.
#[derive(clap::Args)]
pub struct Validate {
    /// A folder or a file.
    #[arg(short = 'f', long, value_name = "DIR", default_value = ".")]
    files: PathBuf,
}

/// Say what would change so that the gateway holds what the files say. Ends with 2 when there are changes.
#[derive(clap::Args)]
pub struct PlanCommand {
    /// A folder or a file.
    #[arg(short = 'f', long, value_name = "DIR", default_value = ".")]
    files: PathBuf,
    /// Save the plan, for `portcullis apply -f PLAN.json`. Secrets stay out of it.
    #[arg(long, value_name = "PLAN.json")]
    out: Option<PathBuf>,
    #[command(flatten)]
    choices: Choices,
}

/// Make the gateway hold what the files say. Ends with 6 when somebody else changed an object meanwhile.
#[derive(clap::Args)]
pub struct Apply {
    /// A folder, a file, or a saved plan, which is done exactly or not at all.
    #[arg(short = 'f', long, value_name = "DIR|PLAN.json", default_value = ".")]
    files: PathBuf,
    #[command(flatten)]
    choices: Choices,
    /// How many objects are written at once.
    #[arg(long, default_value_t = 8)]
    parallel: usize,
    /// Append the secrets of new keys and deployments to this file, which only you can read; needed where such are made.
    #[arg(long, value_name = "FILE")]
    secrets_out: Option<PathBuf>,
}

#[derive(clap::Args)]
struct Choices {
    /// Delete what was applied from these files and is no longer in them.
    #[arg(long)]
    prune: bool,
    /// Delete nothing when more than so many objects would go.
    #[arg(long, default_value_t = 5)]
    max_deletes: usize,
    /// Only these objects, as config/market/main.
    #[arg(long, value_name = "KIND/WORKSPACE/NAME")]
    target: Vec<String>,
    /// Overwrite what somebody else changed since it was applied.
    #[arg(long)]
    take_over: bool,
    /// Send secrets again: whether they differ cannot be seen.
    #[arg(long)]
    write_secrets: bool,
}

/// Show the difference between an object in the files and the gateway's. Ends with 2 when there is one.
#[derive(clap::Args)]
pub struct Diff {
    /// As config/market/main; all objects unless given.
    object: Option<String>,
    /// A folder or a file.
    #[arg(short = 'f', long, value_name = "DIR", default_value = ".")]
    files: PathBuf,
}

/// Show what was changed in the gateway since it was applied from a folder, and by whom. Ends with 2 when something was.
#[derive(clap::Args)]
pub struct Drift {
    /// The folder.
    #[arg(short = 'f', long, value_name = "DIR", default_value = ".")]
    files: PathBuf,
}

/// Write what the gateway holds as files. Secrets become variables.
#[derive(clap::Args)]
pub struct Export {
    /// An empty folder, or one that does not exist; without it everything goes to stdout.
    #[arg(short = 'f', long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Only these kinds, by commas.
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<String>,
}

impl Choices {
    fn options(&self) -> Options {
        Options {
            prune: self.prune,
            max_deletes: self.max_deletes,
            take_over: self.take_over,
            write_secrets: self.write_secrets,
            targets: self.target.clone(),
        }
    }
}

pub fn validate(validate: &Validate) -> Result<Exit, Failure> {
    let tree = Tree::read(&validate.files)?;
    for fault in &tree.faults {
        output::line(&output::printable(&fault.to_string()));
    }
    eprintln!("{} objects, {} faults.", tree.objects.len(), tree.faults.len());
    Ok(if tree.faults.is_empty() { Exit::Fine } else { Exit::Wanting })
}

/// Files without faults, and the lock beside them.
fn checked(files: &Path) -> Result<(Tree, Lock), Failure> {
    let tree = Tree::read(files)?;
    if !tree.faults.is_empty() {
        let faults: Vec<String> = tree.faults.iter().map(ToString::to_string).collect();
        return Err(Failure::Wanting(format!("nothing was done, the files have faults:\n{}", faults.join("\n"))));
    }
    let lock = Lock::read(&tree.folder)?;
    Ok((tree, lock))
}

pub async fn plan(session: &Session, arguments: &PlanCommand) -> Result<Exit, Failure> {
    let (tree, lock) = checked(&arguments.files)?;
    let plan = planning::make(session, &tree, &lock, &arguments.choices.options()).await?;
    if let Some(path) = &arguments.out {
        let text = serde_json::to_string_pretty(&plan).map_err(|error| Failure::new(error.to_string()))?;
        replace_privately(path, (text + "\n").as_bytes())?;
    }
    if session.output.is_structured() {
        session.output.object(&serde_json::to_value(&plan).map_err(|error| Failure::new(error.to_string()))?)?;
    } else {
        output::write(&planning::text(&plan))?;
    }
    let saved = arguments.out.as_ref().unwrap_or(&arguments.files).display();
    session.output.hint(&format!("portcullis apply -f {saved}"));
    Ok(if planning::has_changes(&plan) { Exit::Changes } else { Exit::Fine })
}

pub async fn apply(session: &Session, arguments: &Apply) -> Result<Exit, Failure> {
    if session.client.is_shown() {
        return Err(Failure::new("apply makes many calls: portcullis plan -o json shows what they send"));
    }
    let (plan, folder, mut lock) = if is_plan(&arguments.files) {
        let text = at_path(&arguments.files, std::fs::read_to_string(&arguments.files))?;
        let plan = Plan::parse(&text)?;
        let folder = plan.folder.clone();
        if !folder.is_dir() {
            return Err(Failure::new(format!(
                "the plan was made for files in {}, which is not here",
                folder.display()
            )));
        }
        let lock = Lock::read(&folder)?;
        (plan, folder, lock)
    } else {
        let (tree, lock) = checked(&arguments.files)?;
        (planning::make(session, &tree, &lock, &arguments.choices.options()).await?, tree.folder.clone(), lock)
    };
    if plan.count(Action::Conflict) > 0 {
        output::write(&planning::text(&plan))?;
        return Err(Failure::Conflict(
            "nothing was done: --take-over overwrites what others changed, or adapt the files".into(),
        ));
    }
    let makes_secret = |step: &&planning::Step| {
        step.action == Action::Create && ["api-key", "deployment"].contains(&step.address.kind)
    };
    let new_secrets = plan.steps.iter().filter(makes_secret).count();
    if new_secrets > 0 && arguments.secrets_out.is_none() {
        let why = "keys and tokens would be made: say where their secrets go by --secrets-out FILE";
        return Err(Failure::new(format!("{new_secrets} {why}")));
    }
    let mut secrets = match &arguments.secrets_out {
        Some(path) if new_secrets > 0 => Some(SecretList::open(path)?),
        _ => None,
    };
    let mut run = applying::Run::new(session, &folder, arguments.parallel);
    let mut save = |address: &crate::tree::Address, secret: &str| match &mut secrets {
        Some(list) => list.append(&format!("{address}\t{secret}\n")),
        None => Ok(()),
    };
    run.apply(&plan, &mut lock, &mut save).await?;
    let (done, failures) = (run.done, run.failures);
    for (address, failure) in &failures {
        eprintln!("{}", output::printable_lines(&format!("{address}: {failure}")));
    }
    let held_back = plan.steps.iter().filter(|step| step.action == Action::Delete && !step.note.is_empty()).count();
    eprintln!(
        "{done} objects written, {} unchanged, {held_back} deletions held back, {} failed.",
        plan.unchanged.len(),
        failures.len()
    );
    session.output.hint(&format!("portcullis plan -f {}", arguments.files.display()));
    let is_conflict = failures.iter().any(|(_, failure)| matches!(failure, Failure::Conflict(_)));
    let is_signed_out = failures.iter().any(|(_, failure)| matches!(failure, Failure::SignIn(_)));
    let is_refused = failures.iter().any(|(_, failure)| matches!(failure, Failure::Refused(_)));
    Ok(match () {
        () if failures.is_empty() => Exit::Fine,
        () if is_conflict => Exit::Conflict,
        () if is_signed_out => Exit::SignIn,
        () if is_refused => Exit::Refused,
        () => Exit::Failed,
    })
}

/// A saved plan is a file of JSON with steps, whatever it is called; a document is not.
fn is_plan(path: &Path) -> bool {
    let text = if path.is_file() { std::fs::read_to_string(path).ok() } else { None };
    let value = text.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    value.is_some_and(|value| value["steps"].is_array() && value["kind"].is_null())
}

pub async fn diff(session: &Session, arguments: &Diff) -> Result<Exit, Failure> {
    let (tree, lock) = checked(&arguments.files)?;
    let options = Options {
        take_over: true,
        max_deletes: usize::MAX,
        targets: arguments.object.iter().cloned().collect(),
        ..Options::default()
    };
    let plan = planning::make(session, &tree, &lock, &options).await?;
    for step in &plan.steps {
        let side = |value: fn(&crate::tree::plan::Change) -> &Value| {
            let lines = step.changes.iter().filter(|change| !value(change).is_null());
            lines.map(|change| yaml::text(&json!({ &change.path: value(change) }))).collect::<String>()
        };
        let (before, mut after) = (side(|change| &change.from), side(|change| &change.to));
        if step.action == Action::Create {
            after = yaml::text(&Value::Object(step.body.clone()));
        }
        output::write(&format!("{}\n{}", output::printable(&step.address.to_string()), text_diff(&before, &after)))?;
    }
    session.output.hint(&format!("portcullis plan -f {}", arguments.files.display()));
    Ok(if plan.steps.is_empty() { Exit::Fine } else { Exit::Changes })
}

pub async fn drift(session: &Session, arguments: &Drift) -> Result<Exit, Failure> {
    let lock = Lock::read(&arguments.files)?;
    let named: Vec<&str> = lock.kinds().collect();
    let state = State::load(session, all_kinds().filter(|kind| named.contains(&kind.name))).await?;
    let applied: Vec<_> = lock.applied(&state.organisation).cloned().collect();
    if applied.is_empty() {
        return Err(Failure::new("nothing was applied from this folder yet"));
    }
    let live = state.read(applied.iter().map(|found| found.address.clone()).collect()).await?;
    let mut rows = Vec::new();
    for object in &applied {
        let Some(found) = live.get(&object.address) else {
            rows.push(drifted(session, object, "gone", &object.applied_at).await);
            continue;
        };
        let fields = object.changed_fields(&found.fields);
        if !fields.is_empty() {
            rows.push(drifted(session, object, &fields.join(","), &found.changed_at).await);
        }
    }
    session.output.rows(&rows, DRIFT)?;
    eprintln!("{} of {} objects differ from what was applied.", rows.len(), applied.len());
    session.output.hint("portcullis diff, or portcullis apply --take-over");
    Ok(if rows.is_empty() { Exit::Fine } else { Exit::Changes })
}

const DRIFT: &[output::Column] = &[
    output::Column::new("object", "object"),
    output::Column::new("fields", "fields"),
    output::Column::new("by", "by"),
    output::Column::new("at", "at"),
];

/// Who changed it last, where the key may read the audit trail.
async fn drifted(session: &Session, object: &crate::tree::Applied, fields: &str, at: &str) -> Value {
    let query = [("resource_id", object.id.as_str()), ("page_size", "1")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let trail = session.client.look_up(Call::get("/audit-logs").query(query)).await;
    let record = trail.map(|found| found.body["records"][0].clone()).unwrap_or_default();
    let by = ["user_email", "api_key_name", "user_type"].iter().find_map(|field| record[*field].as_str());
    let at = record["timestamp"].as_str().unwrap_or(at);
    json!({ "object": object.address.to_string(), "fields": fields, "by": by.unwrap_or("?"), "at": at, "id": object.id })
}

pub async fn export(session: &Session, arguments: &Export) -> Result<Exit, Failure> {
    let meant = arguments.kinds.iter().map(|kind| kinds::find(kind)).collect::<Result<Vec<_>, _>>()?;
    let meant = if meant.is_empty() { all_kinds().collect() } else { meant };
    if let Some(folder) = &arguments.files
        && folder.exists()
        && at_path(folder, std::fs::read_dir(folder))?.next().is_some()
    {
        return Err(Failure::new(format!("{} is not empty", folder.display())));
    }
    // All kinds are listed, so that ids of any of them can be named.
    let state = State::load(session, all_kinds()).await?;
    let workspace = match &session.workspace {
        Some(named) => {
            Some(state.workspace_name(named).ok_or_else(|| Failure::new(format!("there is no workspace {named}")))?)
        }
        None => None,
    };
    let (addresses, left_out) = exporting::addresses(&state, &meant, workspace);
    for address in &left_out {
        let address = output::printable(&address.to_string());
        eprintln!("left out: several objects are called {address}, or its name holds a brace");
    }
    let files: BTreeMap<PathBuf, String> = exporting::files(&state.read(addresses).await?);
    for (path, text) in &files {
        match &arguments.files {
            None => output::write(text)?,
            Some(folder) => {
                let path = folder.join(path);
                let parent = path.parent().unwrap_or(folder);
                at_path(parent, std::fs::create_dir_all(parent))?;
                replace_privately(&path, text.as_bytes())?;
            }
        }
    }
    session.output.hint("portcullis validate -f DIR");
    Ok(Exit::Fine)
}
