//! An error with all its causes, on one line.

use std::error::Error;

use zeph_core::failure::one_line;

/// `error: its cause: the cause of that`, at most `chars_max` characters.
pub(crate) fn chain(error: &dyn Error, chars_max: usize) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    one_line(&text, chars_max)
}
