//! The table of providers: `conf/providers.toml`, bundled, with an operator's own rows over it. Both services read it,
//! so that admin accepts exactly the names that the proxy can serve.

mod account_fields;
mod address;
mod auth;
mod aws_models;
mod betas;
mod family;
mod job_wire;
mod model_list;
mod paid_path;
mod path_template;
mod repairs;
mod row;
mod variant;
mod wire;

pub use account_fields::{AccountFields, LayeredFields};
pub use address::Address;
pub use auth::Auth;
pub use aws_models::{AWS_REGION_GROUPS, ProfileLookup, foundation_model, is_account_profile};
pub use betas::Betas;
pub use family::{BilledBy, Family};
pub use job_wire::{JOB_CODECS, JobWire};
pub use model_list::{MODEL_LIST_FORMS, ModelList};
pub use paid_path::PaidPath;
pub use path_template::PathTemplate;
pub use repairs::Repairs;
pub use variant::Variant;
pub use wire::{CODECS, CONVERSATIONS, OBJECT_CODECS, Wire};

use http::{HeaderName, HeaderValue, Method, header};
use row::Row;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

const BUNDLED: &str = include_str!("../../conf/providers.toml");

/// Providers by name. Built once; a look-up allocates nothing.
#[derive(Debug)]
pub struct Providers(HashMap<Box<str>, Arc<ProviderEntry>>);

