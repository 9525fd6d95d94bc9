//! `tools.compression`.

use super::Compiling;
use crate::compression::{CompressionSettings, CompressionStrategy};
use crate::origin::ValueOrigin;
use crate::raw::{RawCompression, RawCompressionStrategy};

impl Compiling<'_> {
    /// The settings; ranges were checked against the schema.
    pub(super) fn compression(&self, raw: &RawCompression) -> CompressionSettings {
        let strategies = raw.strategies.iter();
        let tools = raw.strategies.keys();
        CompressionSettings {
            enabled: raw.enabled,
            goal_aware: raw.goal_aware,
            embeddings: raw.embeddings,
            threshold_tokens: super::size(raw.compression_threshold_tokens),
            relevance_threshold: raw.goal_relevance_threshold,
            preserves_errors: raw.preserve_errors,
            preserves_shell_errors: raw.preserve_shell_errors,
            preserved_chars_max: super::size(raw.max_preserved_chars),
            strategies: strategies
                .map(|(tool, strategy)| (tool.clone(), of(*strategy)))
                .collect(),
            named: tools.filter(|tool| self.is_named(tool)).cloned().collect(),
        }
    }

    /// Whether the strategy of `tool` is not one of the program.
    fn is_named(&self, tool: &str) -> bool {
        let key = format!("tools.compression.strategies.{tool}");
        let entry = self.merged.entries.get(&key);
        let mut origins = entry.iter().flat_map(|entry| &entry.origins);
        origins.any(|origin| !matches!(origin, ValueOrigin::BuiltIn { .. }))
    }
}

fn of(raw: RawCompressionStrategy) -> CompressionStrategy {
    match raw {
        RawCompressionStrategy::Aggressive => CompressionStrategy::Aggressive,
        RawCompressionStrategy::Moderate => CompressionStrategy::Moderate,
        RawCompressionStrategy::None => CompressionStrategy::None,
    }
}
