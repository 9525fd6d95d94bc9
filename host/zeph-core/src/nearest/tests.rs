//! Suggestions for names that do not exist.

use super::nearest;

#[test]
fn nearest_name() {
    let names = [
        "read",
        "write",
        "edit",
        "grep",
        "find_path",
        "list_directory",
    ];
    let table = [
        ("raed", Some("read")),
        ("Read", Some("read")),
        ("read_file", Some("read")),
        ("list_dir", Some("list_directory")),
        ("findpath", Some("find_path")),
        ("kubernetes", None),
        ("", None),
    ];
    for (word, expect) in table {
        assert_eq!(nearest(word, names), expect, "{word}");
    }
}
