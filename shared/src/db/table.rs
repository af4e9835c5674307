//! Plain access to one table: insert, find, page, update, remove. Column names and conditions are written in the
//! code and become SQL text; values are always bound, so no input can become SQL.

mod columns;
mod filter;
pub mod row;

pub use columns::Columns;
pub use filter::Filter;
pub use row::RowError;

use serde::de::DeserializeOwned;
use std::fmt;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, GenericClient, Row};
use uuid::Uuid;

/// What a resource's table is like. Every table has `id`, `organisation_id`, `created_at` and `last_updated_at`.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub name: &'static str,
    pub columns: SelectList,
    /// The column by which a row can be found beside its id.
    pub slug: Option<&'static str>,
    pub tenancy: Tenancy,
    pub on_delete: OnDelete,
}

/// What is read of each row.
#[derive(Debug, Clone, Copy)]
pub enum SelectList {
    /// The columns that the fields of a type are named after: `SelectList::Fields(row::fields::<Label>)`.
    Fields(fn() -> Vec<&'static str>),
    /// Columns, or expressions over one row, `(SELECT … ) AS name` included.
    Sql(&'static str),
}

impl fmt::Display for SelectList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields(names) => f.write_str(&names().join(", ")),
            Self::Sql(text) => f.write_str(text),
        }
    }
}

/// To whom rows belong, beside their organisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tenancy {
    Organisation,
    /// Each row belongs to the workspace that this column names.
    Workspace(&'static str),
    /// `workspace_id` may be null: such rows belong to the organisation, and its workspaces see them.
    Either,
    /// `workspace_id` may be null: such rows are of several workspaces, and callers of one do not see them.
    OneOrSeveral,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDelete {
    /// `status` becomes `archived`; the row stays for those who name it.
    Archive,
    Delete,
}

/// One page of a list, and how many rows there are in all.
#[derive(Debug)]
pub struct Page {
    pub total: i64,
    pub rows: Vec<Row>,
}

type BoundValue = Box<dyn ToSql + Sync + Send>;

impl Table {
    /// A table of rows that are archived; each field of the type is a column.
    pub const fn of_fields<T: DeserializeOwned>(name: &'static str, tenancy: Tenancy) -> Self {
        let columns = SelectList::Fields(row::fields::<T>);
        Self { name, columns, slug: None, tenancy, on_delete: OnDelete::Archive }
    }

    pub async fn insert(&self, db: &impl GenericClient, columns: &Columns) -> Result<Row, Error> {
        let places: Vec<String> = (1..=columns.len()).map(|n| format!("${n}")).collect();
        let sql = format!(
            "INSERT INTO {} ({}) VALUES ({}) RETURNING {}",
            self.name,
            columns.names().collect::<Vec<_>>().join(", "),
            places.join(", "),
            self.columns
        );
        db.query_one(&sql, &columns.values()).await
    }

    /// The rows that match, two at most: a second one means that the filter does not identify.
    pub async fn find(&self, db: &impl GenericClient, filter: &Filter) -> Result<Vec<Row>, Error> {
        db.query(&self.select(filter, "LIMIT 2"), &filter.values()).await
    }

    /// As `find`, and holds the rows until the transaction ends, so that nobody changes them in between. Others may
    /// still make rows that point here.
    pub async fn lock(&self, db: &impl GenericClient, filter: &Filter) -> Result<Vec<Row>, Error> {
        db.query(&self.select(filter, "LIMIT 2 FOR NO KEY UPDATE"), &filter.values()).await
    }

    /// A page, newest first, and the total: one statement, so that both are of one moment.
    pub async fn page(&self, db: &impl GenericClient, filter: &Filter, page: (i64, i64)) -> Result<Page, Error> {
        let (size, offset) = page;
        let mut values = filter.values();
        values.extend([&size as &(dyn ToSql + Sync), &offset]);
        let rows = db.query(&self.page_sql(filter), &values).await?;
        let total = rows.first().map_or(Ok(0), |row| row.try_get("listed_total"))?;
        // An empty page still carries the total, in a row of nulls.
        let is_row = |row: &Row| row.try_get::<_, Option<Uuid>>("listed_id").is_ok_and(|id| id.is_some());
        Ok(Page { total, rows: rows.into_iter().filter(is_row).collect() })
    }

    /// The statement behind `page`; its last two parameters are size and offset.
    pub fn page_sql(&self, filter: &Filter) -> String {
        let (name, columns, matching, n) = (self.name, self.columns, filter.sql(), filter.len());
        format!(
            "SELECT counted.listed_total, page.* FROM (SELECT count(*) AS listed_total FROM {name} WHERE {matching}) counted
             LEFT JOIN (SELECT created_at AS listed_at, id AS listed_id, {columns} FROM {name} WHERE {matching}
                        ORDER BY created_at DESC, id DESC LIMIT ${} OFFSET ${}) page ON true
             ORDER BY listed_at DESC, listed_id DESC",
            n + 1,
            n + 2
        )
    }

    /// Sets what `columns` holds and nothing else. `None` when there is no such row.
    pub async fn update(&self, db: &impl GenericClient, id: Uuid, columns: &Columns) -> Result<Option<Row>, Error> {
        let sets: Vec<String> = columns.names().enumerate().map(|(n, name)| format!("{name} = ${}", n + 2)).collect();
        let sql = format!(
            "UPDATE {} SET {}, last_updated_at = now() WHERE id = $1 RETURNING {}",
            self.name,
            sets.join(", "),
            self.columns
        );
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&id];
        values.extend(columns.values());
        db.query_opt(&sql, &values).await
    }

    /// Archives or deletes, as the table says.
    pub async fn remove(&self, db: &impl GenericClient, id: Uuid) -> Result<(), Error> {
        let sql = match self.on_delete {
            OnDelete::Archive => {
                format!("UPDATE {} SET status = 'archived', last_updated_at = now() WHERE id = $1", self.name)
            }
            OnDelete::Delete => format!("DELETE FROM {} WHERE id = $1", self.name),
        };
        db.execute(&sql, &[&id]).await.map(|_| ())
    }

    fn select(&self, filter: &Filter, end: &str) -> String {
        format!("SELECT {} FROM {} WHERE {} {end}", self.columns, self.name, filter.sql())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_filters_both_its_total_and_its_rows_and_binds_every_value() {
        let table = Table {
            name: "labels",
            columns: SelectList::Sql("id, name"),
            slug: None,
            tenancy: Tenancy::Organisation,
            on_delete: OnDelete::Delete,
        };
        let filter =
            Filter::default().equals("organisation_id", Uuid::nil()).contains("name", "'; DROP TABLE labels; --");
        let sql = table.page_sql(&filter);
        assert_eq!(sql.matches("organisation_id = $1 AND strpos(lower(name), lower($2)) > 0").count(), 2, "{sql}");
        assert!(sql.contains("LIMIT $3 OFFSET $4") && !sql.contains("DROP"), "{sql}");
    }
}
