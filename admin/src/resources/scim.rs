//! SCIM 2.0: an organisation's identity provider tells who its people are and which groups they are in. Groups stand for
//! workspaces by rule (`mappings`) or by their name (`automatic`). Every query is scoped to the token's organisation.

mod answer;
mod automatic;
mod bulk;
mod discovery;
mod docs;
pub mod filter;
mod filter_sql;
mod groups;
mod mappings;
mod membership;
mod patch;
mod person;
mod users;

use crate::crud::Routes;

pub fn routes() -> Routes {
    Routes::default()
        .get("/scim/workspaces", mappings::list)
        .post("/scim/workspaces", mappings::create)
        .delete("/scim/workspaces/{mappingId}", mappings::remove)
        .get("/scim/groups", mappings::groups)
        .get("/scim/ServiceProviderConfig", discovery::provider)
        .get("/scim/ResourceTypes", discovery::resource_types)
        .get("/scim/ResourceTypes/{id}", discovery::resource_type)
        .get("/scim/Schemas", discovery::schemas)
        .get("/scim/Schemas/{id}", discovery::schema)
        .get("/scim/Users", users::list)
        .post("/scim/Users", users::post)
        .get("/scim/Users/{id}", users::get)
        .put("/scim/Users/{id}", users::put)
        .patch("/scim/Users/{id}", users::patch)
        .delete("/scim/Users/{id}", users::delete)
        .get("/scim/Groups", groups::list)
        .post("/scim/Groups", groups::post)
        .get("/scim/Groups/{id}", groups::get)
        .put("/scim/Groups/{id}", groups::put)
        .patch("/scim/Groups/{id}", groups::patch)
        .delete("/scim/Groups/{id}", groups::delete)
        .post("/scim/Bulk", bulk::run)
        .describe(docs::docs())
}