#[derive(Debug)]
pub struct ProviderEntry {
    /// The name requests use.
    pub slug: Box<str>,
    /// The name people use.
    pub name: Box<str>,
    /// Without one, a request must name its own.
    pub base_url: Option<Box<str>>,
    pub auth: Auth,
    /// Sent with every request unless the caller sends its own.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The same with places that a request or an account fills.
    pub address: Option<Address>,
    /// What fills places of the address and of paths where nobody says otherwise.
    options: BTreeMap<String, String>,
    /// For each place the fields of a config or an account that fill it, strongest first.
    placement: BTreeMap<String, Vec<String>>,
    /// The formats that conversations are translated into. The first that serves a model is taken.
    wires: Vec<Wire>,
    /// Those of families that are one object there and one back.
    object_wires: Vec<(Family, Wire)>,
    /// Those of files, batches and fine-tuning.
    job_wires: Vec<(Family, JobWire)>,
    /// Addresses of single families.
    bases: Vec<(Family, Address)>,
    /// Where its models are listed; none of a provider of which only its address is known.
    pub model_list: Option<ModelList>,
    /// Where it is asked for the model behind a profile; its models then have names as AWS gives them.
    pub inference_profiles: Option<ProfileLookup>,
    /// Rows that take its place where something of the account or the request is so.
    pub variants: Vec<Variant>,
    /// Bodies name the deployment and not the model.
    pub sends_deployment: bool,
    /// What of OpenAI's chat it does not take as it is.
    pub repairs: Repairs,
    /// Paths of its own interface that cost something, beside the families.
    pub paid: Vec<PaidPath>,
    /// It searches the web itself, in the words of its own format.
    pub has_web_search: bool,
    /// How many characters of a caller's own user it takes, where that is bounded.
    pub longest_user: Option<usize>,
    /// Where it is told of Anthropic's betas.
    pub betas: Betas,
    /// How credentials begin that it takes as bearers alone: those that a person signed in for.
    pub bearer_forms: Vec<String>,
    default_models: BTreeMap<Family, String>,
    /// Streams of chat and completions end with their usage when `stream_options` asks for it.
    pub has_stream_usage: bool,
    offers: [FamilyOffer; Family::ALL.len()],
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FamilyOffer {
    None,
    /// Bodies go as they are, to this path.
    Native(Box<str>),
    /// The same, to a path that is made for each request.
    Placed(PathTemplate),
    /// Bodies are written anew, in the format of one of the wires.
    Translated,
    /// The same of objects.
    Reshaped,
    /// The same of what is kept there: a collection with a form of its own.
    Mapped,
    /// It exists there, in a format that we do not write.
    Untranslated,
}

/// How a provider is asked for a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way<'r> {
    /// Bodies as they are, to this path.
    Native(&'r str),
    /// Bodies as they are, to a path that is made for each request.
    Placed(&'r PathTemplate),
    /// A conversation in the format of a wire.
    Translated(&'r Wire),
    /// An object in the format of a wire.
    Reshaped(&'r Wire),
    /// A collection in a form of its own.
    Mapped(&'r JobWire),
}

/// Why a path cannot be asked of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotOffered {
    #[error("it does not offer the endpoint `/v1{}`", .0.path())]
    Missing(Family),
    #[error("its endpoint `/v1{}` needs a translation that is not built yet", .0.path())]
    Untranslated(Family),
}

#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct BadTable {
    place: String,
    problem: String,
}

impl Providers {
    pub fn bundled() -> Result<Self, BadTable> {
        let rows = rows("conf/providers.toml", BUNDLED)?;
        Ok(Self(providers("conf/providers.toml", rows)?))
    }

    /// The bundled table, with the rows of a file added or put in place of its own.
    pub fn load(file: Option<&Path>) -> Result<Self, BadTable> {
        let mut all = Self::bundled()?;
        if let Some(path) = file {
            let place = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|error| BadTable { place: place.clone(), problem: error.to_string() })?;
            all.0.extend(providers(&place, rows(&place, &text)?)?);
        }
        Ok(all)
    }

    pub fn get(&self, slug: &str) -> Option<&Arc<ProviderEntry>> {
        self.0.get(slug)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<ProviderEntry>> {
        self.0.values()
    }
}

fn rows(place: &str, text: &str) -> Result<BTreeMap<String, Row>, BadTable> {
    toml::from_str(text).map_err(|error| BadTable { place: place.to_owned(), problem: error.to_string() })
}

fn providers(place: &str, rows: BTreeMap<String, Row>) -> Result<HashMap<Box<str>, Arc<ProviderEntry>>, BadTable> {
    let providers = rows.into_iter().map(|(slug, row)| {
        let place = format!("{place} [{slug}]");
        let provider = row.provider(&slug).map_err(|problem| BadTable { place, problem })?;
        Ok((slug.into(), Arc::new(provider)))
    });
    providers.collect()
}

impl ProviderEntry {
    /// Where bodies of this family go as they are, relative to the base URL, if that is the same for every request.
    /// The model of requests of this family that name none.
    pub fn default_model(&self, family: Family) -> Option<&str> {
        self.default_models.get(&family).map(String::as_str)
    }

    pub fn native_path(&self, family: Family) -> Option<&str> {
        match &self.offers[family as usize] {
            FamilyOffer::Native(path) => Some(path),
            _ => None,
        }
    }

    /// The header that carries a credential: the row's own, or for what a person signed in for a bearer's.
    pub fn credential_header(&self, credential: &HeaderValue) -> Option<(HeaderName, HeaderValue)> {
        match self.is_bearer_form(credential) {
            true => Some((header::AUTHORIZATION, auth::in_scheme(credential, "Bearer"))),
            false => self.auth.header(credential),
        }
    }

    /// Whether it takes this credential as a bearer alone.
    pub fn is_bearer_form(&self, credential: &HeaderValue) -> bool {
        let bare = auth::without_bearer(credential.as_bytes());
        self.bearer_forms.iter().any(|form| bare.starts_with(form.as_bytes()))
    }

    /// How this family is asked for, for a model of this name; none when its path passes as it is, or not at all.
    pub fn way(&self, family: Family, model: &str) -> Option<Way<'_>> {
        let model = self.known_name(model);
        match &self.offers[family as usize] {
            FamilyOffer::Native(path) => Some(Way::Native(path)),
            FamilyOffer::Placed(path) => Some(Way::Placed(path)),
            FamilyOffer::Translated => self.wires.iter().find(|wire| wire.serves(model)).map(Way::Translated),
            FamilyOffer::Reshaped => {
                let mut wires = self.object_wires.iter().filter(|(of, wire)| *of == family && wire.serves(model));
                wires.next().map(|(_, wire)| Way::Reshaped(wire))
            }
            FamilyOffer::Mapped => {
                let wire = self.job_wires.iter().find(|(of, _)| *of == family);
                wire.map(|(_, wire)| Way::Mapped(wire))
            }
            FamilyOffer::None | FamilyOffer::Untranslated => None,
        }
    }

    /// The address of a family, where that is another than the provider's.
    pub fn base(&self, family: Family) -> Option<&Address> {
        self.bases.iter().find(|(of, _)| *of == family).map(|(_, address)| address)
    }

    /// The number of the variant that takes its place, if `value` of a place or of the model is so.
    pub fn variant<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> Option<usize> {
        self.variants.iter().position(|variant| variant.holds(&value))
    }

    /// The format in which a conversation is asked for that came in a vendor's own format, for a model of this name.
    pub fn conversation_wire(&self, model: &str) -> Option<&Wire> {
        let model = self.known_name(model);
        self.wires.iter().find(|wire| wire.serves(model))
    }

    /// The name by which wires tell models apart.
    fn known_name<'m>(&self, model: &'m str) -> &'m str {
        let named = self.inference_profiles.as_ref().and_then(|_| foundation_model(model));
        named.unwrap_or(model)
    }

