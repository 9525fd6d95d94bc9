//! What a new project is made of: the files of each language, with the plugin's name put in.
//!
//! The files stand in `templates`, one folder a language, as an author gets them. A pure function: nothing is written here.

mod filter;

use std::fmt;
use std::str::FromStr;

/// Stands for the plugin's name in the files.
const NAME: &str = "PLUGIN_NAME";

/// Stands for the name as Rust writes it in code and in the name of the component.
const RUST_NAME: &str = "RUST_NAME";

/// Stands for what the names of the tools begin with, so that two new plugins do not offer the same tools.
const TOOL_PREFIX: &str = "TOOL_PREFIX";

/// Characters of that: the longest name of a template's tool fits behind it.
const TOOL_PREFIX_CHARS_MAX: usize = 40;

/// Stands for the version of the SDK, which is the host's.
const SDK_VERSION: &str = "SDK_VERSION";

const CONTRACT: &str = include_str!("../../../../wit/zeph-plugin/plugin.wit");

/// A language there is a template for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Built by cargo.
    Rust,
    /// Built with npm and jco.
    JavaScript,
    /// Built with componentize-py.
    Python,
    /// Built with the clang of wasi-sdk.
    C,
}

/// What a new project is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// Tools for models.
    Tools(Language),
    /// Filter strategies.
    Filter(Language),
}

impl From<Language> for Template {
    fn from(language: Language) -> Self {
        Self::Tools(language)
    }
}

impl Template {
    /// The language it is written in.
    pub(crate) fn language(self) -> Language {
        match self {
            Self::Tools(language) | Self::Filter(language) => language,
        }
    }

    /// The files of a project that are no text: where each goes and what it holds.
    pub(super) fn binaries(self) -> &'static [(&'static str, &'static [u8])] {
        match self {
            Self::Tools(Language::C) => &[(
                "adapter/wasi_snapshot_preview1.reactor.wasm",
                wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            )],
            Self::Tools(_) | Self::Filter(_) => &[],
        }
    }

    /// The files of a project named `name`; see [`Language::files`]. `None`: there is no such template.
    pub(super) fn files(self, name: &str) -> Option<Vec<(&'static str, String)>> {
        match self {
            Self::Tools(language) => Some(language.files(name)),
            Self::Filter(language) => filter::files(language, name),
        }
    }
}

/// A word that names no language of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLanguage(String);

impl Language {
    /// Every language.
    pub const ALL: [Self; 4] = [Self::Rust, Self::JavaScript, Self::Python, Self::C];

    /// As it is typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::JavaScript => "js",
            Self::Python => "python",
            Self::C => "c",
        }
    }

    /// The commands that build, test and install a project, from inside its folder.
    pub fn commands(self, name: &str) -> Vec<String> {
        let lines: &[&str] = match self {
            Self::Rust => &[
                "cargo test",
                "cargo build --release --target wasm32-wasip2",
                "zeph-host plugin add .",
            ],
            Self::JavaScript => &[
                "npm install",
                "npm run build",
                "npm test",
                "zeph-host plugin add dist/PLUGIN_NAME.wasm",
            ],
            Self::Python => &[
                "python3 build.py",
                "python3 -m unittest discover tests",
                "zeph-host plugin add dist/PLUGIN_NAME.wasm",
            ],
            Self::C => &[
                "make",
                "make test",
                "zeph-host plugin add dist/PLUGIN_NAME.wasm",
            ],
        };
        lines.iter().map(|line| fill(line, name)).collect()
    }

    /// The files of a project named `name`: where each goes, `/`-separated, and what it holds.
    pub fn files(self, name: &str) -> Vec<(&'static str, String)> {
        let contract = match self {
            Self::JavaScript => "wit/deps/zeph-plugin/plugin.wit",
            _ => "wit/plugin.wit",
        };
        let common = [
            (
                "plugin.toml",
                include_str!("../../../../plugins/templates/plugin.toml"),
            ),
            (contract, CONTRACT),
        ];
        let own = match self {
            Self::Rust => RUST,
            Self::JavaScript => JAVASCRIPT,
            Self::Python => PYTHON,
            Self::C => C,
        };
        let mut files: Vec<_> = common
            .iter()
            .chain(own)
            .map(|(path, text)| (*path, fill(text, name)))
            .collect();
        if self == Self::Rust {
            files.extend(SDK.iter().map(|(path, text)| (*path, vendored(text))));
        }
        files
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Self, UnknownLanguage> {
        let named = Self::ALL
            .into_iter()
            .find(|language| language.as_str() == text);
        named.ok_or_else(|| UnknownLanguage(text.to_owned()))
    }
}

impl fmt::Display for UnknownLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            f,
            "there is no template for `{text}`; there are `rust`, `js`, `python` and `c`"
        )
    }
}

