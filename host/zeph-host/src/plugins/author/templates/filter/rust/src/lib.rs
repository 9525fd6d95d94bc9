//! A component of filter strategies for zeph-host. Each strategy is a file of its own; the table below names them.

pub mod leave_out;
#[cfg(target_family = "wasm")]
mod component;

/// What is shown of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Ranges of its lines, counted from 0.
    pub kept: Vec<std::ops::Range<usize>>,
    /// Lines of the strategy's own, after the kept ones.
    pub notes: Vec<String>,
    /// Whether this was an output it is for; if not, the host shows all of it.
    pub is_known: bool,
}

/// A strategy with its options. It keeps nothing from one output to the next.
pub type Strategy = Box<dyn Fn(&str) -> Selection>;

/// A strategy that rules can name.
pub struct Kind {
    pub name: &'static str,
    pub description: &'static str,
    /// The JSON Schema of its options.
    pub schema: fn() -> String,
    /// Makes it from options (JSON, an object). Fails with one sentence when they are wrong.
    pub create: fn(&str) -> Result<Strategy, String>,
}

/// Every strategy. A new one is a line here.
pub static KINDS: &[Kind] = &[leave_out::KIND];
