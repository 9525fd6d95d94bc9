//! `tools.compression`.

use crate::compression::{CompressionSettings, CompressionStrategy};
use crate::raw::{RawCompression, RawCompressionStrategy};

/// The settings; ranges were checked against the schema.
pub(super) fn compression(raw: &RawCompression) -> CompressionSettings {
    let strategies = raw.strategies.iter();
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
    }
}

fn of(raw: RawCompressionStrategy) -> CompressionStrategy {
    match raw {
        RawCompressionStrategy::Aggressive => CompressionStrategy::Aggressive,
        RawCompressionStrategy::Moderate => CompressionStrategy::Moderate,
        RawCompressionStrategy::None => CompressionStrategy::None,
    }
}
