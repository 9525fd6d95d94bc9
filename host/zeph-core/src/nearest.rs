//! What was probably meant by a name that does not exist.

/// The candidate most like `word`, if one is close enough to be what was meant.
///
/// Units: closeness is the normalised Damerau-Levenshtein similarity; at least 0.5, or one contains the other.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (similarity(&word, candidate), candidate))
        .filter(|(score, _)| *score >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

fn similarity(word: &str, candidate: &str) -> f64 {
    let candidate = candidate.to_lowercase();
    let score = strsim::normalized_damerau_levenshtein(word, &candidate);
    let contained = word.len() >= 3
        && candidate.len() >= 3
        && (candidate.contains(word) || word.contains(&candidate));
    if contained { score.max(0.6) } else { score }
}

#[cfg(test)]
mod tests;
