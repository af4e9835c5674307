//! Figures by what calls have in common: one row for each value, the most telling first, page by page.

use super::counted::{self, ValueOf};
use super::dimension::{self, Dimension};
use super::feedback_figures::{self, FeedbackFigures};
use super::measure::{self, Measure};
use super::series::CountedRows;
use super::slots::{CountedShape, Slots};
use super::{LogView, row};
use crate::http::ApiError;
use rust_decimal::Decimal;
use serde_json::Value;
use shared::db::table::Filter;
use shared::db::usage_slots::{ByValue, Figures, SlotDimension};
use std::collections::HashMap;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;

/// Groups beyond so many are left out, after they were put in order.
pub const MAX_GROUPS: i64 = 10_000;

/// A page of groups.
#[derive(Debug)]
pub struct GroupQuestion<'q> {
    pub by: GroupBy<'q>,
    /// Each group is divided by this one further.
    pub then_by: Option<&'q Dimension>,
    pub measures: &'q [Measure],
    pub order: Order,
    pub size: i64,
    pub offset: i64,
}

#[derive(Debug, Clone, Copy)]
pub enum GroupBy<'q> {
    Dimension(&'q Dimension),
    /// The value of this name, beside which feedback can be measured.
    Metadata(&'q str),
}

/// Beside calls: what was thought of the trace of each.
const WITH_FEEDBACK: &str = "LEFT JOIN LATERAL (
    SELECT avg(f.weighted) AS said FROM feedback f
    WHERE f.workspace_id = request_logs.workspace_id AND f.trace_id = request_logs.trace_id) AS thoughts ON true";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub by: OrderBy,
    pub is_descending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderBy {
    Value,
    /// The value of the second dimension.
    SecondValue,
    /// One of the measures, by its place.
    Measure(usize),
}

#[derive(Debug, Default)]
pub struct Groups {
    pub rows: Vec<Group>,
    pub total: i64,
    /// Whether there are more groups than are counted.
    pub is_capped: bool,
}

#[derive(Debug)]
pub struct Group {
    pub value: String,
    /// With a second dimension.
    pub second: Option<String>,
    /// The measures in the order that was asked for.
    pub figures: Vec<Value>,
}

pub async fn groups(
    db: &impl GenericClient,
    view: &LogView,
    filter: &Filter,
    slots: Option<&Slots>,
    query: &GroupQuestion<'_>,
) -> Result<Groups, ApiError> {
    if let Some(slots) = slots
        && let Some(groups) = from_slots(db, view, filter, slots, query).await?
    {
        return Ok(groups);
    }
    let mut values = filter.values();
    let (value, with) = match &query.by {
        GroupBy::Dimension(dimension) => (dimension.sql.to_owned(), ""),
        GroupBy::Metadata(name) => {
            values.push(name);
            (format!("coalesce(metadata ->> ${}::text, '')", values.len()), WITH_FEEDBACK)
        }
    };
    let second = query.then_by.map_or("NULL::text", |then_by| then_by.sql);
    let from = query.from();
    let n = values.len();
    let order = query.order.sql();
    let grouped = format!(
        "SELECT {value} AS value, {second} AS second, {} FROM {from} {with} WHERE {} GROUP BY 1, 2",
        measure::columns(query.measures),
        filter.sql(),
    );
    let grouped = format!("SELECT * FROM ({grouped}) AS every ORDER BY {order} LIMIT {}", MAX_GROUPS + 1);
    // Counted apart from the page, so that a page beyond the last one knows how many there are.
    let sql = format!(
        "WITH grouped AS MATERIALIZED ({grouped}), counted AS (SELECT count(*) AS total FROM grouped)
         SELECT counted.total, page.* FROM counted
         LEFT JOIN (SELECT * FROM grouped ORDER BY {order} LIMIT ${} OFFSET ${}) AS page ON true ORDER BY {order}",
        n + 1,
        n + 2,
    );
    let size = query.size.min(MAX_GROUPS.saturating_sub(query.offset).max(0));
    values.extend([&size as &(dyn ToSql + Sync), &query.offset]);
    let mut groups = Groups::default();
    for row in db.query(&sql, &values).await? {
        let total: i64 = row.try_get("total")?;
        (groups.total, groups.is_capped) = (total.min(MAX_GROUPS), total > MAX_GROUPS);
        if let Some(value) = row.try_get("value")? {
            let figures = measure::values(&row, query.measures.len())?;
            groups.rows.push(Group { value, second: row.try_get("second")?, figures });
        }
    }
    Ok(groups)
}

