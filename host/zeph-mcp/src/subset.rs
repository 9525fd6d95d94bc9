//! The tools a caller may use, as patterns over their names.

use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// The tools of a caller: all, or those whose plain or qualified name meets a pattern.
#[derive(Debug, Clone, Default)]
pub struct ToolSubset(Option<Patterns>);

#[derive(Debug, Clone)]
struct Patterns {
    texts: Arc<[String]>,
    set: GlobSet,
}

impl ToolSubset {
    /// Every tool.
    pub const ALL: Self = Self(None);

    /// No tool.
    pub fn none() -> Self {
        Self(Some(Patterns {
            texts: Arc::default(),
            set: GlobSet::empty(),
        }))
    }

    /// The tools that meet one of `patterns` (`*`, `?`, `[a-z]`, `{a,b}`); none for no pattern.
    ///
    /// Errors: the pattern that is none, and why.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, globset::Error> {
        let (mut set, mut texts) = (GlobSetBuilder::new(), Vec::new());
        for pattern in patterns {
            set.add(GlobBuilder::new(pattern).build()?);
            texts.push(pattern.to_owned());
        }
        Ok(Self(Some(Patterns {
            texts: texts.into(),
            set: set.build()?,
        })))
    }

    /// The patterns; none where it has every tool. Subsets of the same patterns have the same tools.
    pub fn patterns(&self) -> Option<Arc<[String]>> {
        Some(Arc::clone(&self.0.as_ref()?.texts))
    }

    /// The tools of a token with these patterns; all where it has none. A pattern that cannot be read means no tool at all: nothing it was
    /// meant to exclude may get in.
    pub fn of_token(patterns: Option<&[String]>) -> Self {
        let Some(patterns) = patterns else {
            return Self::ALL;
        };
        Self::new(patterns.iter().map(String::as_str)).unwrap_or_else(|_| Self::none())
    }

    /// Whether a tool is in it. A pattern for `plugin__tool` holds however the tool is called, and so does one for the bare name.
    pub fn has(&self, name: &str, qualified_name: &str) -> bool {
        let is_met = |own: &Patterns| own.set.is_match(name) || own.set.is_match(qualified_name);
        self.0.as_ref().is_none_or(is_met)
    }
}

#[cfg(test)]
mod tests {
    use super::ToolSubset;

    #[test]
    fn tools_are_met_by_either_name() {
        let has = |patterns: &[&str], tool: (&str, &str)| {
            let subset = ToolSubset::new(patterns.iter().copied()).expect("patterns");
            subset.has(tool.0, tool.1)
        };
        let read = ("read", "file__read");
        assert!(has(&["read"], read));
        assert!(has(&["file__*"], read));
        assert!(has(&["bash", "r*"], read));
        assert!(!has(&["bash"], read));
        assert!(!has(&[], read));
        assert!(ToolSubset::ALL.has("anything", "any__thing"));
        assert!(ToolSubset::new(["{"]).is_err());
        let of_token = |pattern: &str| ToolSubset::of_token(Some(&[pattern.to_owned()]));
        assert!(of_token("read").has("read", "file__read"));
        assert!(!of_token("{").has("read", "file__read"));
        assert!(ToolSubset::of_token(None).has("read", "file__read"));
    }
}
