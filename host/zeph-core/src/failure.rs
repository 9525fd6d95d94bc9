//! A failed call as data, and the block of text a model reads about it.

use std::error::Error;

use serde::Serialize;

use crate::category::{ErrorCategory, ErrorPhase};
use crate::exit::CommandExit;

/// A failed call, in terms that the model may see.
///
/// It contains no secrets of the host and no paths outside the granted directories; those go to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolFailure {
    /// The category, which determines retry behavior and advice.
    pub category: ErrorCategory,
    /// The part of the call in which it occurred.
    pub phase: ErrorPhase,
    /// One plain sentence: what was wrong and, if known, what to do.
    pub message: String,
    /// HTTP status behind it, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// How long to wait before a retry, in milliseconds, if the remote side asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// How the command ended, if one ran to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<CommandExit>,
    /// Whether other arguments might have helped: the tool itself says that it failed, or it met a limit of what it may use. Not shown.
    #[serde(skip)]
    pub is_arguable: bool,
}

/// Whose failure a failure is, for what is counted against a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The tool's: it crashed, or broke its contract. No arguments that its schema allows may bring it to that.
    Tool,
    /// The tool's or that of its arguments: the tool says that it failed, or it met a limit.
    ToolOrArguments,
    /// Not the tool's: that of the arguments, a rule, the caller, the host, the network, or a command that the tool ran as it was told.
    Elsewhere,
}

/// Most characters of a message inside the feedback block. A longer one crowds out the rest of a model's context.
pub const FEEDBACK_MESSAGE_CHARS_MAX: usize = 4_000;

impl ToolFailure {
    /// A failure without details of HTTP or of a command.
    pub fn new(category: ErrorCategory, phase: ErrorPhase, message: impl Into<String>) -> Self {
        Self {
            category,
            phase,
            message: message.into(),
            http_status: None,
            retry_after_ms: None,
            exit: None,
            is_arguable: false,
        }
    }

    /// The same failure, of which the arguments may be the cause.
    #[must_use]
    pub fn arguable(self) -> Self {
        Self {
            is_arguable: true,
            ..self
        }
    }

    /// Whose failure it is.
    ///
    /// Shape: infrastructure failures (`rate_limited`, `server_error`, `network_error`, `timeout`) are never the tool's, as the taxonomy of
    ///        the specification says; nor is what ended before the tool ran.
    pub fn blame(&self) -> Blame {
        use ErrorCategory as Category;
        match (self.category, self.phase) {
            (
                Category::PermanentFailure,
                ErrorPhase::Execution | ErrorPhase::ResultInterpretation,
            ) => match (&self.exit, self.is_arguable) {
                (Some(_), _) => Blame::Elsewhere,
                (None, true) => Blame::ToolOrArguments,
                (None, false) => Blame::Tool,
            },
            (Category::PermanentFailure, ErrorPhase::Setup | ErrorPhase::ParamHandling)
            | (
                Category::ToolNotFound
                | Category::InvalidParameters
                | Category::TypeMismatch
                | Category::PolicyBlocked
                | Category::ConfirmationRequired
                | Category::Cancelled
                | Category::RateLimited
                | Category::ServerError
                | Category::NetworkError
                | Category::Timeout,
                _,
            ) => Blame::Elsewhere,
        }
    }

    /// One sentence of advice for the model.
    pub fn suggestion(&self) -> &'static str {
        match self.exit {
            Some(_) => "The output of the command says why; change something before it runs again.",
            None => self.category.suggestion(),
        }
    }

    /// The block that the model reads instead of a result.
    ///
    /// Shape: exactly five lines. The message is folded onto its own line, so no text of a tool, a file name or a
    /// server can forge another line of the block.
    pub fn feedback(&self) -> String {
        format!(
            "[tool_error]\ncategory: {}\nerror: {}\nsuggestion: {}\nretryable: {}",
            self.category,
            one_line(&self.message, FEEDBACK_MESSAGE_CHARS_MAX),
            self.suggestion(),
            self.category.is_retryable(),
        )
    }
}

/// An error with all its causes on one line: `error: its cause: the cause of that`, at most `chars_max` characters.
pub fn chain(error: &dyn Error, chars_max: usize) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    one_line(&text, chars_max)
}

/// Folds `text` onto one line of at most `chars_max` characters: line breaks and control characters become spaces.
///
/// Shape: the result has no character that any terminal, parser or model treats as a line end, no
/// bidirectional control that could reorder what is shown, and no tags, letters that only a model reads.
pub fn one_line(text: &str, chars_max: usize) -> String {
    let mut line = String::with_capacity(text.len().min(chars_max * 4));
    let seen = text.trim().chars().filter(|character| !is_tag(*character));
    for (n_chars, character) in seen.enumerate() {
        if n_chars == chars_max {
            line.push('…');
            break;
        }
        line.push(if breaks_line(character) {
            ' '
        } else {
            character
        });
    }
    line
}

fn breaks_line(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{2028}' | '\u{2029}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
        )
}

/// Whether only a model reads `character`.
pub(crate) fn is_tag(character: char) -> bool {
    matches!(character, '\u{E0000}'..='\u{E00FF}' | '\u{E01F0}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests;
