//! What a new project of filter strategies is made of. Like the projects of tools, in the languages whose tools can make one.

use super::{Language, fill};

const CONTRACT: &str = include_str!("../../../../../wit/zeph-filter/filter.wit");

/// The files of a project named `name`: where each goes and what it holds. `None`: there is no template in this language.
pub(super) fn files(language: Language, name: &str) -> Option<Vec<(&'static str, String)>> {
    let own = match language {
        Language::Rust => RUST,
        Language::JavaScript => JAVASCRIPT,
        Language::Python => PYTHON,
        Language::C => return None,
    };
    let contract = [("wit/filter.wit", CONTRACT)];
    let files = contract.iter().chain(own);
    Some(
        files
            .map(|(path, text)| (*path, fill(text, name)))
            .collect(),
    )
}

macro_rules! files {
    ($($from:literal => $to:literal),+ $(,)?) => {
        &[$(($to, include_str!(concat!("../../../../../plugins/templates/", $from)))),+]
    };
}

const RUST: &[(&str, &str)] = files! {
    "filter/rust/Cargo.toml.in" => "Cargo.toml",
    "filter/rust/README.md" => "README.md",
    "rust/cargo-config.toml" => ".cargo/config.toml",
    "rust/gitignore" => ".gitignore",
    "filter/rust/src/about.rs" => "src/about.rs",
    "filter/rust/src/component.rs" => "src/component.rs",
    "filter/rust/src/leave_out.rs" => "src/leave_out.rs",
    "filter/rust/src/lib.rs" => "src/lib.rs",
    "filter/rust/tests/leave_out.rs" => "tests/leave_out.rs",
};

const JAVASCRIPT: &[(&str, &str)] = files! {
    "filter/js/README.md" => "README.md",
    "filter/js/build.mjs" => "build.mjs",
    "js/gitignore" => ".gitignore",
    "filter/js/package.json" => "package.json",
    "filter/js/src/leave_out.js" => "src/leave_out.js",
    "filter/js/src/plugin.js" => "src/plugin.js",
    "filter/js/test/leave_out.test.js" => "test/leave_out.test.js",
};

const PYTHON: &[(&str, &str)] = files! {
    "filter/python/README.md" => "README.md",
    "filter/python/build.py" => "build.py",
    "python/gitignore" => ".gitignore",
    "filter/python/pyproject.toml" => "pyproject.toml",
    "python/requirements.txt" => "requirements.txt",
    "filter/python/src/app.py" => "src/app.py",
    "filter/python/src/leave_out.py" => "src/leave_out.py",
    "filter/python/src/strategies.py" => "src/strategies.py",
    "filter/python/tests/test_leave_out.py" => "tests/test_leave_out.py",
};
