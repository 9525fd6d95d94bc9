//! `tools.governance`.

use std::num::NonZeroUsize;

use serde::Deserialize as _;
use zeph_core::failure::one_line;
use zeph_core::policy::{Governance, Mode, PrivatePaths, Sequence, SequenceOrigin};

use super::{Compiling, count};
use crate::governance::GovernanceSettings;
use crate::raw::{RawFlow, RawGovernance, RawSequence, RawSequenceMode};

const SEQUENCES: &str = "tools.governance.blocked_sequences";
const PRIVATE: &str = "tools.governance.private_paths";
const THRESHOLD: &str = "tools.governance.similarity_threshold";

/// Below it, calls are like a sequence that share a few ordinary words with it.
const THRESHOLD_MIN: f64 = 0.5;

impl Compiling<'_> {
    /// What sequences are looked for.
    pub(super) fn governance(&mut self, raw: &RawGovernance) -> GovernanceSettings {
        let sequences = raw.blocked_sequences.iter().enumerate();
        let sequences = sequences.filter_map(|(idx, value)| self.sequence(idx, value));
        GovernanceSettings {
            sequences: sequences.collect(),
            trajectory: raw.trajectory_enabled,
            window_calls: count(raw.window_calls).unwrap_or(NonZeroUsize::MIN),
        }
    }

    fn sequence(&mut self, idx: usize, value: &toml::Value) -> Option<Sequence> {
        let read = RawSequence::deserialize(value.clone()).map_err(|_| {
            "wanted a list of words, or `{ sequence = [words], mode = \"observe\" | \"ask\" | \"deny\" }`"
                .to_owned()
        });
        let sequence = read.and_then(|raw| {
            let (words, mode) = match raw {
                RawSequence::Words(words) => (words, Mode::Deny),
                RawSequence::InMode(raw) => (raw.sequence, sequence_mode(raw.mode)),
            };
            self.warn_of_globs(idx, &words);
            let origin = SequenceOrigin::Configured(idx);
            Sequence::new(&words, mode, origin).map_err(|bad| bad.to_string())
        });
        match sequence {
            Ok(sequence) => Some(sequence),
            Err(message) => {
                let message = format!("`[{idx}]`: {message}");
                self.merged.problem(SEQUENCES, &message);
                None
            }
        }
    }

    /// Words are compared as they are written: one such as `*.env` is hardly meant so.
    fn warn_of_globs(&mut self, idx: usize, words: &[String]) {
        let is_meant_as_glob =
            |word: &&String| word.contains('*') && word.contains(char::is_alphanumeric);
        if let Some(word) = words.iter().find(is_meant_as_glob) {
            let word = one_line(word, 200);
            self.merged.warnings.push(format!(
                "`{SEQUENCES}[{idx}]`: `{word}` is compared as it is written; words of a sequence are not patterns"
            ));
        }
    }

    /// What rules about conversations do.
    pub(super) fn governance_rules(&mut self, raw: &RawGovernance) -> Governance {
        if raw.similarity_threshold < THRESHOLD_MIN {
            let message = format!(
                "found {}, wanted a number from {THRESHOLD_MIN} to 1: below that, one learned sequence would block nearly every call",
                raw.similarity_threshold
            );
            self.merged.problem(THRESHOLD, &message);
        }
        Governance {
            always_available: raw.always_available.clone(),
            blocks_risky: raw.block_risky_patterns,
            similarity_threshold: raw.similarity_threshold,
            flow: flow_mode(raw.flow),
            private: self.private_paths(&raw.private_paths).into(),
        }
    }

    /// The patterns; those of the home directory where there is one.
    fn private_paths(&mut self, texts: &[String]) -> PrivatePaths {
        let has_home = self.surroundings.home.is_some();
        let texts: Vec<String> = texts
            .iter()
            .filter(|text| has_home || !text.starts_with("~/"))
            .cloned()
            .collect();
        let globs = self.patterns(PRIVATE, &texts, |base, text| base.deny(text));
        match PrivatePaths::new(&globs) {
            Ok(paths) => paths,
            Err(bad) => {
                self.merged.problem(PRIVATE, &bad.to_string());
                PrivatePaths::default()
            }
        }
    }
}

fn sequence_mode(raw: RawSequenceMode) -> Mode {
    match raw {
        RawSequenceMode::Observe => Mode::Observe,
        RawSequenceMode::Ask => Mode::Ask,
        RawSequenceMode::Deny => Mode::Deny,
    }
}

fn flow_mode(raw: RawFlow) -> Option<Mode> {
    match raw {
        RawFlow::Off => None,
        RawFlow::Observe => Some(Mode::Observe),
        RawFlow::Ask => Some(Mode::Ask),
        RawFlow::Deny => Some(Mode::Deny),
    }
}
