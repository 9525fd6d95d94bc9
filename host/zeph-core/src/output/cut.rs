//! Cuts a long text to its head and tail.

/// A text in three parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut<'a> {
    /// The first part kept; ends at a line end where one is near.
    pub head: &'a str,
    /// The last part kept; starts at a line start where one is near.
    pub tail: &'a str,
    /// Characters omitted between them.
    pub n_chars_left_out: usize,
}

/// Splits `text` into head and tail when it has more than `chars_max` characters.
///
/// Shape:  none when the text fits. Head and tail together have at most `chars_max` characters, head two thirds of
///         them, since the start of an output usually says what it is; both keep whole lines when that costs at
///         most a fifth of their length.
/// Units:  characters (Unicode scalar values), as the threshold is documented.
/// Limits: one pass over the text.
pub fn cut(text: &str, chars_max: usize) -> Option<Cut<'_>> {
    // Bytes bound characters from above, so most texts need no counting.
    if text.len() <= chars_max {
        return None;
    }
    let n_chars = text.chars().count();
    if n_chars <= chars_max {
        return None;
    }
    let head_chars = chars_max * 2 / 3;
    let tail_chars = chars_max - head_chars;
    let head_end = end_of_first(text, head_chars);
    let tail_start = start_of_last(text, tail_chars);
    let head = whole_lines_of_head(&text[..head_end]);
    let tail = whole_lines_of_tail(&text[tail_start..]);
    let n_kept = head.chars().count() + tail.chars().count();
    Some(Cut {
        head,
        tail,
        n_chars_left_out: n_chars - n_kept,
    })
}

fn end_of_first(text: &str, n_chars: usize) -> usize {
    let next = text.char_indices().nth(n_chars);
    next.map_or(text.len(), |(byte_idx, _)| byte_idx)
}

/// From the end: the text may be a thousand times as long as what is kept of it.
fn start_of_last(text: &str, n_chars: usize) -> usize {
    let Some(n_before) = n_chars.checked_sub(1) else {
        return text.len();
    };
    let first = text.char_indices().rev().nth(n_before);
    first.map_or(0, |(byte_idx, _)| byte_idx)
}

fn whole_lines_of_head(head: &str) -> &str {
    match head.rfind('\n') {
        Some(end) if head.len() - end <= head.len() / 5 => &head[..=end],
        _ => head,
    }
}

fn whole_lines_of_tail(tail: &str) -> &str {
    match tail.find('\n') {
        Some(end) if end < tail.len() / 5 => &tail[end + 1..],
        _ => tail,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::cut;

    #[test]
    fn fits() {
        assert_eq!(cut("", 0), None);
        assert_eq!(cut("ééé", 3), None, "characters count, not bytes");
    }

    #[test]
    fn keeps_whole_lines_when_cheap() {
        let text = "0123456789\n".repeat(100);
        let cut = cut(&text, 300).unwrap();
        assert!(cut.head.ends_with('\n'));
        assert!(cut.tail.starts_with('0'));
    }

    proptest! {
        #[test]
        fn head_and_tail_are_the_ends(text in "[a-zé\n]{0,400}", chars_max in 0usize..200) {
            let Some(cut) = cut(&text, chars_max) else {
                prop_assert!(text.chars().count() <= chars_max);
                return Ok(());
            };
            prop_assert!(text.starts_with(cut.head));
            prop_assert!(text.ends_with(cut.tail));
            let n_kept = cut.head.chars().count() + cut.tail.chars().count();
            prop_assert!(n_kept <= chars_max);
            prop_assert_eq!(n_kept + cut.n_chars_left_out, text.chars().count());
        }
    }
}