    /// The families that need no code.
    pub fn native(&self) -> impl Iterator<Item = (Family, &str)> {
        Family::ALL.into_iter().filter_map(|family| Some((family, self.native_path(family)?)))
    }

    /// The families that are asked for in another format than their own.
    pub fn translated(&self) -> impl Iterator<Item = Family> {
        self.offering(&FamilyOffer::Translated)
    }

    /// The families that can be asked for, in whatever format.
    pub fn served(&self) -> impl Iterator<Item = Family> {
        let is_served = |offer: &FamilyOffer| !matches!(offer, FamilyOffer::None | FamilyOffer::Untranslated);
        Family::ALL.into_iter().filter(move |family| is_served(&self.offers[*family as usize]))
    }

    /// The families that wait for a translation.
    pub fn untranslated(&self) -> impl Iterator<Item = Family> {
        self.offering(&FamilyOffer::Untranslated)
    }

    fn offering(&self, offer: &'static FamilyOffer) -> impl Iterator<Item = Family> {
        Family::ALL.into_iter().filter(move |family| self.offers[*family as usize] == *offer)
    }

    pub fn wires(&self) -> &[Wire] {
        &self.wires
    }

    /// The wires of a family that is one object there and one back.
    pub fn object_wires(&self, family: Family) -> impl Iterator<Item = &Wire> {
        self.object_wires.iter().filter(move |(of, _)| *of == family).map(|(_, wire)| wire)
    }

    /// Where a request for `path` (relative to `/v1`) goes, relative to the base URL: the family's place at this
    /// provider, or the same path when it belongs to no family.
    pub fn upstream_path<'p>(&self, method: &Method, path: &'p str) -> Result<Cow<'p, str>, NotOffered> {
        let Some((family, rest)) = Family::from_path(method, path) else { return Ok(path.into()) };
        match &self.offers[family as usize] {
            FamilyOffer::Native(own) if **own == *family.path() => Ok(path.into()),
            FamilyOffer::Native(own) => Ok([own, rest].concat().into()),
            FamilyOffer::Placed(_) | FamilyOffer::Untranslated => Err(NotOffered::Untranslated(family)),
            FamilyOffer::Translated | FamilyOffer::Reshaped | FamilyOffer::Mapped => Err(NotOffered::Missing(family)),
            FamilyOffer::None if family.passes_unlisted() || self.passes_everything() => Ok(path.into()),
            FamilyOffer::None => Err(NotOffered::Missing(family)),
        }
    }

    /// What fills a place of the address or of a path: the first of its fields that `field` knows, else the default.
    pub fn placed<'v>(&'v self, place: &str, field: impl Fn(&str) -> Option<&'v str>) -> Option<&'v str> {
        let named = self.placement.get(place).into_iter().flatten().find_map(|name| field(name));
        named.or_else(|| self.options.get(place).map(String::as_str))
    }

    /// The fields of a config or an account that fill a place, strongest first.
    pub fn fields_of(&self, place: &str) -> &[String] {
        self.placement.get(place).map(Vec::as_slice).unwrap_or_default()
    }

    /// The fields of a config or an account that fill its places.
    pub fn placement_fields(&self) -> impl Iterator<Item = &str> {
        self.placement.values().flatten().map(String::as_str)
    }

    /// The places that something must fill.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        let others = self.options.keys().filter(|place| !self.placement.contains_key(*place));
        self.placement.keys().chain(others).map(String::as_str)
    }

    /// A provider of which only its address is known takes every path as it comes.
    fn passes_everything(&self) -> bool {
        self.offers.iter().all(|offer| *offer == FamilyOffer::None)
    }
}

#[cfg(test)]
mod tests;
