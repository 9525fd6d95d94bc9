//! A component of filter strategies for zeph-host. Each strategy has its own file and an entry in the table below.

pub mod leave_out;
#[cfg(target_family = "wasm")]
mod about;
#[cfg(target_family = "wasm")]
mod component;

/// The selected part of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Ranges of lines to keep, counted from 0.
    pub kept: Vec<std::ops::Range<usize>>,
    /// Notes of the strategy, shown after the selected lines.
    pub notes: Vec<String>,
    /// Whether the strategy is meant for this output; if not, the host shows all of it.
    pub is_known: bool,
}

/// A strategy with its options. It keeps no state between outputs.
pub type Strategy = Box<dyn Fn(&str) -> Selection>;

/// A named strategy.
pub struct Kind {
    pub name: &'static str,
    pub description: &'static str,
    /// The JSON Schema of its options.
    pub schema: fn() -> String,
    /// Creates the strategy from its options (a JSON object). Fails with one sentence if they are invalid.
    pub create: fn(&str) -> Result<Strategy, String>,
}

/// Every strategy. Add new strategies here.
pub static KINDS: &[Kind] = &[leave_out::KIND];
