//! What a key does to what is shown, and what the chat has to do. Pure, but for the names of files that complete a word.

use std::path::Path;

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::super::input::completions;
use super::model::{FullModel, InputLine};

/// Rows that a page goes on by.
const PAGE_ROWS: usize = 10;

/// What the chat has to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyAction {
    /// A line was typed.
    Submit(String),
    /// The user leaves, or declines to answer.
    Leave,
    /// The turn has to end.
    Interrupt,
    /// The screen has to be drawn anew.
    Redraw,
    /// The program has to stop until its shell has it go on.
    Suspend,
}

/// Applies an event.
pub(super) fn apply(model: &mut FullModel, event: &Event, directory: &Path) -> Option<KeyAction> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => press(model, *key, directory),
        Event::Paste(text) => {
            model
                .input
                .insert(&text.replace("\r\n", "\n").replace('\r', "\n"));
            None
        }
        _ => None,
    }
}

fn press(model: &mut FullModel, key: KeyEvent, directory: &Path) -> Option<KeyAction> {
    model.hint.clear();
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return control(model, key.code);
    }
    if key.modifiers.contains(KeyModifiers::ALT) {
        alt(&mut model.input, key.code);
        return None;
    }
    let input = &mut model.input;
    match key.code {
        KeyCode::Enter => return enter(model),
        KeyCode::Char(letter) => input.insert(letter.encode_utf8(&mut [0; 4])),
        KeyCode::Backspace => input.remove_to(input.left()),
        KeyCode::Delete => input.remove_to(input.right()),
        KeyCode::Left => input.cursor = input.left(),
        KeyCode::Right => input.cursor = input.right(),
        KeyCode::Home => input.cursor = 0,
        KeyCode::End => input.cursor = input.text.len(),
        KeyCode::Up => model.up(),
        KeyCode::Down => model.down(),
        KeyCode::PageUp => model.scroll = model.scroll.saturating_add(PAGE_ROWS),
        KeyCode::PageDown => model.scroll = model.scroll.saturating_sub(PAGE_ROWS),
        KeyCode::Tab => complete(model, directory),
        KeyCode::Esc => model.scroll = 0,
        _ => {}
    }
    None
}

/// What works on words; other letters type nothing.
fn alt(input: &mut InputLine, code: KeyCode) {
    match code {
        KeyCode::Enter => input.insert("\n"),
        KeyCode::Char('b') | KeyCode::Left => input.cursor = input.word(),
        KeyCode::Char('f') | KeyCode::Right => input.cursor = input.word_end(),
        KeyCode::Char('d') => input.remove_to(input.word_end()),
        KeyCode::Backspace => input.remove_to(input.word()),
        _ => {}
    }
}

fn control(model: &mut FullModel, code: KeyCode) -> Option<KeyAction> {
    let is_running = model.is_busy || model.question.is_some();
    let input = &mut model.input;
    match code {
        KeyCode::Char('c') if is_running => return Some(KeyAction::Interrupt),
        KeyCode::Char('c') => *input = InputLine::default(),
        KeyCode::Char('d')
            if input.text.is_empty() && (!is_running || model.question.is_some()) =>
        {
            return Some(KeyAction::Leave);
        }
        KeyCode::Char('d') => input.remove_to(input.right()),
        KeyCode::Char('a') => input.cursor = 0,
        KeyCode::Char('e') => input.cursor = input.text.len(),
        KeyCode::Char('u') => input.remove_to(0),
        KeyCode::Char('k') => input.remove_to(input.text.len()),
        KeyCode::Char('w') => input.remove_to(input.word()),
        KeyCode::Char('l') => return Some(KeyAction::Redraw),
        KeyCode::Char('z') => return Some(KeyAction::Suspend),
        _ => {}
    }
    None
}

/// A prompt waits until the turn is over; an answer does not.
fn enter(model: &mut FullModel) -> Option<KeyAction> {
    if model.is_busy && model.question.is_none() {
        "the turn still runs; Ctrl-C ends it".clone_into(&mut model.hint);
        return None;
    }
    model.scroll = 0;
    Some(KeyAction::Submit(model.submit()))
}

