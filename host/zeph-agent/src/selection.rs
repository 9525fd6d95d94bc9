//! Which tools a conversation is shown: those it is about, those that are always wanted, and none that still needs another one. Pure.
//!
//! The choice is made when a conversation begins and when it is compacted, and never in between: tools stand at the very beginning of a
//! request, and a provider's cache is worth nothing behind the first byte that differs.

use std::cmp::Ordering;

use crate::provider::ToolDefinition;
use crate::similarity::similarities;

/// How tools are chosen by what a conversation is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilterRules {
    /// How many are chosen by similarity at most; `None` without limit.
    pub top_k: Option<usize>,
    /// The least similarity of one that is chosen, from 0 to 1.
    pub min_similarity: f64,
}

/// A tool that can be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// As the model would be shown it.
    pub tool: ToolDefinition,
    /// Whether it is shown whatever the conversation is about.
    pub is_always_on: bool,
    /// The tools that have to succeed first, by their names.
    pub unmet: Vec<String>,
    /// What its similarity is raised by.
    pub boost: f64,
}

/// What was chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// The indices of the tools that are shown, in their order, each with the reason.
    pub shown: Vec<(usize, InclusionReason)>,
    /// Tools the conversation is about that are not shown, because they need others first.
    pub excluded: Vec<DependencyExclusion>,
}

/// Why a tool is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InclusionReason {
    /// Nothing is filtered, or nothing was said to filter by.
    Unfiltered,
    /// It always is.
    AlwaysOn,
    /// The text names it.
    NameMentioned,
    /// It is among the most similar.
    SimilarityRank,
    /// One of the others needs it first.
    Prerequisite,
}

/// A tool that is not shown, because of what it needs first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyExclusion {
    /// Its name.
    pub tool: String,
    /// What it needs.
    pub unmet_requires: Vec<String>,
}

/// Chooses among `candidates` for a conversation about `text`; without `rules` all that need nothing else first.
pub fn select(text: &str, candidates: &[Candidate], rules: Option<FilterRules>) -> Selection {
    let mut wanted = vec![None; candidates.len()];
    match rules.filter(|_| !text.trim().is_empty()) {
        Some(rules) => by_similarity(text, candidates, rules, &mut wanted),
        None => wanted.fill(Some(InclusionReason::Unfiltered)),
    }
    add_prerequisites(candidates, &mut wanted);
    let mut selection = Selection::default();
    for (idx, (candidate, reason)) in candidates.iter().zip(wanted).enumerate() {
        let Some(reason) = reason else { continue };
        match candidate.unmet.is_empty() {
            true => selection.shown.push((idx, reason)),
            false => selection.excluded.push(DependencyExclusion {
                tool: candidate.tool.name.clone(),
                unmet_requires: candidate.unmet.clone(),
            }),
        }
    }
    selection
}

fn by_similarity(
    text: &str,
    candidates: &[Candidate],
    rules: FilterRules,
    wanted: &mut [Option<InclusionReason>],
) {
    let lower = text.to_lowercase();
    for (candidate, reason) in candidates.iter().zip(wanted.iter_mut()) {
        if candidate.is_always_on {
            *reason = Some(InclusionReason::AlwaysOn);
        } else if names(&lower, &candidate.tool.name.to_lowercase()) {
            *reason = Some(InclusionReason::NameMentioned);
        }
    }
    let tools: Vec<&ToolDefinition> = candidates.iter().map(|one| &one.tool).collect();
    let scores = similarities(text, &tools).into_iter().zip(candidates);
    let scores = scores.map(|(similarity, candidate)| similarity + candidate.boost);
    let mut ranked: Vec<(usize, f64)> = scores
        .enumerate()
        .filter(|(idx, score)| {
            wanted[*idx].is_none() && *score > 0.0 && *score >= rules.min_similarity
        })
        .collect();
    // Of equals the first by name, which is the first in order.
    ranked.sort_by(|(_, one), (_, other)| other.partial_cmp(one).unwrap_or(Ordering::Equal));
    for (idx, _) in ranked.into_iter().take(rules.top_k.unwrap_or(usize::MAX)) {
        wanted[idx] = Some(InclusionReason::SimilarityRank);
    }
}

