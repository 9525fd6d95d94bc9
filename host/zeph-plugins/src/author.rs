//! Projects for those who write plugins: `plugin new` writes one that builds, `plugin dev` builds it at every change.
//!
//! In reading order: `template` (what a new project holds), `build` (the language's own tools at work), `cargo` (what the tool of
//! Rust says of a project), `sources` (whether something changed). Nothing here loads or runs a plugin.

pub mod build;
pub mod cargo;
#[cfg(test)]
mod guide;
pub mod sources;
mod template;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use zeph_core::id::{PLUGIN_NAME_CHARS_MAX, PluginId};

pub use self::template::{Language, Template};

/// Why no project was made. Nothing was written then.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// The name is not a valid name of a plugin.
    #[error(
        "`{0}` is not a valid plugin name: 1 to {PLUGIN_NAME_CHARS_MAX} of `a-z 0-9 _ -`, a letter first, without `__` and without `_` at the end"
    )]
    BadName(String),
    /// The name means something else already.
    #[error("a plugin cannot be named `{name}`: {reason}")]
    TakenName {
        /// The name.
        name: String,
        /// What it means.
        reason: &'static str,
    },
    /// Something is there that would be mixed up with the project.
    #[error("`{}` is there already and not empty", .0.display())]
    NotEmpty(PathBuf),
    /// Nothing can be made there.
    #[error("there is no directory `{}`", .0.display())]
    NoFolder(PathBuf),
    /// There is no such template.
    #[error(
        "there is no template for filter strategies in `{0}`; there are `rust`, `js` and `python`"
    )]
    NoTemplate(Language),
    /// The disk said no.
    #[error("cannot {operation} `{}`", path.display())]
    Io {
        /// What was tried, to be followed by the path.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

/// Writes a project named `name` as the folder `dir/name` and returns its files, relative to that folder.
///
/// Shape:  `dir` is there; `dir/name` is not, or is an empty directory.
/// Errors: [`NewError`]. Either the whole project stands there or nothing.
pub fn new_project(
    template: impl Into<Template>,
    name: &str,
    dir: &Path,
) -> Result<Vec<PathBuf>, NewError> {
    let template = template.into();
    let language = template.language();
    check_name(language, name)?;
    let files = template.files(name).ok_or(NewError::NoTemplate(language))?;
    if !dir.is_dir() {
        return Err(NewError::NoFolder(dir.to_owned()));
    }
    let folder = dir.join(name);
    check_free(&folder)?;
    let draft = Draft::new(dir, name)?;
    let texts = files.iter().map(|(path, text)| (*path, text.as_bytes()));
    let files: Vec<(&str, &[u8])> = texts.chain(template.binaries().iter().copied()).collect();
    for (path, bytes) in &files {
        draft.write(path, bytes)?;
    }
    draft.rename(&folder)?;
    Ok(files.iter().map(|(path, _)| PathBuf::from(path)).collect())
}

/// The commands to go on with, one a line, from the directory the person is in.
pub fn next_steps(language: Language, name: &str, dir: &Path) -> String {
    let folder = dir.join(name);
    let mut steps = format!("cd {}\n", folder.display());
    for command in language.commands(name) {
        steps.push_str(&command);
        steps.push('\n');
    }
    steps
}

fn check_name(language: Language, name: &str) -> Result<(), NewError> {
    let is_name = PluginId::problem(name).is_none()
        && name.starts_with(|first: char| first.is_ascii_lowercase());
    if !is_name {
        return Err(NewError::BadName(name.to_owned()));
    }
    let taken = |reason| {
        Err(NewError::TakenName {
            name: name.to_owned(),
            reason,
        })
    };
    let plugins = zeph_bundle::COMPONENTS.iter().map(|own| own.name);
    let filters = zeph_bundle::FILTERS.iter().map(|own| own.name);
    let mut own = plugins.chain(filters);
    if own.any(|own| own == name) {
        return taken("it is a plugin of the host's own");
    }
    if language == Language::Rust && RUST_TAKEN.contains(&name.replace('-', "_").as_str()) {
        return taken("it is a word of Rust, or a crate that the project uses");
    }
    Ok(())
}

/// Names no crate of a project can have: what cannot stand in `use NAME::…`, and the project's own dependencies.
const RUST_TAKEN: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "schemars",
    "self",
    "serde",
    "serde_json",
    "std",
    "struct",
    "super",
    "test",
    "true",
    "try",
    "type",
    "typeof",
    "use",
    "where",
    "while",
    "wit_bindgen",
    "zeph_plugin",
];

fn check_free(folder: &Path) -> Result<(), NewError> {
    let is_free = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => false,
        Err(source) => return Err(io_error("read", folder, source)),
    };
    match is_free {
        true => Ok(()),
        false => Err(NewError::NotEmpty(folder.to_owned())),
    }
}

/// The project under a name of its own until it is complete; removed when it never is.
struct Draft {
    path: PathBuf,
}

impl Draft {
    fn new(dir: &Path, name: &str) -> Result<Self, NewError> {
        let path = dir.join(format!(".{name}.{}", std::process::id()));
        fs::create_dir(&path).map_err(|source| io_error("create", &path, source))?;
        Ok(Self { path })
    }

    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), NewError> {
        let path = self.path.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|source| io_error("create", parent, source))?;
        }
        fs::write(&path, bytes).map_err(|source| io_error("write", &path, source))
    }

    /// Puts the project in its place. An empty directory there is replaced, anything else is an error.
    fn rename(self, folder: &Path) -> Result<(), NewError> {
        fs::rename(&self.path, folder).map_err(|source| io_error("create", folder, source))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Gone already when it was put in its place; else nobody is left who could do more.
        drop(fs::remove_dir_all(&self.path));
    }
}

fn io_error(operation: &'static str, path: &Path, source: io::Error) -> NewError {
    NewError::Io {
        operation,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