/// None where only logs know.
async fn from_slots(
    db: &impl GenericClient,
    view: &LogView,
    filter: &Filter,
    slots: &Slots,
    query: &GroupQuestion<'_>,
) -> Result<Option<Groups>, ApiError> {
    match query.by {
        GroupBy::Dimension(dimension) => {
            let Some(key) = SlotKey::new(dimension, query.then_by) else { return Ok(None) };
            let shape = CountedShape { grouped_by: key.grouped_by, value: key.value, step: None };
            let counted = slots.count(db, filter, query.measures, shape).await?;
            Ok(counted.map(|counted| query.page(key, &counted.by_value(), &HashMap::new())))
        }
        GroupBy::Metadata(name) => {
            let Some(key) = SlotKey::of_metadata(query.then_by) else { return Ok(None) };
            let Some(found) = slots.by_metadata(db, filter, name, key.value).await? else { return Ok(None) };
            let feedback = feedback_figures::by_metadata(db, view, slots.period(), filter, name, key.value).await?;
            Ok(Some(query.page(key, &found, &feedback)))
        }
    }
}

/// What slots are divided by for groups, and which part of what they call a group is which value. Slots are of one workspace and
/// divided by one thing, so of two dimensions one must be the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SlotKey {
    grouped_by: SlotDimension,
    value: ValueOf,
    workspace: WorkspacePlace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkspacePlace {
    /// There is one dimension, whatever it is.
    Nowhere,
    First,
    Second,
}

impl SlotKey {
    /// Of a name of metadata, which comes first.
    fn of_metadata(then_by: Option<&Dimension>) -> Option<Self> {
        let (value, workspace) = match then_by {
            None => (ValueOf::Own, WorkspacePlace::Nowhere),
            Some(then_by) if *then_by == dimension::WORKSPACE => (ValueOf::OwnInWorkspace, WorkspacePlace::Second),
            Some(_) => return None,
        };
        Some(Self { grouped_by: SlotDimension::Metadata, value, workspace })
    }

    fn new(by: &Dimension, then_by: Option<&Dimension>) -> Option<Self> {
        let (other, workspace) = match then_by {
            None => {
                let (grouped_by, value) = by.slots;
                return Some(Self { grouped_by, value, workspace: WorkspacePlace::Nowhere });
            }
            Some(then_by) if *by == dimension::WORKSPACE => (then_by, WorkspacePlace::First),
            Some(then_by) if *then_by == dimension::WORKSPACE => (by, WorkspacePlace::Second),
            Some(_) => return None,
        };
        let (grouped_by, value) = other.slots;
        Some(Self { grouped_by, value: value.in_workspace()?, workspace })
    }

    /// The values of a group by the name that it was counted under.
    fn values(self, name: &str) -> (&str, Option<&str>) {
        let (workspace, own) = counted::split_workspace(name);
        match self.workspace {
            WorkspacePlace::Nowhere => (name, None),
            WorkspacePlace::First => (workspace, Some(own)),
            WorkspacePlace::Second => (own, Some(workspace)),
        }
    }
}

