//! A part of a long text, counted in characters, and where the next one begins.

use zeph_plugin::ToolError;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The text of the part.
    pub text: &'a str,
    /// Where it begins.
    pub start: usize,
    /// Where the next one begins; none at the end.
    pub next: Option<usize>,
    /// Characters of the whole.
    pub total: usize,
}

impl<'a> Part<'a> {
    /// At most `max` characters of `text` from `start`.
    ///
    /// Errors: `invalid_parameters` when the text ends before `start`.
    pub fn of(text: &'a str, start: usize, max: usize) -> Result<Self, ToolError> {
        let total = text.chars().count();
        if start > 0 && start >= total {
            return Err(ToolError::invalid_parameters(format!(
                "`start_index` is {start}, but the text has {total} characters"
            )));
        }
        let at = |idx: usize| {
            text.char_indices()
                .nth(idx)
                .map_or(text.len(), |(at, _)| at)
        };
        let end = start.saturating_add(max.max(1));
        let next = (end < total).then_some(end);
        Ok(Self {
            text: &text[at(start)..next.map_or(text.len(), at)],
            start,
            next,
            total,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_the_whole() {
        let text = "aäb\u{1f600}c".repeat(7);
        for max in [1, 2, 3, 7, 34, 35, 36, 1000] {
            let (mut whole, mut start) = (String::new(), Some(0));
            while let Some(from) = start {
                let part = Part::of(&text, from, max).expect("it is inside");
                assert_eq!((part.start, part.total), (from, 35));
                assert!(part.text.chars().count() <= max);
                whole.push_str(part.text);
                start = part.next;
            }
            assert_eq!(whole, text, "{max}");
        }
    }

    #[test]
    fn an_end_is_an_end() {
        assert_eq!(
            Part::of("", 0, 10).ok(),
            Some(Part {
                text: "",
                start: 0,
                next: None,
                total: 0
            })
        );
        for start in [3, 4, usize::MAX] {
            assert!(Part::of("abc", start, 10).is_err());
        }
    }
}
