//! How large a config may be, and what it may name. Every bound is on work that a request would do.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigLimits {
    /// Targets of the root.
    pub root_targets: usize,
    /// Targets of the root when one is chosen by conditions: only one of them is ever used.
    pub conditional_root_targets: usize,
    /// All targets below one target of the root.
    pub nested_targets: usize,
    /// Levels of targets.
    pub depth: usize,
    /// Tests in all conditions together.
    pub tests: usize,
    /// Patterns among them; each is compiled.
    pub patterns: usize,
    /// Fields that a sticky choice may depend on.
    pub hash_fields: usize,
    /// Providers beyond the bundled table.
    pub further_providers: Vec<String>,
}

impl Default for ConfigLimits {
    fn default() -> Self {
        Self {
            root_targets: 100,
            conditional_root_targets: 1000,
            nested_targets: 50,
            depth: 10,
            tests: 2000,
            patterns: 200,
            hash_fields: 20,
            further_providers: Vec::new(),
        }
    }
}

impl ConfigLimits {
    /// For a config that comes with a request: anybody with a key may send another one with each, and each is read,
    /// compiled and asked.
    pub fn inline(self) -> Self {
        Self { tests: self.tests.min(500), patterns: self.patterns.min(50), ..self }
    }
}
