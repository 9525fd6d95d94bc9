//! What the rules of a policy hide from one call, as layers of which the first that holds a path decides.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use zeph_core::policy::PathLayer;

use super::error::FsPolicyError;

/// Most lists of one call: the policy, and the permissions under each name of the tool.
const LISTS_MAX: usize = 3;

/// No layer.
const NONE: u16 = u16::MAX;

/// Compiled lists of layers.
#[derive(Debug, Default)]
pub struct Rulings {
    lists: Vec<Vec<(bool, GlobSet)>>,
}

/// For each list the first layer that holds a path or one of its ancestors: twice its place, and one more when it hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RulingSet([u16; LISTS_MAX]);

impl Default for RulingSet {
    fn default() -> Self {
        Self([NONE; LISTS_MAX])
    }
}

impl RulingSet {
    /// Whether a list hides it.
    pub(super) fn hides(self) -> bool {
        self.0.iter().any(|layer| *layer != NONE && layer % 2 == 1)
    }
}

impl Rulings {
    /// Compiles lists of layers; paths are matched in lower case, and `*` is any text.
    ///
    /// Errors: a glob that does not compile. Limits: 3 lists, 10,000 layers of each; with more nothing is allowed.
    pub fn new(lists: &[Vec<PathLayer>]) -> Result<Self, FsPolicyError> {
        let too_many = |reason| FsPolicyError::DeadPattern {
            pattern: "the rules of the policy".to_owned(),
            reason,
        };
        if lists.len() > LISTS_MAX || lists.iter().any(|layers| layers.len() > 10_000) {
            return Err(too_many("they are too many"));
        }
        let compiled = lists.iter().map(|layers| {
            let layers = layers
                .iter()
                .map(|layer| Ok((layer.hides, set(&layer.globs)?)));
            layers.collect::<Result<Vec<_>, _>>()
        });
        Ok(Self {
            lists: compiled.collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// What is known of `path`, given what is known of its parent.
    pub(super) fn below(&self, parent: RulingSet, path: &Path) -> RulingSet {
        let mut ruled = parent;
        if self.is_empty() {
            return ruled;
        }
        let lower = path.to_string_lossy().to_lowercase();
        for (known, layers) in ruled.0.iter_mut().zip(&self.lists) {
            let first = layers.iter().position(|(_, globs)| globs.is_match(&lower));
            let Some(first) = first else { continue };
            let code = u16::try_from(first * 2 + usize::from(layers[first].0));
            *known = (*known).min(code.unwrap_or(NONE - 1));
        }
        ruled
    }
}

fn set(globs: &[String]) -> Result<GlobSet, FsPolicyError> {
    let failed = |pattern: &str, source| FsPolicyError::Pattern {
        pattern: pattern.to_owned(),
        source,
    };
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let compiled = GlobBuilder::new(glob).build();
        set.add(compiled.map_err(|source| failed(glob, source))?);
    }
    set.build().map_err(|source| failed("", source))
}
