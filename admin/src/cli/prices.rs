//! `gateway-admin prices import`: a price list from a file or from the service that the settings name, what it changes, and the
//! folder that it is stored in. What a list means is decided in `shared::cost::prices::import`. Every organisation pays by these prices, so
//! each has the import in its audit trail.

use crate::app::settings::Settings;
use crate::audit::{self, AuditRecord};
use crate::outbound::model_configs::ModelConfigFetcher;
use anyhow::{Context as _, bail};
use chrono::Utc;
use serde_json::{Value, json};
use shared::cost::prices::import::{
    ImportPlan, ListFormat, MAX_FILE_BYTES, ProviderPlan, RowChange, SourceList, UnreadableList,
};
use shared::cost::prices::{PriceFetch as _, PriceStore, bundled_providers};
use shared::db;
use shared::providers::Providers;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;
use tokio_postgres::Client;
use uuid::Uuid;

/// Names that are printed of many.
const MAX_NAMES: usize = 10;

pub async fn import(
    settings: &Settings,
    file: Option<&Path>,
    format: Option<ListFormat>,
    is_plan: bool,
    say: &mut dyn FnMut(&str),
) -> anyhow::Result<()> {
    let store = PriceStore::open(&settings.prices, &settings.log_store)?;
    if !is_plan {
        // Before anybody waits for a list.
        store.folder()?;
    }
    let known = known_providers(settings)?;
    let list = match file {
        Some(file) => read(file, format).with_context(|| file.display().to_string())?,
        None => fetch(settings, &known, format).await?,
    };
    let mut installed = BTreeMap::new();
    for provider in list.providers() {
        if !known.contains(provider) {
            bail!(
                "`{provider}` is no provider of this gateway: a file in our format is named after one, as openai.json"
            );
        }
        installed.extend(store.text(provider).await?.map(|text| (provider.to_owned(), text)));
    }
    let now = Utc::now();
    let plan = ImportPlan::new(&list, &installed, &now.format("%Y-%m-%d").to_string())?;
    lines(&plan).iter().for_each(|line| say(line.as_str()));
    if settings.prices.model_configs_proxy_fetch_enabled {
        say("MODEL_CONFIGS_PROXY_FETCH_ENABLED is ON: what that service has is used before these files");
    }
    if plan.is_empty() {
        say("nothing changes");
    } else if !is_plan {
        // Nothing is stored that could not be recorded.
        let mut client = db::connect(&settings.database).await.context(UNRECORDED)?;
        let organisations = organisations(&client).await.context(UNRECORDED)?;
        let moment = now.format("%Y-%m-%dT%H-%M-%SZ").to_string();
        let saved = save(&store, &plan, &moment).await;
        let source = shown_source(file, settings.prices.model_configs_proxy_url.as_deref());
        let trace = ImportTrace { after: shown(&plan, source, &moment), has_failed: saved.is_err() };
        record(&mut client, &organisations, &trace).await.context("the prices were stored, and not recorded")?;
        let count = saved?;
        say(&format!(
            "{count} files stored in {}; those they replace are in editions/{moment}. Services use them within an hour",
            store.folder()?
        ));
    }
    Ok(())
}

/// Every organisation reads the trail, and where the operator's files and services are is not theirs to know: the name of the
/// file, or the host of the service.
fn shown_source(file: Option<&Path>, url: Option<&str>) -> Option<String> {
    match file {
        Some(file) => file.file_name().map(|name| name.to_string_lossy().into_owned()),
        None => url::Url::parse(url?).ok()?.host_str().map(str::to_owned),
    }
}

fn known_providers(settings: &Settings) -> anyhow::Result<BTreeSet<String>> {
    let providers = Providers::load(settings.prices.providers_file.as_deref())?;
    let slugs = providers.iter().map(|provider| provider.slug.to_string());
    Ok(slugs.chain(bundled_providers().map(str::to_owned)).collect())
}

fn read(file: &Path, format: Option<ListFormat>) -> anyhow::Result<SourceList> {
    let mut text = String::new();
    // One more than may be, so that a longer file is seen to be one.
    std::fs::File::open(file)?.take(MAX_FILE_BYTES as u64 + 1).read_to_string(&mut text)?;
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    Ok(SourceList::read(&text, format, stem)?)
}

/// The files of the service that the settings name; it has ours.
async fn fetch(
    settings: &Settings,
    known: &BTreeSet<String>,
    format: Option<ListFormat>,
) -> anyhow::Result<SourceList> {
    if format.is_some_and(|format| format != ListFormat::Ours) {
        bail!("name the file of the list: MODEL_CONFIGS_PROXY_URL serves prices in our own format");
    }
    let Some(url) = &settings.prices.model_configs_proxy_url else {
        bail!("name a file, or set MODEL_CONFIGS_PROXY_URL to a service that has /pricing/{{provider}}");
    };
    let (url, fetcher) = (url.trim_end_matches('/'), ModelConfigFetcher::new()?);
    let mut texts = BTreeMap::new();
    for provider in known {
        let url = format!("{url}/pricing/{provider}");
        let text = fetcher.get(&url).await.with_context(|| format!("the prices of {provider} from {url}"))?;
        texts.extend(text.map(|text| (provider.clone(), text)));
    }
    if texts.is_empty() {
        return Err(UnreadableList::Empty(ListFormat::Ours.name()).into());
    }
    Ok(SourceList::ours(&texts)?)
}

