//! A row of the table as it is written, and what makes it a provider.

use super::address::Address;
use super::aws_models::ProfileLookupRow;
use super::betas::BetasRow;
use super::job_wire::{JobRow, JobWire};
use super::model_list::{self, ModelList, ModelListRow};
use super::paid_path::PaidPath;
use super::path_template::PathTemplate;
use super::repairs::Repairs;
use super::variant::VariantRow;
use super::wire::{CODECS, CONVERSATIONS, OBJECT_CODECS, Wire, WireRow};
use super::{Auth, BilledBy, Family, FamilyOffer, ProviderEntry};
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    name: String,
    pub base_url: Option<String>,
    #[serde(default)]
    base_urls: BTreeMap<String, String>,
    base_domain: Option<String>,
    #[serde(default)]
    options: BTreeMap<String, String>,
    #[serde(default)]
    placement: BTreeMap<String, Vec<String>>,
    pub auth: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub endpoints: Vec<Family>,
    #[serde(default)]
    pub paths: BTreeMap<Family, String>,
    #[serde(default)]
    pub bases: BTreeMap<Family, String>,
    #[serde(default)]
    jobs: BTreeMap<Family, JobRow>,
    pub models: Option<ModelListRow>,
    inference_profiles: Option<ProfileLookupRow>,
    #[serde(default)]
    pub variants: Vec<VariantRow>,
    #[serde(skip)]
    pub is_variant: bool,
    #[serde(default)]
    pub sends_deployment: bool,
    #[serde(default)]
    wires: Vec<WireRow>,
    #[serde(default)]
    embed_wires: Vec<WireRow>,
    #[serde(default)]
    rerank_wires: Vec<WireRow>,
    #[serde(default)]
    count_wires: Vec<WireRow>,
    #[serde(default)]
    image_wires: Vec<WireRow>,
    #[serde(default)]
    pub untranslated: Vec<Family>,
    #[serde(default)]
    default_models: BTreeMap<Family, String>,
    #[serde(default)]
    stream_usage: bool,
    #[serde(default)]
    max_completion_tokens: bool,
    #[serde(default)]
    repairs: Repairs,
    #[serde(default)]
    paid: Vec<String>,
    #[serde(default)]
    responses_models: Vec<String>,
    #[serde(default)]
    web_search: bool,
    longest_user: Option<usize>,
    pub betas: Option<BetasRow>,
    #[serde(default)]
    pub bearer_forms: Vec<String>,
}

/// Formats that a provider may take as its own, in the order in which others are translated into them.
const OWN: [(Family, &str); 3] =
    [(Family::Chat, "chat"), (Family::Messages, "messages"), (Family::Responses, "responses")];

impl Row {
    pub(super) fn provider(self, slug: &str) -> Result<ProviderEntry, String> {
        let is_slug = slug.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if !is_slug || slug.is_empty() {
            return Err("a provider's name is made of small letters, digits and hyphens".into());
        }
        let mut offers = self.offers()?;
        let wires = self.wires(&mut offers)?;
        let object_wires = self.object_wires(&mut offers)?;
        let job_wires = self.job_wires(&mut offers)?;
        let bases = self.bases()?;
        let model_list = self.model_list(&offers)?;
        let inference_profiles = self.inference_profiles.as_ref().map(ProfileLookupRow::lookup).transpose()?;
        if !self.is_variant {
            self.check_options(&offers, &wires, &job_wires)?;
        }
        let variants = self.variants.iter().map(|variant| variant.variant(&self, slug)).collect::<Result<_, _>>()?;
        let paid = self.paid(&offers, &wires, &object_wires)?;
        let base_url = self.base_url()?.map(Into::into);
        let address = self
            .base_url
            .as_deref()
            .and_then(|url| Address::parse(url, self.base_urls.clone(), self.base_domain.as_deref()));
        Ok(ProviderEntry {
            slug: slug.into(),
            base_url,
            address,
            options: self.options.clone(),
            auth: Auth::parse(self.auth.as_deref().unwrap_or("bearer"))?,
            headers: self.headers()?,
            offers,
            wires,
            object_wires,
            job_wires,
            bases,
            model_list,
            inference_profiles,
            variants,
            sends_deployment: self.sends_deployment,
            placement: self.placement,
            default_models: self.default_models,
            has_stream_usage: self.stream_usage,
            repairs: self.repairs,
            paid,
            has_web_search: self.web_search,
            longest_user: self.longest_user,
            betas: self.betas.map(BetasRow::betas).transpose()?.unwrap_or_default(),
            bearer_forms: self.bearer_forms,
            name: self.name.into(),
        })
    }

