//! Output filters: less text for the model, and no lost failure.
//!
//! In reading order: terminal output becomes lines (`sanitize`), a command picks rules (`rule`, `command`, `load`, `choose`), their
//! strategies select lines and what may never be lost is put back (`apply`), credentials are looked for (`secret`) and savings
//! are counted (`stats`). `compression` is for outputs beside a goal. It reads no file and
//! runs no process: rule files come in as text, strategies in wasm as implementations of a trait.

mod apply;
mod builtin;
mod case;
mod choose;
mod command;
pub mod compression;
mod load;
mod mark;
mod rule;
mod sanitize;
pub mod secret;
pub mod stats;

pub use apply::{Filtered, Foreign, Loss, NoForeign, Output, Size};
pub use builtin::BUILTIN;
pub use case::{CaseInputs, CaseOutcome};
pub use choose::Explanation;
pub use load::{Filters, Warning};
pub use mark::MARK;
pub use rule::{Origin, Rule};
pub use sanitize::{Clean, clean, strip};
pub use secret::{Secret, Secrets};
pub use zeph_strategies::{Confidence, Input, Lines, Piece, STRATEGIES, Selection, push_line};
