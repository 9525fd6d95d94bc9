//! The languages: their files, their grammars, and what is a definition in them.

use tree_sitter_c2rust::{Language as Grammar, Node};

use crate::grammar;

/// A language with a grammar.
#[derive(Debug)]
pub struct Language {
    /// Its name.
    pub name: &'static str,
    /// The endings of its files.
    pub extensions: &'static [&'static str],
    /// Its grammar.
    pub grammar: fn() -> Grammar,
    /// The kinds of nodes that define something, each with what a person calls it.
    pub definitions: &'static [(&'static str, &'static str)],
    /// What stands for the `$` of a pattern, because the grammar has no identifiers with one.
    pub sigil: char,
}

/// Every language with a grammar.
pub static LANGUAGES: &[Language] = &[
    Language {
        name: "Rust",
        extensions: &["rs"],
        grammar: grammar::rust,
        definitions: &[
            ("function_item", "function"),
            ("function_signature_item", "function"),
            ("struct_item", "struct"),
            ("enum_item", "enum"),
            ("union_item", "union"),
            ("trait_item", "trait"),
            ("mod_item", "module"),
            ("const_item", "constant"),
            ("static_item", "static"),
            ("type_item", "type"),
            ("macro_definition", "macro"),
        ],
        sigil: 'µ',
    },
    Language {
        name: "Python",
        extensions: &["py", "pyi"],
        grammar: grammar::python,
        definitions: &[
            ("function_definition", "function"),
            ("class_definition", "class"),
        ],
        sigil: 'µ',
    },
    Language {
        name: "TypeScript",
        extensions: &["ts", "mts", "cts"],
        grammar: grammar::typescript,
        definitions: SCRIPT,
        sigil: '$',
    },
    Language {
        name: "TSX",
        extensions: &["tsx"],
        grammar: grammar::tsx,
        definitions: SCRIPT,
        sigil: '$',
    },
    Language {
        name: "JavaScript",
        extensions: &["js", "mjs", "cjs", "jsx"],
        grammar: grammar::javascript,
        definitions: SCRIPT,
        sigil: '$',
    },
    Language {
        name: "Go",
        extensions: &["go"],
        grammar: grammar::go,
        definitions: &[
            ("function_declaration", "function"),
            ("method_declaration", "method"),
            ("type_spec", "type"),
            ("type_alias", "type"),
            ("const_spec", "constant"),
        ],
        sigil: 'µ',
    },
    Language {
        name: "C",
        extensions: &["c", "h"],
        grammar: grammar::c,
        definitions: C_LIKE,
        sigil: '$',
    },
    Language {
        name: "C++",
        extensions: &["cc", "cpp", "cxx", "hpp", "hh", "hxx"],
        grammar: grammar::cpp,
        definitions: C_LIKE,
        sigil: '$',
    },
    Language {
        name: "Java",
        extensions: &["java"],
        grammar: grammar::java,
        definitions: &[
            ("class_declaration", "class"),
            ("interface_declaration", "interface"),
            ("enum_declaration", "enum"),
            ("record_declaration", "record"),
            ("annotation_type_declaration", "annotation"),
            ("method_declaration", "method"),
            ("constructor_declaration", "constructor"),
        ],
        sigil: '$',
    },
];

const SCRIPT: &[(&str, &str)] = &[
    ("function_declaration", "function"),
    ("generator_function_declaration", "function"),
    ("function_signature", "function"),
    ("class_declaration", "class"),
    ("abstract_class_declaration", "class"),
    ("method_definition", "method"),
    ("method_signature", "method"),
    ("abstract_method_signature", "method"),
    ("interface_declaration", "interface"),
    ("type_alias_declaration", "type"),
    ("enum_declaration", "enum"),
    ("internal_module", "namespace"),
    ("variable_declarator", "function"),
];

const C_LIKE: &[(&str, &str)] = &[
    ("function_definition", "function"),
    ("struct_specifier", "struct"),
    ("union_specifier", "union"),
    ("enum_specifier", "enum"),
    ("type_definition", "type"),
    ("preproc_def", "macro"),
    ("preproc_function_def", "macro"),
    ("class_specifier", "class"),
    ("namespace_definition", "namespace"),
    ("alias_declaration", "type"),
    ("concept_definition", "concept"),
];

/// The endings of other files that are searched, as text.
const TEXTS: &[&str] = &[
    "bash", "cfg", "cs", "css", "gradle", "html", "ini", "json", "kt", "kts", "lua", "md", "php",
    "proto", "rb", "rst", "scala", "sh", "sql", "svelte", "swift", "toml", "txt", "vue", "wit",
    "yaml", "yml", "zig",
];

/// How a file is read.
#[derive(Debug, Clone, Copy)]
pub enum Reading {
    /// With a grammar.
    Code(&'static Language),
    /// As text.
    Text,
}

/// How the file at `path` is read; none: not at all.
pub fn of_path(path: &str) -> Option<Reading> {
    let (_, extension) = path.rsplit_once('.')?;
    let mut languages = LANGUAGES.iter();
    match languages.find(|language| language.extensions.contains(&extension)) {
        Some(language) => Some(Reading::Code(language)),
        None => TEXTS.contains(&extension).then_some(Reading::Text),
    }
}

impl Language {
    /// What `node` defines: its kind in a person's word, and the node of the name.
    pub fn definition<'a>(&self, node: Node<'a>) -> Option<(&'static str, Node<'a>)> {
        let mut kinds = self.definitions.iter();
        let (kind, word) = kinds.find(|(kind, _)| *kind == node.kind())?;
        match *kind {
            "variable_declarator" if !is_function(node.child_by_field_name("value")) => None,
            "struct_specifier" | "union_specifier" | "enum_specifier" | "class_specifier"
                if node.child_by_field_name("body").is_none() =>
            {
                None
            }
            _ => Some((word, name(node)?)),
        }
    }
}

fn is_function(value: Option<Node<'_>>) -> bool {
    value.is_some_and(|value| {
        matches!(
            value.kind(),
            "arrow_function" | "function_expression" | "generator_function" | "class"
        )
    })
}

/// The name of a definition; in C it stands inside of what is declared.
fn name(node: Node<'_>) -> Option<Node<'_>> {
    let mut node = node
        .child_by_field_name("name")
        .or_else(|| node.child_by_field_name("declarator"))?;
    while let Some(inner) = node
        .child_by_field_name("declarator")
        .or_else(|| node.child_by_field_name("name"))
        .or_else(|| inner_declarator(node))
    {
        node = inner;
    }
    Some(node)
}

/// What a declarator without fields is about: `(*name)` and `&name`.
fn inner_declarator(node: Node<'_>) -> Option<Node<'_>> {
    let is_wrapping = matches!(
        node.kind(),
        "parenthesized_declarator" | "reference_declarator" | "attributed_declarator"
    );
    is_wrapping.then(|| node.named_child(0)).flatten()
}
