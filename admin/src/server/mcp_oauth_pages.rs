//! The pages on which a person connects to an MCP server: `/mcp-oauth/start` asks whether they mean it,
//! `/mcp-oauth/callback` is where authorisation servers send them back to. What they decide is in `mcp_oauth::flow`; here
//! is the browser's part: its session must be the person's of the link, a cookie binds both pages to one browser, and forms
//! that another site submitted are refused. Pages contain nothing from outside but names, and those escaped.

use crate::app::App;
use crate::http::Query;
use crate::mcp_oauth::flow::{self, FlowError, LIFE, Question, Return};
use crate::server::mcp_login_pages::{has_csrf_token, sign_in_form, signed_in, with_cookie};
use crate::server::plain_page::{escaped, is_own_form, page};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// Of whatever comes in a form.
const MAX_FORM: usize = 4096;

/// `GET /mcp-oauth/start?state=…`
pub async fn start(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let query = Query::parse(query.as_deref()).unwrap_or_default();
    let state = query.text("state").unwrap_or_default();
    let question = match flow::question(&app, state).await {
        Ok(question) => question,
        Err(fault) => return refusal_page(&fault),
    };
    match signed_in(&app, &headers).await {
        Ok(None) => page(StatusCode::OK, "Sign in", &sign_in(state)),
        Ok(Some((person, session))) if question.is_for(person.organisation, person.user) => {
            with_cookie(page(StatusCode::OK, "Connect", &asked(&question, state, &session.csrf_token)), &session)
        }
        // The page does not name the person of the link.
        Ok(Some((_, session))) => with_cookie(refusal_page(&FlowError::OtherPerson), &session),
        Err(fault) => refusal_page(&fault.into()),
    }
}

/// `POST /mcp-oauth/start`: the person agreed.
pub async fn agree(State(app): State<App>, headers: HeaderMap, body: Bytes) -> Response {
    if !is_own_form(&headers, &app.public_url) || body.len() > MAX_FORM {
        return refusal_page(&FlowError::Unknown);
    }
    let form = std::str::from_utf8(&body).ok().and_then(|form| Query::parse(Some(form)).ok()).unwrap_or_default();
    let state = form.text("state").unwrap_or_default();
    let (person, session) = match signed_in(&app, &headers).await {
        Ok(Some(found)) => found,
        Ok(None) => return page(StatusCode::FORBIDDEN, "Sign in", &sign_in(state)),
        Err(fault) => return refusal_page(&fault.into()),
    };
    if !has_csrf_token(form.text("csrf_token"), &session) {
        return refusal_page(&FlowError::Unknown);
    }
    let cookie = flow::random();
    let answer = match flow::agree(&app, (person.organisation, person.user), state, &cookie).await {
        Ok(url) => sent_on(&app, state, &cookie, &url),
        Err(fault) => refusal_page(&fault),
    };
    with_cookie(answer, &session)
}

/// `GET /mcp-oauth/callback`
pub async fn callback(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let query = Query::parse(query.as_deref()).unwrap_or_default();
    let state = query.text("state").unwrap_or_default();
    // A cookie can be planted from elsewhere: whoever comes back is who was asked, signed in as at the beginning.
    let (person, session) = match signed_in(&app, &headers).await {
        Ok(Some((person, session))) => (Some((person.organisation, person.user)), Some(session)),
        Ok(None) => (None, None),
        Err(fault) => return refusal_page(&fault.into()),
    };
    let back = Return {
        state,
        person,
        cookie: cookie(&headers, &cookie_name(state)).unwrap_or_default(),
        code: query.text("code"),
        error: query.text("error"),
        issuer: query.text("iss"),
    };
    let answer = match flow::finish(&app, back).await {
        Ok(()) => page(StatusCode::OK, "Connected", "<p>You are connected. You can close this window.</p>"),
        Err(fault) => refusal_page(&fault),
    };
    match session {
        Some(session) => with_cookie(answer, &session),
        None => answer,
    }
}

/// To the authorisation server, with the cookie that proves on the way back that this is the same browser.
fn sent_on(app: &App, state: &str, cookie: &str, url: &str) -> Response {
    let secure = if app.public_url.starts_with("https://") { "; Secure" } else { "" };
    let cookie = format!(
        "{}={cookie}; Path=/mcp-oauth; Max-Age={}; HttpOnly; SameSite=Lax{secure}",
        cookie_name(state),
        LIFE.num_seconds()
    );
    let (Ok(cookie), Ok(location)) = (HeaderValue::try_from(cookie), HeaderValue::try_from(url)) else {
        return refusal_page(&FlowError::Internal);
    };
    let headers = [
        (header::SET_COOKIE, cookie),
        (header::LOCATION, location),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// Each way has a cookie of its own, so that two at once do not disturb each other.
fn cookie_name(state: &str) -> String {
    format!("mcp_oauth_{}", &hex::encode(Sha256::digest(state))[..16])
}

fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(one, _)| *one == name).map(|(_, value)| value)
}

fn sign_in(state: &str) -> String {
    sign_in_form(&format!("/mcp-oauth/start?state={state}"))
}

fn asked(question: &Question, state: &str, csrf: &str) -> String {
    let Question { person, server, organisation, asked, .. } = question;
    let texts: [&str; 6] = [person, server, organisation, asked, state, csrf];
    let [person, server, organisation, asked, state, csrf] = texts.map(escaped);
    format!(
        "<p>This connects <strong>{person}</strong> of <strong>{organisation}</strong> with the MCP server \
         <strong>{server}</strong>. You will be asked by <strong>{asked}</strong>.</p>\
         <p>Go on only if you requested this: the gateway will use the account with which you sign in there on your behalf.</p>\
         <form method=\"post\" action=\"start\"><input type=\"hidden\" name=\"state\" value=\"{state}\">\
         <input type=\"hidden\" name=\"csrf_token\" value=\"{csrf}\">\
         <button type=\"submit\">Go on</button></form>"
    )
}

fn refusal_page(fault: &FlowError) -> Response {
    let status = match fault {
        FlowError::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        FlowError::Failed(_) => StatusCode::BAD_GATEWAY,
        FlowError::NoAccess | FlowError::OtherPerson => StatusCode::FORBIDDEN,
        _ => StatusCode::BAD_REQUEST,
    };
    page(status, "Not connected", &format!("<p>{}</p>", escaped(&fault.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_cookie_is_found_among_others() {
        let headers = HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static("a=1; mcp=x; b=2"))]);
        assert_eq!((cookie(&headers, "mcp"), cookie(&headers, "mc")), (Some("x"), None));
        assert_ne!(cookie_name("one"), cookie_name("other"));
    }

    #[test]
    fn names_are_shown_as_text() {
        let question = Question {
            person_id: Uuid::nil(),
            organisation_id: Uuid::nil(),
            person: "<script>@x.test".into(),
            server: "\"A\"".into(),
            organisation: "B&C".into(),
            asked: "https://as.example".into(),
        };
        let shown = asked(&question, "'><script>", "'><script>");
        assert!(!shown.contains("<script>") && shown.contains("B&amp;C") && shown.contains("&quot;A&quot;"), "{shown}");
    }
}
