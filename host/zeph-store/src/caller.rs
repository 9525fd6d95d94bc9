//! Callers in columns that are never null: nobody and a caller without letters differ.

/// The word for a caller.
pub(crate) fn caller_word(caller: Option<&str>) -> String {
    caller.map_or_else(String::new, |caller| format!("@{caller}"))
}

/// The caller of a word.
pub(crate) fn caller_of_word(word: &str) -> Option<String> {
    word.strip_prefix('@').map(str::to_owned)
}
