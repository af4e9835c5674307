//! Names on a workspace's merged server: tools and prompts of all its servers, each with the slug of its server before it.

use super::visible::McpTarget;

const BETWEEN: &str = "__";

pub fn merged_name(slug: &str, name: &str) -> String {
    format!("{slug}{BETWEEN}{name}")
}

/// The server that a name is of, and its name there. Where two slugs would do, the longer one is meant.
pub fn split_name<'n, 't>(name: &'n str, targets: &'t [McpTarget]) -> Option<(&'t McpTarget, &'n str)> {
    let place = split_at(name, targets.iter().map(|target| target.server.slug.as_str()))?;
    let target = targets.get(place)?;
    Some((target, &name[target.server.slug.len() + BETWEEN.len()..]))
}

fn split_at<'s>(name: &str, slugs: impl Iterator<Item = &'s str>) -> Option<usize> {
    let fits = |slug: &str| name.strip_prefix(slug).and_then(|rest| rest.strip_prefix(BETWEEN)).is_some();
    slugs.enumerate().filter(|(_, slug)| fits(slug)).max_by_key(|(_, slug)| slug.len()).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_the_longest_slug_that_it_begins_with() {
        let slugs = ["a", "a__b", "c"];
        for (name, place) in
            [("a__x", Some(0)), ("a__b__x", Some(1)), ("c__a__x", Some(2)), ("d__x", None), ("a_x", None), ("a", None)]
        {
            assert_eq!(split_at(name, slugs.into_iter()), place, "{name}");
        }
        assert_eq!(merged_name("a", "x"), "a__x");
    }
}
