//! The kind of a counter: whose it is, its unit and its window. Three words in the tables; one byte in the journal,
//! where every call writes one for each of its limits.

use super::counter::{Scope, Unit, Window};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CounterKind {
    pub scope: Scope,
    pub unit: Unit,
    /// None for a budget.
    pub window: Option<Window>,
}

/// In the order of their codes, which stand in journals: only ever add at the end.
const WINDOWS: [Option<Window>; 5] =
    [None, Some(Window::Minute), Some(Window::Hour), Some(Window::Day), Some(Window::Week)];
const UNITS: [Unit; 3] = [Unit::Requests, Unit::Tokens, Unit::Cost];
const SCOPES: [Scope; 6] =
    [Scope::ApiKey, Scope::Workspace, Scope::Provider, Scope::Integration, Scope::Token, Scope::Policy];

/// Windows of seconds came later; their codes begin here.
const SECONDS: u8 = 5 * 3 * 6;

impl CounterKind {
    pub fn code(self) -> u8 {
        let rest = self.unit as u8 + 3 * self.scope as u8;
        match self.window {
            None => 5 * rest,
            Some(Window::Second) => SECONDS + rest,
            Some(window) => window as u8 + 1 + 5 * rest,
        }
    }

    pub fn from_code(code: u8) -> Option<Self> {
        if let Some(rest) = code.checked_sub(SECONDS) {
            let (scope, unit) = (*SCOPES.get(usize::from(rest / 3))?, UNITS[usize::from(rest % 3)]);
            return Some(Self { scope, unit, window: Some(Window::Second) });
        }
        let (window, rest) = (code % 5, code / 5);
        let (window, unit) = (WINDOWS[usize::from(window)], UNITS[usize::from(rest % 3)]);
        Some(Self { scope: *SCOPES.get(usize::from(rest / 3))?, unit, window })
    }

    pub fn from_words(scope: &str, unit: &str, period: &str) -> Option<Self> {
        let is_meant = |sort: &Self| [sort.scope(), sort.unit.name(), sort.period()] == [scope, unit, period];
        (0..=u8::MAX).map_while(Self::from_code).find(is_meant)
    }

    /// As it stands in the tables. Rates of things have names of their own: the plain ones are totals by day, in which
    /// every try of a call counts.
    pub fn scope(self) -> &'static str {
        match (self.scope, self.window) {
            (Scope::ApiKey, None) => "api_key",
            (Scope::ApiKey, Some(_)) => "api_key_rate",
            (Scope::Workspace, None) => "workspace",
            (Scope::Workspace, Some(_)) => "workspace_rate",
            (Scope::Provider, None) => "provider",
            (Scope::Provider, Some(_)) => "provider_rate",
            (Scope::Integration, None) => "integration",
            (Scope::Integration, Some(_)) => "integration_rate",
            (Scope::Token, None) => "token",
            (Scope::Token, Some(_)) => "token_rate",
            (Scope::Policy, _) => "policy",
        }
    }

    /// As it stands in the tables.
    pub fn period(self) -> &'static str {
        self.window.map_or("total", Window::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sort_has_a_code_and_words_of_its_own() {
        let sorts: Vec<CounterKind> = (0..=u8::MAX).filter_map(CounterKind::from_code).collect();
        assert_eq!(sorts.len(), 6 * 3 * 6);
        for (code, sort) in (0..).zip(&sorts) {
            assert_eq!((sort.code(), CounterKind::from_code(code)), (code, Some(*sort)));
            assert_eq!(CounterKind::from_words(sort.scope(), sort.unit.name(), sort.period()), Some(*sort));
        }
        assert_eq!(CounterKind::from_words("api_key", "requests", "day"), None);
        // Journals are read by later versions.
        let known = [
            ("api_key", "requests", "total", 0),
            ("workspace_rate", "tokens", "hour", 22),
            ("policy", "cost", "total", 85),
            ("api_key_rate", "requests", "second", 90),
        ];
        for (scope, unit, period, code) in known {
            assert_eq!(
                CounterKind::from_words(scope, unit, period).map(CounterKind::code),
                Some(code),
                "{scope} {unit} {period}"
            );
        }
    }
}