const UNRECORDED: &str =
    "imports are recorded in the audit trail: the database of DATABASE_URL is needed, and `migrate` before the first";

/// What the trail says of an import.
struct ImportTrace {
    after: Value,
    has_failed: bool,
}

/// Those that have a trail.
async fn organisations(client: &Client) -> anyhow::Result<Vec<Uuid>> {
    const ALL: &str = "SELECT id FROM organisations ORDER BY id";
    Ok(client.query(ALL, &[]).await?.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

async fn record(client: &mut Client, organisations: &[Uuid], trace: &ImportTrace) -> anyhow::Result<()> {
    let tx = client.transaction().await?;
    for organisation in organisations {
        let mut record = AuditRecord::by_system(*organisation, "prices", "import");
        record.after = Some(trace.after.clone());
        if trace.has_failed {
            record.response_status_code = 500;
            record.error = Some("not all of the new prices could be stored".to_owned());
        }
        audit::record(&tx, &record).await?;
    }
    Ok(tx.commit().await?)
}

/// How many rows of each provider change, and under which edition the files are found that were replaced.
fn shown(plan: &ImportPlan, source: Option<String>, moment: &str) -> Value {
    let changed = plan.providers.iter().filter(|provider| provider.is_changed());
    let providers = changed.map(|provider| {
        let counts = ChangeCounts::new(&provider.changes);
        let refused = plan.refused.iter().filter(|refusal| refusal.provider == provider.provider).count();
        let counts = json!({ "new": counts.new, "changed": counts.changed, "gone": counts.gone,
            "unchanged": provider.unchanged, "refused": refused });
        (provider.provider.clone(), counts)
    });
    json!({ "by": "gateway-admin prices import", "source": source, "edition": moment,
        "providers": providers.collect::<serde_json::Map<_, _>>() })
}

#[derive(Debug, Default)]
struct ChangeCounts {
    new: usize,
    changed: usize,
    gone: usize,
}

impl ChangeCounts {
    fn new(changes: &[RowChange]) -> Self {
        let mut counts = Self::default();
        for change in changes {
            match change {
                RowChange::New { .. } => counts.new += 1,
                RowChange::Changed { .. } => counts.changed += 1,
                RowChange::Gone { .. } => counts.gone += 1,
            }
        }
        counts
    }
}

async fn save(store: &PriceStore, plan: &ImportPlan, moment: &str) -> anyhow::Result<usize> {
    let mut count = 0;
    for changed in plan.providers.iter().filter(|provider| provider.is_changed()) {
        store.replace(&changed.provider, changed.text(), moment).await?;
        count += 1;
    }
    Ok(count)
}

/// What is printed of a plan.
fn lines(plan: &ImportPlan) -> Vec<String> {
    let mut lines = vec!["Rates are cents for one unit.".to_owned()];
    plan.providers.iter().for_each(|provider| add_provider(&mut lines, provider));
    let mut refused: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for refusal in &plan.refused {
        refused.entry((&refusal.provider, &refusal.reason)).or_default().push(&refusal.model);
    }
    for ((provider, reason), models) in refused {
        let provider = if provider.is_empty() { "the list" } else { provider };
        lines.push(format!("refused of {provider}, {reason}: {}", named(&models)));
    }
    lines
}

fn add_provider(lines: &mut Vec<String>, provider: &ProviderPlan) {
    let ChangeCounts { new, changed, gone } = ChangeCounts::new(&provider.changes);
    let (mut rows, mut staying) = (Vec::new(), Vec::new());
    for change in &provider.changes {
        match change {
            RowChange::Gone { model, stays_as_of: Some(_) } => staying.push(model.as_str()),
            change => rows.push(format!("  {change}")),
        }
    }
    let (name, unchanged) = (&provider.provider, provider.unchanged);
    lines.push(format!("{name}: {new} new, {changed} changed, {gone} gone, {unchanged} unchanged"));
    lines.extend(rows);
    if !staying.is_empty() {
        lines.push(format!("  gone, with the price and date that they have: {}", named(&staying)));
    }
}

/// The first of them, and how many there are.
fn named(models: &[&str]) -> String {
    let shown = models.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
    match models.len() - models.len().min(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_printed_with_what_is_refused_and_why() {
        let names: String =
            (0..12).map(|place| format!(r#""m{place}": {{"litellm_provider": "elsewhere"}},"#)).collect();
        let text = format!(
            r#"{{{names} "groq/new": {{"litellm_provider": "groq", "input_cost_per_token": 1e-6}},
            "fallback_generalizations": {{}}}}"#
        );
        let list = SourceList::read(&text, None, "").unwrap();
        let had = r#"{"old": {"as_of": "2026-08", "pricing_config": {}}}"#;
        let installed = BTreeMap::from([("groq".to_owned(), had.to_owned())]);
        let plan = ImportPlan::new(&list, &installed, "2026-11-18").unwrap();
        assert_eq!(
            lines(&plan),
            [
                "Rates are cents for one unit.",
                "groq: 1 new, 0 changed, 1 gone, 0 unchanged",
                "  new new: request_token 0.0001",
                "  gone, with the price and date that they have: old",
                "refused of the list, no model: fallback_generalizations",
                "refused of elsewhere, not a provider of this gateway: m0, m1, m10, m11, m2, m3, m4, m5, m6, m7 and 2 more",
            ]
        );
    }
}
