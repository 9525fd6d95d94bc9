//! Columns of text for people. Pure.

use zeph_core::failure::one_line;

use super::render::{BOLD, escape, push_styled};

/// Characters between two columns.
const GAP: usize = 2;

/// The narrowest a last column is cut to; below it the terminal wraps.
const LAST_COLUMN_CHARS_MIN: usize = 20;

/// Rows under a bold head, each column as wide as its widest cell.
///
/// Shape: every cell is folded onto one line. With `width`, the last column is cut so that a row fits.
/// Units: characters, which is right for text that is not double-width.
pub(crate) fn render<const N: usize>(
    head: [&str; N],
    rows: &[[String; N]],
    width: Option<usize>,
) -> String {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            row.iter()
                .map(|cell| escape(&one_line(cell, usize::MAX / 4)))
                .collect()
        })
        .collect();
    let n_chars = |cell: &str| cell.chars().count();
    let widths: Vec<usize> = (0..N)
        .map(|idx| {
            let widest = cells
                .iter()
                .map(|row| n_chars(&row[idx]))
                .max()
                .unwrap_or(0);
            widest.max(n_chars(head[idx]))
        })
        .collect();
    let before_last: usize = widths[..N.saturating_sub(1)]
        .iter()
        .map(|width| width + GAP)
        .sum();
    let last_max = width.map(|width| width.saturating_sub(before_last).max(LAST_COLUMN_CHARS_MIN));

    let mut shown = String::new();
    for (idx, cell) in head.iter().enumerate() {
        push_styled(&mut shown, BOLD, cell);
        pad(&mut shown, n_chars(cell), widths[idx], idx + 1 == N);
    }
    for row in &cells {
        for (idx, cell) in row.iter().enumerate() {
            let is_last = idx + 1 == N;
            match last_max {
                Some(max) if is_last && n_chars(cell) > max => {
                    shown.push_str(&one_line(cell, max - 1));
                }
                _ => shown.push_str(cell),
            }
            pad(&mut shown, n_chars(cell), widths[idx], is_last);
        }
    }
    shown
}

/// Rows under a head without a style, for what is not a terminal: models, files.
///
/// Shape: as [`render`] without a width.
pub(crate) fn plain<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    // Cells hold no escapes: only the head's own are removed.
    anstream::adapter::strip_str(&render(head, rows, None)).to_string()
}

fn pad(shown: &mut String, n_chars: usize, width: usize, is_last: bool) {
    if is_last {
        shown.truncate(shown.trim_end_matches(' ').len());
        shown.push('\n');
    } else {
        shown.extend(std::iter::repeat_n(' ', width - n_chars + GAP));
    }
}

#[cfg(test)]
mod tests {
    use super::{plain, render};

    fn check(width: Option<usize>, expect: &str) {
        let rows = [
            [
                "read".to_owned(),
                "first line\nsecond \x1b[2J line of it".to_owned(),
            ],
            ["list_directory".to_owned(), String::new()],
        ];
        let shown = render(["NAME", "WHAT"], &rows, width);
        assert_eq!(anstream::adapter::strip_str(&shown).to_string(), expect);
    }

    #[test]
    fn a_plain_table_has_no_escapes() {
        let shown = plain(["NAME", "WHAT"], &[["a".to_owned(), "b".to_owned()]]);
        assert_eq!(shown, "NAME  WHAT\na     b\n");
    }

    #[test]
    fn columns_line_up_and_stay_on_their_line() {
        check(
            None,
            "NAME            WHAT\n\
             read            first line second  [2J line of it\n\
             list_directory\n",
        );
        check(
            Some(36),
            "NAME            WHAT\n\
             read            first line second  …\n\
             list_directory\n",
        );
    }
}
