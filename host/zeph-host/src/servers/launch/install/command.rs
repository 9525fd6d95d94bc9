//! Commands that install a program and run it: `npx`, `uvx`, `pipx run`, `bunx`. Only the forms that are understood are taken: what else
//! stands there could name other packages, registries or code.

use std::path::{Path, PathBuf};

use zeph_core::failure::one_line;

/// Most packages that are installed for one server.
const PACKAGES_MAX: usize = 16;

/// Most characters of the name of a package with its version.
const SPEC_CHARS_MAX: usize = 250;

/// Which tool installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Npm,
    Bun,
    Uv,
    /// `pipx run`: the `venv` and `pip` of a Python.
    Pip,
}

/// A program to be installed, and how it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InstallCommand {
    pub(super) tool: Tool,
    /// Where the tool lies, when its path was written.
    pub(super) tool_directory: Option<PathBuf>,
    /// The packages; the first one is pinned by name.
    pub(super) packages: Vec<PackageSpec>,
    /// The program of theirs that runs; none is the one that is called like the first package, or its only one.
    pub(super) program: Option<String>,
    /// The Python that is wanted.
    pub(super) python: Option<String>,
    /// The arguments of the program.
    pub(super) arguments: Vec<String>,
}

/// A package of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackageSpec {
    /// Without extras and version.
    pub(super) name: String,
    /// What follows it, as its tool takes it: `@1.2.3`, `[cli]==1.2.3`; empty for any version.
    pub(super) rest: String,
}

impl PackageSpec {
    /// As its tool takes it.
    pub(super) fn text(&self) -> String {
        format!("{}{}", self.name, self.rest)
    }
}

impl InstallCommand {
    /// Reads a command; none when it installs nothing.
    ///
    /// Errors: what is not understood, and what to write.
    pub(super) fn read(program: &str, arguments: &[String]) -> Result<Option<Self>, String> {
        let path = Path::new(program);
        let name = path.file_name().and_then(|name| name.to_str());
        let first = arguments.first().map(String::as_str);
        let read = match (name.unwrap_or_default(), first) {
            ("npx", _) => Reader::new(arguments, NPX).read(Tool::Npm),
            ("bunx", _) => Reader::new(arguments, BUNX).read(Tool::Bun),
            ("uvx", _) => Reader::new(arguments, UVX).read(Tool::Uv),
            ("pipx", Some("run")) => Reader::new(&arguments[1..], PIPX).read(Tool::Pip),
            ("pipx", _) => Err("`pipx` is understood as `pipx run`".to_owned()),
            (name, first) => match other_word(name, first) {
                None => return Ok(None),
                Some(word) => Err(format!(
                    "`{name} {}` would install packages while the server runs, without a network; write `{word}`",
                    first.unwrap_or_default()
                )),
            },
        };
        let mut command = read.map_err(|problem| format!("{problem} ({FORMS})"))?;
        let directory = path.parent().filter(|_| path.is_absolute());
        command.tool_directory = directory.map(Path::to_owned);
        Ok(Some(command))
    }
}

/// The forms that are understood.
const FORMS: &str = "understood: `npx [-y] [-p PACKAGE] PACKAGE|PROGRAM [ARGUMENT…]`, `bunx` alike, \
                     `uvx [--from PACKAGE] [--with PACKAGE] [--python VERSION] PROGRAM [ARGUMENT…]`, \
                     `pipx run [--spec PACKAGE] PROGRAM [ARGUMENT…]`, with packages of the registry, such as `name@1.2.3` or `name==1.2.3`";

/// Other spellings of these commands, and what to write.
fn other_word(program: &str, first: Option<&str>) -> Option<&'static str> {
    match (program, first?) {
        ("npm", "exec" | "x") | ("pnpm", "dlx") | ("yarn", "dlx") | ("pnpx", _) => Some("npx"),
        ("bun", "x") => Some("bunx"),
        ("uv", "tool" | "x") => Some("uvx"),
        _ => None,
    }
}

