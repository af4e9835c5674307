//! What a caller wants to see of the models, and in which order.

use super::Model;
use crate::request::refusal::Refusal;
use shared::nearest::nearest;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Names of the table of providers.
    ai_services: Vec<String>,
    /// Slugs of the workspace's own.
    providers: Vec<String>,
    pub limit: Option<usize>,
    pub offset: usize,
    sort: ModelOrder,
    is_descending: bool,
    /// Parameters whose names are nearly ones that are read, each with what was meant.
    pub slips: Vec<String>,
}

const NAMES: [&str; 6] = ["ai_service", "limit", "offset", "order", "provider", "sort"];
/// How many other names are looked at: guessing takes time.
const MAX_OTHERS: usize = 8;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ModelOrder {
    #[default]
    Id,
    Slug,
    Provider,
    AiService,
    Created,
}

impl Query {
    /// Parameters of other names are left to whoever sent them: SDKs have their own.
    pub fn parse(query: Option<&str>) -> Result<Self, Refusal> {
        let mut read = Self::default();
        let mut others = 0;
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let value = value.trim();
            match &*name {
                "ai_service" => read.ai_services.extend(names(value)),
                "provider" => read.providers.extend(names(value).map(|name| name.trim_start_matches('@').to_owned())),
                "limit" => match value.parse() {
                    Ok(limit @ 1..) => read.limit = Some(limit),
                    _ => return Err(Refusal::invalid_query("limit", "a whole number above 0")),
                },
                "offset" => {
                    let offset = value.parse();
                    read.offset = offset.map_err(|_| Refusal::invalid_query("offset", "a whole number"))?;
                }
                "sort" => read.sort = sort(value)?,
                "order" => {
                    read.is_descending = match value {
                        "asc" => false,
                        "desc" => true,
                        _ => return Err(Refusal::invalid_query("order", "asc or desc")),
                    };
                }
                other => {
                    others += 1;
                    if let Some(meant) = (others <= MAX_OTHERS).then(|| nearest(other, NAMES)).flatten() {
                        read.slips.push(format!("{other}: is no parameter of this list: did you mean {meant}?"));
                    }
                }
            }
        }
        Ok(read)
    }

    pub fn wants(&self, ai_service: &str, provider: &str) -> bool {
        let has = |wanted: &[String], name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
        has(&self.ai_services, ai_service) && has(&self.providers, provider)
    }

    /// What is equal stays in the order of names.
    pub fn sort(&self, models: &mut [Model]) {
        models.sort_by(|one, other| {
            let order = match self.sort {
                ModelOrder::Id => one.id.cmp(&other.id),
                ModelOrder::Slug => one.slug.cmp(&other.slug),
                ModelOrder::Provider => one.provider.cmp(&other.provider),
                ModelOrder::AiService => one.owned_by.cmp(&other.owned_by),
                ModelOrder::Created => one.created.cmp(&other.created),
            };
            if self.is_descending { order.reverse() } else { order }
        });
    }
}

fn names(value: &str) -> impl Iterator<Item = String> {
    value.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn sort(value: &str) -> Result<ModelOrder, Refusal> {
    Ok(match value {
        "id" | "name" => ModelOrder::Id,
        "slug" => ModelOrder::Slug,
        "provider" => ModelOrder::Provider,
        "ai_service" => ModelOrder::AiService,
        "created" => ModelOrder::Created,
        _ => return Err(Refusal::invalid_query("sort", "one of id, slug, provider, ai_service, created")),
    })
}
