//! What `config/default.toml` says of each key: the lines of comment above it.

use std::collections::BTreeMap;

use super::keys::join;

/// The text above every key of a file in the form of `config/default.toml`, on one line, by the dotted key.
pub(crate) fn meanings(text: &str) -> BTreeMap<String, String> {
    let mut meanings = BTreeMap::new();
    let (mut section, mut above) = ("", Vec::new());
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix('#') {
            above.push(comment.trim());
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name;
        } else if let Some((name, _)) = line.split_once(" = ") {
            meanings.insert(join(section, name), above.join(" "));
        }
        above.clear();
    }
    meanings
}
