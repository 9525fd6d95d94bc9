//! The nine filter strategies: which lines of a command's output a model needs to see.
//!
//! A strategy looks at a finished command and selects lines of its output; it may add marked notes, it can invent nothing.
//! Everything here is plain Rust over values, so that the same code runs inside the host and inside a component. What holds
//! whatever a strategy answers (errors survive, never longer) is not this crate's business but the host's.

mod automaton;
mod block;
mod diagnostic;
mod line_set;
mod lines;
mod options;
mod selection;
mod table;
mod text;
mod words;

pub mod dedup;
pub mod git_diff;
pub mod git_status;
pub mod group_by_rule;
pub mod keep_matching;
pub mod strip_annotated;
pub mod strip_noise;
pub mod test_summary;
pub mod truncate;

pub use automaton::Automaton;
pub use block::{
    BLOCK_BYTES, Block, equal, has_control_or_return, may_begin_control, padded, places,
};
pub use diagnostic::{Severities, Severity, SharedWords, error_lines, is_location, severity};
pub use line_set::LineSet;
pub use lines::{Lines, TEXT_BYTES_MAX, line_ends, n_line_ends};
pub use options::PATTERN_CHARS_MAX;
pub use selection::{Confidence, Input, Piece, Selection, has_control, push_line};
pub use table::{Coverage, Definition, STRATEGIES, Strategy, create, find};
pub use text::is_blank;
pub use words::{Case, Hit, Words};
