//! Where a target is asked: the places of a path filled in, and an address of its own.

use crate::catalog::target::Target;
use crate::request::refusal::Refusal;
use shared::providers::{Family, PathTemplate, Way};

/// The address of what a target would be asked, where that is not the target's.
pub(crate) fn own_address<'t>(target: &'t Target, family: Family, model: &str) -> Option<&'t str> {
    match target.provider.row.way(family, target.foundation().unwrap_or(model)) {
        Some(Way::Reshaped(wire)) => wire.base_url.as_deref(),
        _ => None,
    }
}

/// The model is as the provider is told it, and as it was asked for.
pub(crate) fn fill(
    path: &PathTemplate,
    target: &Target,
    model: [&str; 2],
    user: Option<&str>,
) -> Result<String, Refusal> {
    let [model, asked] = model;
    let filled = path.fill(|place| match place {
        "model" | "model_path" => Some(model),
        "base_model" => asked.split(':').next(),
        "user" => user,
        place => target.placed(place).map(|value| if value == "{model}" { model } else { value }),
    });
    filled.map_err(|place| match place {
        "model" | "model_path" | "base_model" => Refusal::invalid_parameter("`model` is missing".into(), "model"),
        "user" => Refusal::invalid_parameter("`user` is missing: it names the tenant".into(), "user"),
        place => Refusal::missing_path_place(&target.provider.name, place, target.provider.row.fields_of(place)),
    })
}
