//! The login that an answer of an identity provider belongs to: begun in this browser, not too long ago, and not answered
//! yet. An answer to none (a replay, another browser's, a planted one) is refused, and stands in the audit trail of the
//! organisation whose address it came to.

use super::finish::record_refusal;
use crate::app::App;
use crate::http::ApiError;
use crate::identity::call::RequestOrigin;
use crate::identity::cookies::Cookie;
use crate::resources::login::LoginProvider;
use crate::resources::login::attempts;
use crate::resources::login::attempts::Attempt;
use uuid::Uuid;

/// Where an answer came to, and which login it says it is of.
pub struct Answered<'a> {
    pub provider: LoginProvider,
    /// None where the address names no id.
    pub organisation: Option<Uuid>,
    pub state: &'a str,
}

/// Takes the login out, with the secret of the browser that began it.
pub async fn take<'o>(
    app: &App,
    origin: &'o RequestOrigin,
    answered: Answered<'_>,
) -> Result<(Attempt, &'o str), ApiError> {
    if let Some(browser) = app.cookies.sent(&origin.headers, Cookie::Login)
        && let Some(attempt) = attempts::take(&*app.db.get().await?, answered.provider, answered.state, browser).await?
    {
        return Ok((attempt, browser));
    }
    Err(recorded(app, origin, answered.organisation, not_begun()).await)
}

/// One answer for a state that nobody knows, that was used, is too old, or belongs to another browser.
fn not_begun() -> ApiError {
    ApiError::SignInRefused("This login was not begun in this browser, is too old, or was completed already".into())
}

/// Writes a refusal into the trail of an organisation, if there is such, and gives it back.
pub async fn recorded(app: &App, origin: &RequestOrigin, organisation: Option<Uuid>, refused: ApiError) -> ApiError {
    match write(app, origin, organisation, &refused).await {
        Ok(()) => refused,
        Err(failed) => failed,
    }
}

async fn write(
    app: &App,
    origin: &RequestOrigin,
    organisation: Option<Uuid>,
    refused: &ApiError,
) -> Result<(), ApiError> {
    const EXISTS: &str = "SELECT FROM organisations WHERE id = $1";
    let Some(organisation) = organisation else { return Ok(()) };
    let found = app.db.get().await?.query_opt(EXISTS, &[&organisation]).await?;
    match found {
        Some(_) => record_refusal(app, origin, organisation, refused).await,
        None => Ok(()),
    }
}
