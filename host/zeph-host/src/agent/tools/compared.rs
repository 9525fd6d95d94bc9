//! What of a result tells whether it is the same as an earlier one: not the age of a kept result, nor the ID of a stored text or a run.

use crate::cache::KEPT;

/// How a line begins that says that a result was kept.
const NOTE: &str = "[note] ";

/// What an ID stands behind.
const IDS: [&str; 2] = ["overflow:", "run_id="];

/// `text` without them.
pub(super) fn output(text: &str) -> String {
    let is_age = |line: &&str| {
        let note = line.strip_prefix(NOTE);
        note.is_some_and(|note| note.starts_with(KEPT))
    };
    let lines = text.lines().filter(|line| !is_age(line));
    let lines: Vec<String> = lines.map(without_ids).collect();
    lines.join("\n").trim_end().to_owned()
}

fn without_ids(line: &str) -> String {
    let mut kept = line.to_owned();
    for mark in IDS {
        let mut pieces = kept.split(mark);
        let first = pieces.next().unwrap_or_default().to_owned();
        let is_of_id = |c: char| c.is_ascii_hexdigit() || c == '-';
        kept = pieces.fold(first, |kept, piece| {
            kept + mark + piece.trim_start_matches(is_of_id)
        });
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::output;

    #[test]
    fn what_differs_each_time_is_not_compared() {
        let page = |id: &str, age: &str| {
            let note = "nothing that the call reads has changed since";
            format!(
                "one\n[full output stored — ID: overflow:{id} — 9 bytes]\n[note] cached {age} ago; {note}\n"
            )
        };
        let first = "1884df70-6434-4ed6-bf48-62da4688df3a";
        let second = "388e1952-1289-4b95-95f7-a16abee74927";
        assert_eq!(
            output(&page(first, "47 ms")),
            output(&page(second, "2.4 s"))
        );
        assert_eq!(
            output("one\n"),
            output("one\n[note] cached 3 ms ago; nothing has changed")
        );
        assert_eq!(
            output(&format!("[background] started run_id={first}")),
            output(&format!("[background] started run_id={second}"))
        );
        assert_ne!(output("one\n[note] a"), output("one\n[note] b"));
        assert_ne!(output("12 passed"), output("13 passed"));
    }
}
