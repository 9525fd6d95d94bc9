//! What is typed: a line editor, or plain lines on a terminal that knows no escape sequences.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, KeyCode, KeyModifiers, MenuBuilder,
    Prompt, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal,
    Span, Suggestion,
};

use super::ChatOptions;
use super::command::COMMANDS;
use crate::run::interrupt::{EndWatch, Interruption, Interrupts};
use crate::run::line_history::LineHistory;
use crate::run::line_input::{self, BehindInterrupt, LineInput};

/// Lines that are kept.
const HISTORY_LINES_MAX: usize = 1_000;

/// Names of a directory that are looked at, and suggestions that are shown.
const NAMES_MAX: usize = 200;

const MENU: &str = "completions";

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Typed(String),
    Nothing,
    /// With Ctrl-D.
    Left,
    /// The process has to end.
    Lost(Interruption),
}

/// The terminal, as lines are read from it.
pub(super) struct ChatInput {
    lines: LineInput,
    is_ending: Arc<AtomicBool>,
    ending: EndWatch,
}

impl ChatInput {
    /// Errors: when the terminal or signals cannot be used.
    pub(super) fn open(options: &ChatOptions, interrupts: &mut Interrupts) -> io::Result<Self> {
        let is_ending = Arc::new(AtomicBool::new(false));
        let ending = EndWatch::start(&is_ending)?;
        let lines = LineInput::open(
            |behind| editor(options, behind),
            Arc::clone(&is_ending),
            |_| true,
        )?;
        interrupts.with_terminal(lines.watch());
        Ok(Self {
            lines,
            is_ending,
            ending,
        })
    }

    /// Waits for a line. The editor blocks its thread; the others of the runtime go on.
    pub(super) fn read(&mut self) -> io::Result<Line> {
        let read = tokio::task::block_in_place(|| self.lines.read(&ChatPrompt));
        if self.lines.is_lost() {
            return Ok(Line::Lost(Interruption::HangUp));
        }
        Ok(match read? {
            Signal::Success(line) => Line::Typed(line),
            Signal::CtrlD => Line::Left,
            Signal::ExternalBreak(_) => Line::Lost(self.ending.came()),
            _ if self.is_ending.load(Ordering::Acquire) => Line::Lost(self.ending.came()),
            _ => Line::Nothing,
        })
    }

    /// Whether the terminal is gone.
    pub(super) fn is_lost(&self) -> bool {
        self.lines.is_lost()
    }

    /// Forgets the lines that were typed ahead.
    pub(super) fn forget(&mut self) {
        self.lines.forget();
    }
}

fn editor(options: &ChatOptions, behind: &BehindInterrupt) -> Reedline {
    let mut keys = line_input::keys();
    let complete = ReedlineEvent::UntilFound(vec![
        ReedlineEvent::Menu(MENU.to_owned()),
        ReedlineEvent::MenuNext,
    ]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
    let new_line = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
    keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, new_line);
    let menu = ColumnarMenu::default().with_name(MENU);
    let completer = ChatCompleter {
        directory: options.directory.clone(),
    };
    let editor = Reedline::create()
        .with_edit_mode(line_input::edit_mode(keys, behind))
        .with_completer(Box::new(completer))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_history_exclusion_prefix(Some(" ".to_owned()))
        .with_ansi_colors(options.color);
    let history = options.history.as_deref();
    match history.map(|path| LineHistory::open(path, HISTORY_LINES_MAX)) {
        Some(Ok(history)) => editor.with_history(Box::new(history)),
        Some(Err(error)) => {
            tracing::warn!(%error, "the history is not kept");
            editor
        }
        None => editor,
    }
}

/// Completes commands at the beginning of a line, and paths after `@`.
struct ChatCompleter {
    directory: PathBuf,
}

impl Completer for ChatCompleter {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let before = line.get(..pos).unwrap_or(line);
        let (start, values) = completions(&self.directory, before);
        let suggestions = values.into_iter().map(|value| Suggestion {
            span: Span::new(start, before.len()),
            append_whitespace: !value.ends_with('/'),
            value,
            ..Suggestion::default()
        });
        CompletionResult::fresh(suggestions.collect::<Vec<Suggestion>>())
    }
}

/// Where the last word of `before` begins, and what it can become: commands at the beginning of a line, and paths after `@`.
pub(super) fn completions(directory: &Path, before: &str) -> (usize, Vec<String>) {
    let mut letters = before.char_indices().rev();
    let blank = letters.find(|(_, letter)| letter.is_whitespace());
    let start = blank.map_or(0, |(idx, letter)| idx + letter.len_utf8());
    let word = &before[start..];
    let values = match word.strip_prefix('@') {
        Some(path) => paths(directory, path),
        None if start == 0 && word.starts_with('/') => {
            let fitting = COMMANDS.iter().filter(|name| name.starts_with(word));
            fitting.map(|name| (*name).to_owned()).collect()
        }
        None => Vec::new(),
    };
    (start, values)
}

/// The paths below `directory` that begin like `typed`, with the `@`.
fn paths(directory: &Path, typed: &str) -> Vec<String> {
    let (folder, name) = typed.rsplit_once('/').unwrap_or(("", typed));
    let Ok(entries) = std::fs::read_dir(directory.join(folder)) else {
        return Vec::new();
    };
    let prefix = if folder.is_empty() {
        String::new()
    } else {
        format!("{folder}/")
    };
    let names = entries.flatten().take(NAMES_MAX * 50).filter_map(|entry| {
        let found = entry.file_name().into_string().ok()?;
        let is_hidden = found.starts_with('.') && !name.starts_with('.');
        if !found.starts_with(name) || is_hidden || found.contains(char::is_control) {
            return None;
        }
        let end = if entry.path().is_dir() { "/" } else { "" };
        Some(format!("@{prefix}{found}{end}"))
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.truncate(NAMES_MAX);
    names
}

/// The prompt.
struct ChatPrompt;

impl Prompt for ChatPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("… ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(search: {}) ", search.term))
    }
}

#[cfg(test)]
mod tests {
    use super::paths;

    #[test]
    fn paths_are_completed_below_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        for name in ["src/lib.rs", "src/main.rs", "setup.py", ".hidden"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(paths(folder.path(), "s"), ["@setup.py", "@src/"]);
        assert_eq!(paths(folder.path(), "src/l"), ["@src/lib.rs"]);
        assert_eq!(paths(folder.path(), "."), ["@.hidden"]);
        assert!(paths(folder.path(), "none/x").is_empty());
    }
}
