//! Which tools a conversation is shown: those it is about, those that are always wanted, and none that still needs another one. Pure.
//!
//! What a conversation is about is compared with tools by their vectors, where a model made some, and otherwise by their words.
//!
//! The choice is made when a conversation begins and when it is compacted, and never in between: tools stand at the very beginning of a
//! request, and a provider's cache is worth nothing behind the first byte that differs.

use std::cmp::Ordering;

use crate::embedding::cosine;
use crate::provider::ToolDefinition;
use crate::similarity::similarities;

/// Words of a description below which its vector says nothing: such a tool is shown when tools are compared by vectors.
const DESCRIPTION_WORDS_MIN: usize = 5;

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
    /// Its description is too short for a vector that means anything.
    ShortDescription,
    /// It is among the most similar.
    SimilarityRank,
    /// It has no vector to compare.
    NoEmbedding,
    /// One of the others needs it first.
    Prerequisite,
}

/// The vectors of a text and of the candidates, in their order: all of one model, and empty where there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectionVectors<V> {
    /// Of the text.
    pub text: V,
    /// Of the candidates.
    pub tools: Vec<V>,
}

/// A tool that is not shown, because of what it needs first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyExclusion {
    /// Its name.
    pub tool: String,
    /// What it needs.
    pub unmet_requires: Vec<String>,
}

/// What a model is asked for the vector of: name, description and arguments of a tool.
pub fn text_of(tool: &ToolDefinition) -> String {
    let properties = tool.schema.get("properties");
    let properties = properties.and_then(|all| all.as_object());
    let names = properties
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str());
    let names = names.collect::<Vec<_>>().join(", ");
    format!("{}: {}\narguments: {names}", tool.name, tool.description)
}

/// Chooses among `candidates` for a conversation about `text`; without `rules` all that need nothing else first. Without `vectors`, or
/// without one of the text, tools are compared by their words.
pub fn select<V: AsRef<[f32]>>(
    text: &str,
    candidates: &[Candidate],
    rules: Option<FilterRules>,
    vectors: Option<&SelectionVectors<V>>,
) -> Selection {
    let mut wanted = vec![None; candidates.len()];
    match rules.filter(|_| !text.trim().is_empty()) {
        Some(rules) => {
            let vectors = vectors.filter(|vectors| is_usable(vectors, candidates));
            by_similarity((text, vectors), candidates, rules, &mut wanted);
        }
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

fn is_usable<V: AsRef<[f32]>>(vectors: &SelectionVectors<V>, candidates: &[Candidate]) -> bool {
    !vectors.text.as_ref().is_empty() && vectors.tools.len() == candidates.len()
}

fn by_similarity<V: AsRef<[f32]>>(
    (text, vectors): (&str, Option<&SelectionVectors<V>>),
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
    let scores = match vectors {
        Some(vectors) => compare(vectors, candidates, wanted),
        None => {
            let tools: Vec<&ToolDefinition> = candidates.iter().map(|one| &one.tool).collect();
            similarities(text, &tools)
        }
    };
    let scores = scores.into_iter().zip(candidates);
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

/// How alike the text and each candidate are by their vectors. A candidate whose vector says nothing is wanted.
fn compare<V: AsRef<[f32]>>(
    vectors: &SelectionVectors<V>,
    candidates: &[Candidate],
    wanted: &mut [Option<InclusionReason>],
) -> Vec<f64> {
    let text = vectors.text.as_ref();
    let of_tools = vectors.tools.iter().map(V::as_ref);
    for ((candidate, vector), reason) in candidates.iter().zip(of_tools.clone()).zip(wanted) {
        let n_words = candidate.tool.description.split_whitespace().count();
        let unknown = match (n_words < DESCRIPTION_WORDS_MIN, vector.is_empty()) {
            (true, _) => Some(InclusionReason::ShortDescription),
            (_, true) => Some(InclusionReason::NoEmbedding),
            _ => None,
        };
        *reason = reason.or(unknown);
    }
    of_tools
        .map(|vector| cosine(text, vector).max(0.0))
        .collect()
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

    use super::{Candidate, FilterRules, InclusionReason, SelectionVectors, select};
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
        let selection = select::<Vec<f32>>(text, candidates, rules, None);
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
        let selection = select::<Vec<f32>>("publish the release", &all, rules(1), None);
        assert_eq!(selection.excluded[0].tool, "deploy");
        assert_eq!(selection.excluded[0].unmet_requires, ["build"]);
        assert_eq!(selection.shown[1], (1, InclusionReason::Prerequisite));
        all[2].unmet.clear();
        let selection = select::<Vec<f32>>("publish the release", &all, rules(1), None);
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

    #[test]
    fn vectors_choose_where_there_are_some_and_words_where_there_are_none() {
        let mut all = candidates();
        all[1].tool.description = "Compiles every part of the whole program.".to_owned();
        all[3].tool.description = "Sends a letter to a person of your choice.".to_owned();
        all[4].tool.description = "Tells the forecast of a place on earth.".to_owned();
        let vectors = SelectionVectors {
            text: vec![1.0, 0.0],
            tools: vec![
                vec![0.0, 1.0],
                vec![0.9, 0.1],
                vec![0.0, 1.0],
                vec![-1.0, 0.0],
                Vec::new(),
            ],
        };
        let reasons = |vectors: &SelectionVectors<Vec<f32>>| {
            let selection = select("zzz", &all, rules(1), Some(vectors));
            selection.shown
        };
        assert_eq!(
            reasons(&vectors),
            [
                (0, InclusionReason::AlwaysOn),
                (1, InclusionReason::SimilarityRank),
                (4, InclusionReason::NoEmbedding),
            ]
        );
        let without = SelectionVectors {
            text: Vec::new(),
            ..vectors.clone()
        };
        assert_eq!(reasons(&without), [(0, InclusionReason::AlwaysOn)]);
        let short = SelectionVectors {
            tools: vectors.tools[..2].to_vec(),
            ..vectors
        };
        assert_eq!(reasons(&short), [(0, InclusionReason::AlwaysOn)]);
        all[3].tool.description = "Sends letters.".to_owned();
        let vectors = SelectionVectors {
            text: vec![1.0],
            tools: vec![vec![0.0]; 5],
        };
        let shown = select("no word", &all, rules(1), Some(&vectors)).shown;
        assert!(
            shown.contains(&(3, InclusionReason::ShortDescription)),
            "{shown:?}"
        );
    }
}