/// What a wanted tool needs first is wanted too, and what that needs.
fn add_prerequisites(candidates: &[Candidate], wanted: &mut [Option<InclusionReason>]) {
    let mut open: Vec<usize> = (0..candidates.len())
        .filter(|idx| wanted[*idx].is_some())
        .collect();
    while let Some(idx) = open.pop() {
        for needed in &candidates[idx].unmet {
            let found = candidates.iter().position(|one| one.tool.name == *needed);
            if let Some(found) = found.filter(|found| wanted[*found].is_none()) {
                wanted[found] = Some(InclusionReason::Prerequisite);
                open.push(found);
            }
        }
    }
}

/// Whether a text has this word; both are in lower case.
fn names(text: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Candidate, FilterRules, InclusionReason, select};
    use crate::provider::ToolDefinition;

    fn candidate(name: &str, description: &str) -> Candidate {
        Candidate {
            tool: ToolDefinition {
                name: name.to_owned(),
                description: description.to_owned(),
                schema: json!({ "type": "object" }),
            },
            is_always_on: false,
            unmet: Vec::new(),
            boost: 0.0,
        }
    }

    fn candidates() -> Vec<Candidate> {
        vec![
            Candidate {
                is_always_on: true,
                ..candidate("bash", "Runs a command.")
            },
            candidate("build", "Builds the program."),
            Candidate {
                unmet: vec!["build".to_owned()],
                ..candidate("deploy", "Publishes a release on the servers.")
            },
            candidate("mail", "Sends a letter."),
            candidate("weather", "Tells the forecast of a place."),
        ]
    }

    fn rules(top_k: usize) -> Option<FilterRules> {
        Some(FilterRules {
            top_k: Some(top_k),
            min_similarity: 0.05,
        })
    }

    fn shown(
        text: &str,
        candidates: &[Candidate],
        rules: Option<FilterRules>,
    ) -> Vec<(String, InclusionReason)> {
        let selection = select(text, candidates, rules);
        let shown = selection.shown.into_iter();
        shown
            .map(|(idx, reason)| (candidates[idx].tool.name.clone(), reason))
            .collect()
    }

    fn of(name: &str, reason: InclusionReason) -> (String, InclusionReason) {
        (name.to_owned(), reason)
    }

    #[test]
    fn what_is_shown_is_always_on_named_or_similar() {
        let all = candidates();
        assert_eq!(
            shown("what is the forecast for tomorrow?", &all, rules(6)),
            [
                of("bash", InclusionReason::AlwaysOn),
                of("weather", InclusionReason::SimilarityRank)
            ]
        );
        assert_eq!(
            shown(
                "use MAIL, not e-mail_tool, for the forecast",
                &all,
                rules(0)
            )[..],
            [
                of("bash", InclusionReason::AlwaysOn),
                of("mail", InclusionReason::NameMentioned)
            ]
        );
        assert_eq!(shown("", &all, rules(1)).len(), 4);
        assert_eq!(shown("anything", &all, None).len(), 4);
    }

    #[test]
    fn what_needs_another_tool_is_hidden_and_that_tool_is_shown() {
        let mut all = candidates();
        let selection = select("publish the release", &all, rules(1));
        assert_eq!(selection.excluded[0].tool, "deploy");
        assert_eq!(selection.excluded[0].unmet_requires, ["build"]);
        assert_eq!(selection.shown[1], (1, InclusionReason::Prerequisite));
        all[2].unmet.clear();
        let selection = select("publish the release", &all, rules(1));
        assert_eq!(selection.shown[1], (2, InclusionReason::SimilarityRank));
        assert!(selection.excluded.is_empty());
    }

    #[test]
    fn a_boost_lifts_a_tool_over_others_and_the_minimum() {
        let mut all = candidates();
        assert_eq!(shown("say hello", &all, rules(1)).len(), 1);
        all[3].boost = 0.15;
        assert_eq!(shown("say hello", &all, rules(1))[1].0, "mail");
    }
}
