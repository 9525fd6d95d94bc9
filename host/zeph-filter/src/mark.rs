//! The one prefix of lines that are not the command's own.

/// What every line begins with that the filters added. A text that holds such a line has been filtered already, or wants to
/// look like it: it is shown as it is.
pub const MARK: &str = "[zeph] ";

/// Whether a text holds a line of ours.
pub(crate) fn is_marked(text: &str) -> bool {
    let is_anywhere = memchr::memmem::find(text.as_bytes(), MARK.as_bytes()).is_some();
    is_anywhere && text.lines().any(|line| line.starts_with(MARK))
}