/// Options of `uv` and `uv run` that take a value.
const UV_VALUES: [&str; 10] = [
    "--directory",
    "--project",
    "--python",
    "-p",
    "--package",
    "--extra",
    "--group",
    "--env-file",
    "--index-url",
    "--cache-dir",
];

/// What is wrong with a command that adds packages to a project while it runs (`uv run --with`), for a server without a network; none for
/// any other.
pub(super) fn adds_packages(program: &str, arguments: &[String]) -> Option<String> {
    if Path::new(program).file_name()? != "uv" {
        return None;
    }
    let (mut words, mut is_run) = (arguments.iter(), false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "run" if !is_run => is_run = true,
            word if is_run && word.starts_with("--with") => {
                return Some(format!(
                    "`uv run --with` would install packages while the server runs, without a network; write `uvx` ({FORMS})"
                ));
            }
            word if UV_VALUES.contains(&word) => drop(words.next()),
            word if word.starts_with('-') => {}
            // The program: what follows is its own.
            _ => return None,
        }
    }
    None
}

/// An option, and what it means.
type Options = &'static [(&'static str, Meaning)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// Nothing here.
    Ignored,
    /// A package; the program is named apart.
    Package,
    /// A package besides the first.
    Besides,
    /// The version of Python.
    Python,
}

const NPX: Options = &[
    ("-y", Meaning::Ignored),
    ("--yes", Meaning::Ignored),
    ("-q", Meaning::Ignored),
    ("--quiet", Meaning::Ignored),
    ("-p", Meaning::Package),
    ("--package", Meaning::Package),
];

const BUNX: Options = &[
    ("-y", Meaning::Ignored),
    ("--bun", Meaning::Ignored),
    ("--silent", Meaning::Ignored),
    ("-p", Meaning::Package),
    ("--package", Meaning::Package),
];

const UVX: Options = &[
    ("-q", Meaning::Ignored),
    ("--quiet", Meaning::Ignored),
    ("--isolated", Meaning::Ignored),
    ("--from", Meaning::Package),
    ("-w", Meaning::Besides),
    ("--with", Meaning::Besides),
    ("-p", Meaning::Python),
    ("--python", Meaning::Python),
];

const PIPX: Options = &[
    ("-q", Meaning::Ignored),
    ("--quiet", Meaning::Ignored),
    ("--no-cache", Meaning::Ignored),
    ("--spec", Meaning::Package),
    ("--with", Meaning::Besides),
    ("--python", Meaning::Python),
];

/// Reads the arguments of one of the commands.
struct Reader<'a> {
    rest: std::slice::Iter<'a, String>,
    options: Options,
    packages: Vec<String>,
    besides: Vec<String>,
    python: Option<String>,
}

impl<'a> Reader<'a> {
    fn new(arguments: &'a [String], options: Options) -> Self {
        Self {
            rest: arguments.iter(),
            options,
            packages: Vec::new(),
            besides: Vec::new(),
            python: None,
        }
    }

    fn read(mut self, tool: Tool) -> Result<InstallCommand, String> {
        let word = self.first_word()?;
        let word = word.ok_or("it names nothing to run")?.as_str();
        let (program, wanted) = match self.packages.is_empty() {
            // The package names the program, unless `uvx` and `pipx` are told the version with it.
            true => (None, vec![word.to_owned()]),
            false => (
                Some(program_name(word)?),
                std::mem::take(&mut self.packages),
            ),
        };
        let is_python = matches!(tool, Tool::Uv | Tool::Pip);
        let all = wanted.iter().chain(&self.besides);
        let packages: Result<Vec<PackageSpec>, String> = all
            .map(|text| match is_python {
                true => python_package(text),
                false => node_package(text),
            })
            .collect();
        let packages = packages?;
        if packages.len() > PACKAGES_MAX {
            return Err(format!("more than {PACKAGES_MAX} packages"));
        }
        Ok(InstallCommand {
            tool,
            tool_directory: None,
            program: program.or_else(|| is_python.then(|| packages[0].name.clone())),
            packages,
            python: self.python,
            arguments: self.rest.cloned().collect(),
        })
    }

