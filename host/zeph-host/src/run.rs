//! `zeph-host run`: many calls in one process, from a program as JSON lines or from a person at the terminal.
//!
//! In reading order: `jsonl` (requests in, answers out), `typed` (what a person's line means), `one` (a call a person
//! waits for), `repl` (the line editor) with `line_input`, `line_history`, `typed_ahead`, `ask`, `question` and `session_commands`, `render`,
//! `page`, `table`, `asked` and `catalog` (how things look), `interrupt` (signals).
//! Doors are thin: they read, call, and write.

pub(crate) mod approval_text;
pub(crate) mod ask;
pub(crate) mod catalog;
pub(crate) mod interrupt;
pub(crate) mod jsonl;
pub(crate) mod line_history;
pub(crate) mod line_input;
pub(crate) mod lost;
pub(crate) mod one;
pub(crate) mod page;
pub(crate) mod prompt_input;
pub(crate) mod question;
pub(crate) mod render;
pub(crate) mod repl;
pub(crate) mod session_commands;
pub(crate) mod table;
pub(crate) mod typed_ahead;