    /// What the row lists, and wherever it is asked for something that costs something: whoever calls these places as they are
    /// pays for it too.
    fn paid(
        &self,
        offers: &[FamilyOffer],
        wires: &[Wire],
        object_wires: &[(Family, Wire)],
    ) -> Result<Vec<PaidPath>, String> {
        let mut paid: Vec<PaidPath> = self.paid.iter().map(|path| PaidPath::parse(path)).collect::<Result<_, _>>()?;
        let places = |wire: &'_ Wire, billed: BilledBy| {
            let paths = [Some(&wire.path), wire.stream_path.as_ref(), wire.own_base_path.as_ref()];
            paths.into_iter().flatten().filter_map(|path| PaidPath::of_template(path, billed)).collect::<Vec<_>>()
        };
        let billed_by = |family: Family| family.billed_by(&http::Method::POST, "");
        let mut more: Vec<PaidPath> = wires.iter().flat_map(|wire| places(wire, BilledBy::Text)).collect();
        for (family, wire) in object_wires {
            more.extend(billed_by(*family).into_iter().flat_map(|billed| places(wire, billed)));
        }
        for (family, offer) in Family::ALL.into_iter().zip(offers) {
            let template = match offer {
                FamilyOffer::Placed(template) => Some(template.clone()),
                FamilyOffer::Native(path) => PathTemplate::parse(path).ok(),
                _ => None,
            };
            let billed = billed_by(family).filter(|_| family != Family::Batches);
            more.extend(template.zip(billed).and_then(|(template, billed)| PaidPath::of_template(&template, billed)));
        }
        for one in more {
            if paid.iter().all(|known| known.as_str() != one.as_str()) {
                paid.push(one);
            }
        }
        Ok(paid)
    }

    /// The address with its options filled in; none while an option has no default.
    fn base_url(&self) -> Result<Option<String>, String> {
        let Some(template) = &self.base_url else { return Ok(None) };
        let is_url = template.starts_with("https://") || template.starts_with("http://");
        if !(is_url || template.starts_with('{')) || template.ends_with('/') {
            return Err("base_url: it starts with https:// and does not end in a slash".into());
        }
        let filled =
            self.options.iter().fold(template.clone(), |url, (name, value)| url.replace(&format!("{{{name}}}"), value));
        Ok((!filled.contains('{')).then_some(filled))
    }

    /// A default for what stands nowhere is a slip of the pen.
    fn check_options(
        &self,
        offers: &[FamilyOffer],
        wires: &[Wire],
        job_wires: &[(Family, JobWire)],
    ) -> Result<(), String> {
        let addresses = || self.base_url.iter().chain(self.bases.values());
        let in_address = |name: &str| addresses().any(|url| url.contains(&format!("{{{name}}}")));
        let in_body = |name: &str| wires.iter().any(|wire| wire.body_places.iter().any(|place| place == name));
        let paths = wires.iter().flat_map(|wire| [Some(&wire.path), wire.stream_path.as_ref()]).flatten();
        let mut paths: Vec<&PathTemplate> = paths.chain(job_wires.iter().map(|(_, wire)| &wire.path)).collect();
        paths.extend(offers.iter().filter_map(|offer| match offer {
            FamilyOffer::Placed(path) => Some(path),
            _ => None,
        }));
        let in_path = |name: &str| paths.iter().any(|path| path.has(name));
        let decides = |name: &str| self.variants.iter().any(|variant| variant.asks_for(name) || variant.is_at(name));
        let is_used = |name: &str| in_address(name) || in_body(name) || in_path(name) || decides(name);
        match self.options.keys().chain(self.placement.keys()).find(|name| !is_used(name)) {
            Some(name) => Err(format!("base_url has no {{{name}}}, and neither has a path")),
            None => Ok(()),
        }
    }

    fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
        let headers = self.headers.iter().map(|(name, value)| {
            let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            parsed.ok_or_else(|| format!("headers: `{name}` cannot be sent"))
        });
        headers.collect()
    }

    fn offers(&self) -> Result<[FamilyOffer; Family::ALL.len()], String> {
        let mut offers = [const { FamilyOffer::None }; Family::ALL.len()];
        for family in &self.endpoints {
            let path = self.paths.get(family).map_or(family.path(), String::as_str);
            let template = PathTemplate::parse(path).map_err(|why| format!("paths: {}: {why}", family.name()))?;
            let offer = match template.places().next().is_some() || path.contains('?') {
                true => FamilyOffer::Placed(template),
                false => FamilyOffer::Native(path.into()),
            };
            take(&mut offers[*family as usize], offer, *family)?;
        }
        for family in &self.untranslated {
            take(&mut offers[*family as usize], FamilyOffer::Untranslated, *family)?;
        }
        match self.paths.keys().find(|family| !self.endpoints.contains(family)) {
            Some(family) => Err(format!("paths: {} is not among the endpoints", family.name())),
            None => Ok(offers),
        }
    }

    /// The formats that conversations are translated into: those that the row names, else one that it takes as its own.
    fn wires(&self, offers: &mut [FamilyOffer; Family::ALL.len()]) -> Result<Vec<Wire>, String> {
        let mut wires = parsed(&self.wires, CODECS)?;
        if wires.is_empty() {
            let own = |family: Family| match &offers[family as usize] {
                FamilyOffer::Native(path) => Some(PathTemplate::parse(path)),
                FamilyOffer::Placed(path) => Some(Ok(path.clone())),
                _ => None,
            };
            if let Some(path) = own(Family::Responses).filter(|_| !self.responses_models.is_empty()) {
                let wire = Wire::of_own("responses", path?, self.max_completion_tokens);
                wires.push(wire.for_models(&self.responses_models));
            }
            let usual = OWN.iter().find_map(|(family, codec)| Some((*codec, own(*family)?)));
            if let Some((codec, path)) = usual {
                wires.push(Wire::of_own(codec, path?, self.max_completion_tokens));
            }
        } else if !self.responses_models.is_empty() {
            return Err("responses_models: the wires say already what each model is asked by".into());
        }
        for family in CONVERSATIONS {
            if !wires.is_empty() && offers[family as usize] == FamilyOffer::None {
                offers[family as usize] = FamilyOffer::Translated;
            }
        }
        Ok(wires)
    }

    /// The same of families that are one object there and one back.
    fn object_wires(&self, offers: &mut [FamilyOffer; Family::ALL.len()]) -> Result<Vec<(Family, Wire)>, String> {
        let mut all = Vec::new();
        let listed = [
            (Family::Embed, &self.embed_wires),
            (Family::Rerank, &self.rerank_wires),
            (Family::CountTokens, &self.count_wires),
            (Family::Image, &self.image_wires),
        ];
        for (family, rows) in listed {
            let wires = parsed(rows, OBJECT_CODECS)?;
            if !wires.is_empty() {
                take(&mut offers[family as usize], FamilyOffer::Reshaped, family)?;
            }
            all.extend(wires.into_iter().map(|wire| (family, wire)));
        }
        Ok(all)
    }
}

