//! Analytics: graphs over time, groups, when budgets end, and filters that people keep. What is counted are the logs that
//! the caller may see; how they are counted stands in `crate::log_data::analytics`.

mod asked;
mod budgets;
mod docs;
mod graphs;
mod groups;
mod lists;
mod names;
mod saved_filters;
mod several;

use crate::crud::Routes;

pub fn routes() -> Routes {
    graphs::routes()
        .merge(lists::routes())
        .merge(groups::routes())
        .merge(budgets::routes())
        .merge(several::routes())
        .merge(saved_filters::routes())
}