    /// Reads options up to the first word that is none.
    fn first_word(&mut self) -> Result<Option<&'a String>, String> {
        while let Some(word) = self.rest.next() {
            if word == "--" {
                return Ok(self.rest.next());
            }
            if !word.starts_with('-') {
                return Ok(Some(word));
            }
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let known = self.options.iter().find(|(known, _)| *known == name);
            let Some((_, meaning)) = known else {
                return Err(format!("`{}` is not understood", one_line(word, 100)));
            };
            self.option(word, *meaning, value)?;
        }
        Ok(None)
    }

    fn option(
        &mut self,
        word: &str,
        meaning: Meaning,
        value: Option<String>,
    ) -> Result<(), String> {
        if meaning == Meaning::Ignored {
            return match value {
                None => Ok(()),
                Some(_) => Err(format!("`{}` is not understood", one_line(word, 100))),
            };
        }
        let value = value.or_else(|| self.rest.next().cloned());
        let value = value.ok_or_else(|| format!("`{word}` names nothing"))?;
        match meaning {
            Meaning::Ignored => {}
            Meaning::Package => self.packages.push(value),
            Meaning::Besides => self.besides.push(value),
            Meaning::Python => self.python = Some(python_version(&value)?),
        }
        Ok(())
    }
}

/// A name that is a program beside others: no path.
fn program_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    match begins_well && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "`{}` is not the name of a program",
            one_line(text, 100)
        )),
    }
}

/// A version as people write one, or a range without blanks.
fn is_version(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+-*^~<>=!,|".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_plain)
}

/// `name`, `@scope/name`, with `@version`, `@range` or `@tag`.
fn node_package(text: &str) -> Result<PackageSpec, String> {
    let bad = || format!("`{}` is not a package of the registry", one_line(text, 100));
    let (scope, rest) = match text.strip_prefix('@') {
        Some(scoped) => {
            let (scope, rest) = scoped.split_once('/').ok_or_else(bad)?;
            (format!("@{scope}/"), rest)
        }
        None => (String::new(), text),
    };
    let (name, version) = match rest.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (rest, None),
    };
    let scope_ok = scope.is_empty() || is_name(scope.trim_matches(['@', '/']));
    let is_fine = scope_ok && is_name(name) && version.is_none_or(is_version);
    match is_fine && text.len() <= SPEC_CHARS_MAX {
        true => Ok(PackageSpec {
            name: format!("{scope}{name}"),
            rest: version.map_or_else(String::new, |version| format!("@{version}")),
        }),
        false => Err(bad()),
    }
}

/// `name`, with `[extras]`, and `==version`, another constraint, or `@version`.
fn python_package(text: &str) -> Result<PackageSpec, String> {
    let bad = || format!("`{}` is not a package of the index", one_line(text, 100));
    let end = text.find(|c: char| "[=<>!~@ ".contains(c));
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let (extras, constraint) = match rest.strip_prefix('[') {
        Some(inner) => {
            let (extras, constraint) = inner.split_once(']').ok_or_else(bad)?;
            (Some(extras), constraint)
        }
        None => (None, rest),
    };
    let extras_ok = extras.is_none_or(|extras| extras.split(',').all(is_name));
    // `uvx tool@latest` is any version.
    let constraint = match constraint.strip_prefix('@') {
        Some("latest") => String::new(),
        Some(version) if is_name(version) => format!("=={version}"),
        Some(_) => return Err(bad()),
        None => constraint.to_owned(),
    };
    let begins_well = constraint.is_empty() || constraint.starts_with(['=', '<', '>', '!', '~']);
    let is_fine = is_name(name) && extras_ok && begins_well;
    let is_version = constraint.is_empty() || is_version(&constraint);
    match is_fine && is_version && text.len() <= SPEC_CHARS_MAX {
        true => Ok(PackageSpec {
            name: name.to_owned(),
            rest: match extras {
                Some(extras) => format!("[{extras}]{constraint}"),
                None => constraint,
            },
        }),
        false => Err(bad()),
    }
}

fn python_version(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_digit() || c == '.';
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "`{}` is not a version of Python, such as `3.12`",
            one_line(text, 100)
        )),
    }
}

#[cfg(test)]
mod tests;
