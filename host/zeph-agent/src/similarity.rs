//! How much a text has to do with each of some tools, by their words alone: the same on every machine, and without a model. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::provider::ToolDefinition;

/// Most words of a text that count: a prompt may hold a whole file.
const WORDS_MAX: usize = 2_000;

/// What a word counts for in the name, the description and the arguments of a tool.
const WEIGHTS: [f64; 3] = [3.0, 1.0, 1.0];

/// For each tool how alike it and `text` are, from 0 to 1: the cosine of their words, where a word counts the more the fewer tools
/// have it.
pub(crate) fn similarities(text: &str, tools: &[&ToolDefinition]) -> Vec<f64> {
    let documents: Vec<BTreeMap<String, f64>> = tools.iter().map(|tool| document(tool)).collect();
    let mut n_having: BTreeMap<&str, f64> = BTreeMap::new();
    for word in documents.iter().flat_map(BTreeMap::keys) {
        *n_having.entry(word).or_default() += 1.0;
    }
    let n_all = n_having_at_most(documents.len());
    let rarity = |word: &str| n_having.get(word).map_or(0.0, |n| ((n_all + 1.0) / n).ln());
    // Words that no tool has say nothing about which one is meant.
    let wanted: BTreeSet<String> = words(text).take(WORDS_MAX).collect();
    let wanted: Vec<(&String, f64)> = wanted
        .iter()
        .map(|word| (word, rarity(word)))
        .filter(|(_, weight)| *weight > 0.0)
        .collect();
    let length = norm(wanted.iter().map(|(_, weight)| *weight));
    let similarity = |document: &BTreeMap<String, f64>| {
        let weight = |word: &str| document.get(word).map_or(0.0, |times| times * rarity(word));
        let shared: f64 = wanted
            .iter()
            .map(|(word, wanted)| wanted * weight(word))
            .sum();
        let lengths = length * norm(document.keys().map(|word| weight(word)));
        if lengths > 0.0 {
            (shared / lengths).min(1.0)
        } else {
            0.0
        }
    };
    documents.iter().map(similarity).collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nobody has so many tools that it would matter"
)]
fn n_having_at_most(n_tools: usize) -> f64 {
    n_tools as f64
}

fn norm(weights: impl Iterator<Item = f64>) -> f64 {
    weights.map(|weight| weight * weight).sum::<f64>().sqrt()
}

/// The words of a tool with what each counts for.
fn document(tool: &ToolDefinition) -> BTreeMap<String, f64> {
    let properties = tool
        .schema
        .get("properties")
        .and_then(|all| all.as_object());
    let arguments = properties
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str());
    let arguments = arguments.collect::<Vec<_>>().join(" ");
    let mut document = BTreeMap::new();
    for (text, weight) in [&tool.name, &tool.description, &arguments]
        .into_iter()
        .zip(WEIGHTS)
    {
        for word in words(text) {
            let counted: &mut f64 = document.entry(word).or_default();
            *counted = counted.max(weight);
        }
    }
    document
}

/// The words of a text: runs of letters and digits in lower case, parted at a capital after a small letter, without the `s` of a plural.
fn words(text: &str) -> impl Iterator<Item = String> {
    let runs = text.split(|letter: char| !letter.is_alphanumeric());
    runs.flat_map(parts)
        .map(|part| singular(part.to_lowercase()))
}

/// `readFile` as `read` and `File`.
fn parts(run: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut was_small) = (0, false);
    for (at, letter) in run.char_indices() {
        if letter.is_uppercase() && was_small {
            parts.push(&run[start..at]);
            start = at;
        }
        was_small = letter.is_lowercase();
    }
    parts.push(&run[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

fn singular(mut word: String) -> String {
    if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::similarities;
    use crate::provider::ToolDefinition;

    fn tool(name: &str, description: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.to_owned(),
            description: description.to_owned(),
            schema: json!({ "type": "object", "properties": { "path": {} } }),
        }
    }

    #[test]
    fn the_tool_that_shares_rare_words_is_the_most_similar() {
        let tools = [
            tool("read_file", "Reads a file of the project."),
            tool("send_mail", "Sends a mail to an address of the project."),
            tool("makeThumbnail", "Shrinks an image of the project."),
        ];
        let tools: Vec<&ToolDefinition> = tools.iter().collect();
        let scores = similarities("please make thumbnails of the images", &tools);
        assert!(scores[2] > 0.5 && scores[2] > 3.0 * scores[0], "{scores:?}");
        assert!(
            scores.iter().all(|score| (0.0..=1.0).contains(score)),
            "{scores:?}"
        );
        let scores = similarities("SEND MAIL", &tools);
        assert!(scores[1] > 0.5 && scores[0] == 0.0, "{scores:?}");
    }

    #[test]
    fn what_no_tool_speaks_of_is_similar_to_none() {
        let tools = [tool("a", "b c")];
        let tools: Vec<&ToolDefinition> = tools.iter().collect();
        assert_eq!(similarities("", &tools), [0.0]);
        assert_eq!(similarities("zzz ☃ \u{202e}", &tools), [0.0]);
        assert_eq!(similarities("anything", &[]), [0.0; 0]);
    }
}