impl Row {
    /// Families that exist there in a form of their own.
    fn job_wires(&self, offers: &mut [FamilyOffer; Family::ALL.len()]) -> Result<Vec<(Family, JobWire)>, String> {
        let wires = self.jobs.iter().map(|(family, row)| {
            if !matches!(family, Family::Files | Family::Batches | Family::FineTuning) {
                return Err(format!("jobs: {} has none", family.name()));
            }
            take(&mut offers[*family as usize], FamilyOffer::Mapped, *family)?;
            Ok((*family, row.wire()?))
        });
        wires.collect()
    }

    /// Addresses of single families.
    fn bases(&self) -> Result<Vec<(Family, Address)>, String> {
        let bases = self.bases.iter().map(|(family, url)| Ok((*family, Address::whole(url)?)));
        bases.collect::<Result<_, String>>().map_err(|why| format!("bases: {why}"))
    }

    /// None of a provider of which only its address is known.
    fn model_list(&self, offers: &[FamilyOffer]) -> Result<Option<ModelList>, String> {
        match &self.models {
            Some(row) => row.list(offers).map(Some),
            None if offers.iter().all(|offer| *offer == FamilyOffer::None) => Ok(None),
            None => model_list::usual(offers).map(Some),
        }
    }
}

fn parsed(rows: &[WireRow], codecs: &[&str]) -> Result<Vec<Wire>, String> {
    let wires = rows.iter().cloned().map(|row| row.wire(codecs)).collect::<Result<Vec<_>, _>>()?;
    match wires.last().is_some_and(|wire| wire.model_prefix.is_some()) {
        true => Err("wires: the last one serves every model, and has no model_prefix".into()),
        false => Ok(wires),
    }
}

fn take(slot: &mut FamilyOffer, offer: FamilyOffer, family: Family) -> Result<(), String> {
    if *slot != FamilyOffer::None {
        return Err(format!("{} is listed twice", family.name()));
    }
    *slot = offer;
    Ok(())
}
