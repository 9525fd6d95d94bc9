//! The line editor, put together: keys, completion menu, history, prompt.

use std::borrow::Cow;

use reedline::{
    ColumnarMenu, DefaultHinter, EditCommand, ExternalPrinter, KeyCode, KeyModifiers, MenuBuilder,
    Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, Reedline,
    ReedlineEvent, ReedlineMenu,
};

use super::complete::Completion;
use super::continuation::WholeJson;
use super::{EditorOptions, without_history};
use crate::host::Host;
use crate::run::line_history::LineHistory;
use crate::run::line_input::{self, BehindInterrupt};

/// Lines that are kept. More than a person scrolls through, and a file of some hundred kilobytes.
const HISTORY_LINES_MAX: usize = 2_000;

const MENU: &str = "completions";

/// The editor. A history that cannot be kept is a note, not an error.
pub(super) fn new(
    host: Host,
    options: &EditorOptions,
    news: ExternalPrinter<String>,
    behind: &BehindInterrupt,
) -> Reedline {
    let mut keys = line_input::keys();
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
        .with_edit_mode(line_input::edit_mode(keys, behind))
        .with_completer(Box::new(Completion::new(host, options.directory.clone())))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_validator(Box::new(WholeJson))
        .with_hinter(Box::new(DefaultHinter::default()))
        .with_history_exclusion_prefix(Some(" ".to_owned()))
        .with_ansi_colors(options.color)
        .with_external_printer(news);
    let Some(path) = &options.history else {
        return editor;
    };
    match LineHistory::open(path, HISTORY_LINES_MAX) {
        Ok(history) => editor.with_history(Box::new(history)),
        Err(error) => {
            without_history(&format_args!("`{}`: {error}", path.display()));
            editor
        }
    }
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