impl GroupQuestion<'_> {
    /// Where calls are read from. Only guardrails stand elsewhere than in logs alone.
    fn from(&self) -> &'static str {
        let first = match self.by {
            GroupBy::Dimension(dimension) => Some(dimension),
            GroupBy::Metadata(_) => None,
        };
        let mut both = [first, self.then_by].into_iter().flatten();
        both.find(|one| !one.is_of_logs()).map_or(dimension::LOGS, |one| one.from)
    }

    /// Of what was counted already. Only what orders groups is measured of all of them.
    fn page(&self, key: SlotKey, all: &ByValue, feedback: &HashMap<String, FeedbackFigures>) -> Groups {
        let measured = |measure: &Measure, value: &str, figures: &Figures| match measure.rolled {
            Some(rolled) => rolled.value(figures, 0),
            None => feedback.get(value).map_or(Decimal::ZERO, |feedback| feedback.measured(measure)),
        };
        let rank = |value: &str, figures: &Figures| match self.order.by {
            OrderBy::Value | OrderBy::SecondValue => Decimal::ZERO,
            OrderBy::Measure(n) => measured(&self.measures[n], value, figures),
        };
        let mut groups: Vec<SlotGroup<'_>> = all
            .iter()
            .map(|(name, figures)| SlotGroup { rank: rank(name, figures), values: key.values(name), name, figures })
            .collect();
        groups.sort_unstable_by(|one, other| {
            let ordered = match self.order.by {
                OrderBy::Value => one.values.0.cmp(other.values.0),
                OrderBy::SecondValue => one.values.1.cmp(&other.values.1),
                OrderBy::Measure(_) => one.rank.cmp(&other.rank),
            };
            let ordered = if self.order.is_descending { ordered.reverse() } else { ordered };
            ordered.then(one.values.cmp(&other.values))
        });
        let is_capped = groups.len() as i64 > MAX_GROUPS;
        groups.truncate(MAX_GROUPS as usize);
        let group = |one: &SlotGroup<'_>| Group {
            value: one.values.0.to_owned(),
            second: one.values.1.map(str::to_owned),
            figures: self.measures.iter().map(|of| row::number(measured(of, one.name, one.figures))).collect(),
        };
        let (size, offset) =
            (usize::try_from(self.size).unwrap_or(0), usize::try_from(self.offset).unwrap_or(usize::MAX));
        let rows = groups.iter().skip(offset).take(size).map(group).collect();
        Groups { rows, total: groups.len() as i64, is_capped }
    }
}

/// A group that was counted from slots, under the name that they have for it.
struct SlotGroup<'g> {
    rank: Decimal,
    values: (&'g str, Option<&'g str>),
    name: &'g str,
    figures: &'g Figures,
}

/// The same measures over everything.
pub async fn totals(
    db: &impl GenericClient,
    rows: &CountedRows<'_>,
    measures: &[Measure],
) -> Result<Vec<Value>, ApiError> {
    let shape = CountedShape { grouped_by: SlotDimension::All, value: ValueOf::Nothing, step: None };
    if let Some(counted) = rows.count(db, measures, shape).await? {
        return Ok(counted.whole(measures));
    }
    let sql = format!("SELECT {} FROM {} WHERE {}", measure::columns(measures), rows.from, rows.filter.sql());
    let row = db.query_one(&sql, &rows.filter.values()).await?;
    Ok(measure::values(&row, measures.len())?)
}

impl Order {
    /// Equals are ordered by their values, so that pages do not overlap.
    fn sql(self) -> String {
        let direction = if self.is_descending { "DESC" } else { "ASC" };
        match self.by {
            OrderBy::Value => format!("value {direction}, second"),
            OrderBy::SecondValue => format!("second {direction}, value"),
            OrderBy::Measure(n) => format!("m{n} {direction}, value, second"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_have_groups_of_two_dimensions_where_one_is_the_workspace() {
        let (model, user, workspace) = (&dimension::MODEL, &dimension::USER, &dimension::WORKSPACE);
        let key = |by, then_by| SlotKey::new(by, then_by).map(|key| (key.grouped_by, key.value, key.workspace));
        for (by, then_by, expected) in [
            (model, None, Some((SlotDimension::Model, ValueOf::Own, WorkspacePlace::Nowhere))),
            (workspace, Some(model), Some((SlotDimension::Model, ValueOf::OwnInWorkspace, WorkspacePlace::First))),
            (user, Some(workspace), Some((SlotDimension::User, ValueOf::UserInWorkspace, WorkspacePlace::Second))),
            (model, Some(user), None),
        ] {
            assert_eq!(key(by, then_by), expected, "{} {:?}", by.name, then_by.map(|one| one.name));
        }
        let of_metadata = |then_by| SlotKey::of_metadata(then_by).map(|key| (key.value, key.workspace));
        assert_eq!(of_metadata(None), Some((ValueOf::Own, WorkspacePlace::Nowhere)));
        assert_eq!(of_metadata(Some(workspace)), Some((ValueOf::OwnInWorkspace, WorkspacePlace::Second)));
        assert_eq!(of_metadata(Some(model)), None);
    }
}
