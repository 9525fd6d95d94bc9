//! The published grammars, compiled from their C, beside ours.

use tree_sitter_c2rust::Language;
use tree_sitter_language::LanguageFn;
use zeph_plugin_search::grammar;

/// A grammar of ours, and the original.
pub(crate) struct Pair {
    pub(crate) name: &'static str,
    pub(crate) ours: fn() -> Language,
    theirs: LanguageFn,
}

macro_rules! pairs {
    ($($name:ident $function:path;)*) => {
        &[$(Pair { name: stringify!($name), ours: grammar::$name, theirs: $function }),*]
    };
}

pub(crate) static PAIRS: &[Pair] = pairs! {
    c tree_sitter_c::LANGUAGE;
    cpp tree_sitter_cpp::LANGUAGE;
    go tree_sitter_go::LANGUAGE;
    java tree_sitter_java::LANGUAGE;
    javascript tree_sitter_javascript::LANGUAGE;
    python tree_sitter_python::LANGUAGE;
    rust tree_sitter_rust::LANGUAGE;
    tsx tree_sitter_typescript::LANGUAGE_TSX;
    typescript tree_sitter_typescript::LANGUAGE_TYPESCRIPT;
};

impl Pair {
    /// The original, for the parser that we use.
    pub(crate) fn theirs(&self) -> Language {
        // SAFETY: the function takes nothing and returns a pointer to a static, which is of a version that the parser reads.
        unsafe { Language::from_raw(self.theirs.into_raw()().cast()) }
    }
}