/// Adds what all names that a word can become have in common, and shows them.
fn complete(model: &mut FullModel, directory: &Path) {
    let before = &model.input.text[..model.input.cursor];
    let (start, values) = completions(directory, before);
    let Some(first) = values.first() else {
        return;
    };
    let mut common = first.clone();
    for value in &values {
        let same = common.chars().zip(value.chars());
        let n_bytes = same.take_while(|(one, other)| one == other);
        let n_bytes = n_bytes.map(|(one, _)| one.len_utf8()).sum();
        common.truncate(n_bytes);
    }
    if let [only] = values.as_slice()
        && !only.ends_with('/')
    {
        common.push(' ');
    }
    if before.len() - start < common.len() {
        model.input.remove_to(start);
        model.input.insert(&common);
    }
    if values.len() > 1 {
        model.hint = values.join(" ");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

    use super::{KeyAction, apply};
    use crate::agent::chat::full::model::FullModel;

    fn press(model: &mut FullModel, code: KeyCode, modifiers: KeyModifiers) -> Option<KeyAction> {
        let event = Event::Key(KeyEvent::new(code, modifiers));
        apply(model, &event, Path::new("/nowhere"))
    }

    fn types(model: &mut FullModel, text: &str) {
        for letter in text.chars() {
            assert_eq!(
                press(model, KeyCode::Char(letter), KeyModifiers::NONE),
                None
            );
        }
    }

    fn control(model: &mut FullModel, letter: char) -> Option<KeyAction> {
        press(model, KeyCode::Char(letter), KeyModifiers::CONTROL)
    }

    fn enter(model: &mut FullModel) -> Option<KeyAction> {
        press(model, KeyCode::Enter, KeyModifiers::NONE)
    }

    #[test]
    fn a_line_is_edited_and_sent() {
        let mut model = FullModel::new(true);
        types(&mut model, "heé wörld two");
        control(&mut model, 'w');
        for _ in 0..7 {
            press(&mut model, KeyCode::Left, KeyModifiers::NONE);
        }
        press(&mut model, KeyCode::Backspace, KeyModifiers::NONE);
        types(&mut model, "llo");
        let sent = enter(&mut model);
        assert_eq!(sent, Some(KeyAction::Submit("hello wörld ".to_owned())));
        press(&mut model, KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(model.input.text, "hello wörld ");
        control(&mut model, 'u');
        apply(
            &mut model,
            &Event::Paste("a\r\nb".to_owned()),
            Path::new("/"),
        );
        assert_eq!(
            enter(&mut model),
            Some(KeyAction::Submit("a\nb".to_owned()))
        );
    }

    #[test]
    fn ctrl_c_ends_what_runs_and_ctrl_d_leaves() {
        let mut model = FullModel::new(true);
        types(&mut model, "half");
        assert_eq!(control(&mut model, 'c'), None);
        assert_eq!(model.input.text, "");
        assert_eq!(control(&mut model, 'd'), Some(KeyAction::Leave));
        model.is_busy = true;
        assert_eq!(control(&mut model, 'd'), None);
        assert_eq!(control(&mut model, 'c'), Some(KeyAction::Interrupt));
        types(&mut model, "next");
        assert_eq!(enter(&mut model), None);
        assert!(model.hint.contains("Ctrl-C"));
    }

    #[test]
    fn an_answer_is_no_prompt() {
        let mut model = FullModel::new(true);
        model.is_busy = true;
        types(&mut model, "next");
        model.ask("may it?\n", "Run it?");
        types(&mut model, "o");
        assert_eq!(enter(&mut model), Some(KeyAction::Submit("o".to_owned())));
        model.answered();
        assert_eq!(model.input.text, "next");
        model.is_busy = false;
        control(&mut model, 'u');
        press(&mut model, KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(model.input.text, "");
    }

    #[test]
    fn a_draft_outlives_the_search_for_earlier_prompts() {
        let mut model = FullModel::new(true);
        types(&mut model, "draft");
        press(&mut model, KeyCode::Up, KeyModifiers::NONE);
        press(&mut model, KeyCode::Down, KeyModifiers::NONE);
        assert_eq!(model.input.text, "draft");
        enter(&mut model);
        types(&mut model, "än");
        press(&mut model, KeyCode::Enter, KeyModifiers::ALT);
        types(&mut model, "two");
        for (code, text, cursor) in [
            (KeyCode::Up, "än\ntwo", 3),
            (KeyCode::Down, "än\ntwo", 6),
            (KeyCode::Up, "än\ntwo", 3),
            (KeyCode::Up, "draft", 5),
            (KeyCode::Up, "draft", 5),
            (KeyCode::Down, "än\ntwo", 3),
            (KeyCode::Down, "än\ntwo", 6),
            (KeyCode::Down, "än\ntwo", 6),
        ] {
            press(&mut model, code, KeyModifiers::NONE);
            let input = &model.input;
            assert_eq!((input.text.as_str(), input.cursor), (text, cursor));
        }
    }

    #[test]
    fn alt_and_a_letter_types_nothing() {
        let mut model = FullModel::new(true);
        types(&mut model, "one two three");
        for (code, text, cursor) in [
            (KeyCode::Char('b'), "one two three", 8),
            (KeyCode::Char('a'), "one two three", 8),
            (KeyCode::Backspace, "one three", 4),
            (KeyCode::Left, "one three", 0),
            (KeyCode::Char('f'), "one three", 3),
            (KeyCode::Char('d'), "one", 3),
            (KeyCode::Right, "one", 3),
        ] {
            press(&mut model, code, KeyModifiers::ALT);
            let input = &model.input;
            assert_eq!(
                (input.text.as_str(), input.cursor),
                (text, cursor),
                "{code}"
            );
        }
    }

    #[test]
    fn a_word_is_completed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["notes.md", "notes.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let mut model = FullModel::new(true);
        let tab = Event::Key(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE));
        types(&mut model, "see @no");
        apply(&mut model, &tab, folder.path());
        assert_eq!(model.input.text, "see @notes.");
        assert_eq!(model.hint, "@notes.md @notes.txt");
        types(&mut model, "t");
        apply(&mut model, &tab, folder.path());
        assert_eq!(model.input.text, "see @notes.txt ");
    }
}
