//! The line editor, put together: keys, completion menu, history, prompt.

use std::borrow::Cow;
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use reedline::{
    ColumnarMenu, DefaultHinter, EditCommand, Emacs, ExternalPrinter, FileBackedHistory, KeyCode,
    KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch,
    PromptHistorySearchStatus, Reedline, ReedlineEvent, ReedlineMenu, default_emacs_keybindings,
};

use super::complete::Completion;
use super::continuation::WholeJson;
use super::{EditorOptions, without_history};
use crate::host::Host;

/// Lines that are kept. More than a person scrolls through, and a file of some hundred kilobytes.
const HISTORY_LINES_MAX: usize = 2_000;

const MENU: &str = "completions";

/// An editor that `is_ending` interrupts. A history that cannot be kept is a note, not an error.
pub(super) fn new(
    host: Host,
    options: &EditorOptions,
    news: ExternalPrinter<String>,
    is_ending: &Arc<AtomicBool>,
) -> Reedline {
    let mut keys = default_emacs_keybindings();
    let complete = ReedlineEvent::UntilFound(vec![
        ReedlineEvent::Menu(MENU.to_owned()),
        ReedlineEvent::MenuNext,
    ]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
    keys.add_binding(
        KeyModifiers::SHIFT,
        KeyCode::BackTab,
        ReedlineEvent::MenuPrevious,
    );
    let new_line = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
    keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, new_line);
    let menu = ColumnarMenu::default().with_name(MENU);
    let editor = Reedline::create()
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_completer(Box::new(Completion::new(host, options.directory.clone())))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_validator(Box::new(WholeJson))
        .with_hinter(Box::new(DefaultHinter::default()))
        .with_history_exclusion_prefix(Some(" ".to_owned()))
        .with_ansi_colors(options.color)
        .with_external_printer(news)
        // Lines that are pasted wait for Enter: each would be a call of its own.
        .use_bracketed_paste(true)
        .with_break_signal(Arc::clone(is_ending));
    let Some(path) = &options.history else {
        return editor;
    };
    match history(path) {
        Ok(history) => editor.with_history(Box::new(history)),
        Err(error) => {
            without_history(&format_args!("`{}`: {error}", path.display()));
            editor
        }
    }
}

/// The history in `path`, which only its owner may read: lines may hold what calls were made with.
fn history(path: &Path) -> io::Result<FileBackedHistory> {
    make_private(path)?;
    FileBackedHistory::with_file(HISTORY_LINES_MAX, path.to_owned()).map_err(io::Error::other)
}

/// Makes the file, which only its owner may read, when there is none.
///
/// Errors: it cannot be made.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map(drop)
}

/// The prompt.
pub(super) struct Zeph;

impl Prompt for Zeph {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("zeph")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  … ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "search",
            PromptHistorySearchStatus::Failing => "not found",
        };
        Cow::Owned(format!(" ({found}: {}) ", search.term))
    }
}
