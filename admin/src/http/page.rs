//! What goes with every page that people see, said once: nothing is loaded from elsewhere, script and style are those that
//! the policy names by their hashes, nobody frames the page or keeps it, and whom it calls is told no more than it must.

use axum::http::{HeaderName, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// What a page may do beside showing what is in it; without anything said, nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct PagePolicy<'p> {
    /// The one script that stands in it.
    pub script: Option<&'p str>,
    /// The one style that stands in it.
    pub style: Option<&'p str>,
    /// Whom the script may call: `'self'`, and origins.
    pub calls: Option<&'p str>,
    /// Whether it has a form that is sent. To where, a policy could not say: it holds for where the answer leads too.
    pub has_form: bool,
}

impl<'p> PagePolicy<'p> {
    /// Of a page that is one file: its own script and style, which call this service.
    pub fn of_file(page: &'p str) -> Self {
        let inside = |open: &str, close: &str| {
            let (_, rest) = page.split_once(open)?;
            rest.split_once(close).map(|(inside, _)| inside)
        };
        Self {
            script: inside("<script>", "</script>"),
            style: inside("<style>", "</style>"),
            calls: Some("'self'"),
            has_form: false,
        }
    }

    pub fn header(&self) -> HeaderValue {
        let named = |kind: &str, text: &str| format!("{kind} 'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
        let mut rules = vec!["default-src 'none'".to_owned()];
        rules.extend(self.script.map(|script| named("script-src", script)));
        rules.extend(self.style.map(|style| named("style-src", style)));
        rules.extend(self.calls.map(|whom| format!("connect-src {whom}")));
        rules.push("base-uri 'none'".to_owned());
        rules.extend((!self.has_form).then(|| "form-action 'none'".to_owned()));
        rules.push("frame-ancestors 'none'".to_owned());
        // Only what may be called could be no header; then nothing may.
        HeaderValue::try_from(rules.join("; ")).unwrap_or(HeaderValue::from_static("default-src 'none'"))
    }
}

/// All that goes with a page. `referrer` is what links and forms of it tell.
pub fn page_headers(policy: HeaderValue, referrer: &'static str) -> [(HeaderName, HeaderValue); 5] {
    [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (header::REFERRER_POLICY, HeaderValue::from_static(referrer)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_names_what_stands_in_the_page_and_nothing_else() {
        let text = |policy: PagePolicy<'_>| policy.header().to_str().unwrap().to_owned();
        let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
        assert_eq!(
            text(PagePolicy::default()),
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        assert_eq!(
            text(PagePolicy { style: Some("b {}"), has_form: true, ..PagePolicy::default() }),
            format!("default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; frame-ancestors 'none'", hash("b {}"))
        );
        assert_eq!(
            text(PagePolicy::of_file("<style>b {}</style><script>go()</script>")),
            format!(
                "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; \
                 base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                hash("go()"),
                hash("b {}")
            )
        );
    }
}