impl std::error::Error for UnknownLanguage {}

fn fill(text: &str, name: &str) -> String {
    text.replace(RUST_NAME, &name.replace('-', "_"))
        .replace(NAME, name)
        .replace(TOOL_PREFIX, &tool_prefix(name))
        .replace(SDK_VERSION, env!("CARGO_PKG_VERSION"))
}

fn tool_prefix(name: &str) -> String {
    let prefix: String = name.chars().take(TOOL_PREFIX_CHARS_MAX).collect();
    prefix.replace('-', "_").trim_end_matches('_').to_owned()
}

/// A file of the SDK as it stands in a project: without its tests, and with the contract where the project has it.
fn vendored(text: &str) -> String {
    text.replace("\n#[cfg(test)]\nmod tests;\n", "")
        .replace("../../wit/zeph-plugin", "../wit")
}

macro_rules! files {
    ($folder:literal: $($from:literal => $to:literal),+ $(,)?) => {
        &[$(($to, include_str!(concat!($folder, $from)))),+]
    };
}

const RUST: &[(&str, &str)] = files! { "../../../../plugins/templates/rust/":
    "Cargo.toml.in" => "Cargo.toml",
    "README.md" => "README.md",
    "cargo-config.toml" => ".cargo/config.toml",
    "gitignore" => ".gitignore",
    "sdk/Cargo.toml.in" => "zeph-plugin/Cargo.toml",
    "src/lib.rs" => "src/lib.rs",
    "tests/tools.rs" => "tests/tools.rs",
};

const SDK: &[(&str, &str)] = files! { "../../../../plugins/zeph-plugin/":
    "src/about.rs" => "zeph-plugin/src/about.rs",
    "src/bindings.rs" => "zeph-plugin/src/bindings.rs",
    "src/context.rs" => "zeph-plugin/src/context.rs",
    "src/embeddings.rs" => "zeph-plugin/src/embeddings.rs",
    "src/error.rs" => "zeph-plugin/src/error.rs",
    "src/http.rs" => "zeph-plugin/src/http.rs",
    "src/http/retry_after.rs" => "zeph-plugin/src/http/retry_after.rs",
    "src/http/wire.rs" => "zeph-plugin/src/http/wire.rs",
    "src/lib.rs" => "zeph-plugin/src/lib.rs",
    "src/log.rs" => "zeph-plugin/src/log.rs",
    "src/output.rs" => "zeph-plugin/src/output.rs",
    "src/process.rs" => "zeph-plugin/src/process.rs",
    "src/progress.rs" => "zeph-plugin/src/progress.rs",
    "src/question.rs" => "zeph-plugin/src/question.rs",
    "src/schema.rs" => "zeph-plugin/src/schema.rs",
    "src/server_tools.rs" => "zeph-plugin/src/server_tools.rs",
    "src/tool.rs" => "zeph-plugin/src/tool.rs",
};

const JAVASCRIPT: &[(&str, &str)] = files! { "../../../../plugins/templates/js/":
    "README.md" => "README.md",
    "build.mjs" => "build.mjs",
    "gitignore" => ".gitignore",
    "package.json" => "package.json",
    "src/files.js" => "src/files.js",
    "src/plugin.js" => "src/plugin.js",
    "src/tools.js" => "src/tools.js",
    "test/tools.test.js" => "test/tools.test.js",
    "wit/deps/environment.wit" => "wit/deps/environment.wit",
    "wit/deps/filesystem.wit" => "wit/deps/filesystem.wit",
    "wit/plugin.wit" => "wit/plugin.wit",
};

const PYTHON: &[(&str, &str)] = files! { "../../../../plugins/templates/python/":
    "README.md" => "README.md",
    "build.py" => "build.py",
    "gitignore" => ".gitignore",
    "pyproject.toml" => "pyproject.toml",
    "requirements.txt" => "requirements.txt",
    "src/app.py" => "src/app.py",
    "src/tools.py" => "src/tools.py",
    "tests/test_tools.py" => "tests/test_tools.py",
};

const C: &[(&str, &str)] = files! { "../../../../plugins/templates/c/":
    "Makefile" => "Makefile",
    "README.md" => "README.md",
    "bindings/tool_plugin.c" => "bindings/tool_plugin.c",
    "bindings/tool_plugin.h" => "bindings/tool_plugin.h",
    "gitignore" => ".gitignore",
    "requirements.txt" => "requirements.txt",
    "src/about.c" => "src/about.c",
    "src/json.c" => "src/json.c",
    "src/json.h" => "src/json.h",
    "src/plugin.c" => "src/plugin.c",
    "src/tools.c" => "src/tools.c",
    "src/tools.h" => "src/tools.h",
    "test/test.c" => "test/test.c",
};
