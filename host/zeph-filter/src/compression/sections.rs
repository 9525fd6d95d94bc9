//! The paragraphs of an output that are compared with a goal by their meaning. How near each is, others find out.

use std::ops::Range;

use zeph_strategies::is_blank;

use super::{TextLines, is_compressible};

/// Lines of a paragraph: of a longer one each so many count for themselves.
const PARAGRAPH_LINES_MAX: usize = 20;

/// Paragraphs of an output that are compared by their meaning. An output with more of them is compared by its words: most of it is a log,
/// whose lines say little each.
pub(super) const SECTIONS_MAX: usize = 128;

/// The paragraphs of `text`, to be compared with a goal by their meaning.
///
/// Shape: in order, none of them blank. `None` where words have to do: there are more than 128, or the text stays as it is.
pub fn sections(text: &str) -> Option<Vec<&str>> {
    if !is_compressible(text) {
        return None;
    }
    let lines = TextLines::of(text);
    let found: Vec<Range<usize>> = paragraphs(&lines).take(SECTIONS_MAX + 1).collect();
    let text_of = |section: &Range<usize>| {
        let (first, last) = (lines.place(section.start), lines.place(section.end - 1));
        &text[first.start..last.end]
    };
    (found.len() <= SECTIONS_MAX).then(|| found.iter().map(text_of).collect())
}

/// The lines of the sections that are near, the nearest first; `meant` is how near each section is.
pub(super) fn near_sections(
    lines: &TextLines<'_>,
    meant: &[f64],
    is_near: impl Fn(f64) -> bool,
) -> Vec<Range<usize>> {
    let sections = paragraphs(lines).zip(meant.iter().copied());
    let mut near: Vec<(Range<usize>, f64)> = sections
        .filter(|(_, relevance)| is_near(*relevance))
        .collect();
    near.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    near.into_iter().map(|(lines, _)| lines).collect()
}

/// The paragraphs of a text, as ranges of lines.
pub(super) fn paragraphs<'a>(lines: &'a TextLines<'_>) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut start = 0;
    std::iter::from_fn(move || {
        let is_empty = |idx: &usize| is_blank(lines.line(*idx));
        while start < lines.len() && is_empty(&start) {
            start += 1;
        }
        let longest = lines.len().min(start + PARAGRAPH_LINES_MAX);
        let end = (start..longest).find(is_empty).unwrap_or(longest);
        let paragraph = start..end;
        start = end;
        (!paragraph.is_empty()).then_some(paragraph)
    })
}
