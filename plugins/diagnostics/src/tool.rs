//! The tool: finds the project, runs its checkers one after the other, and puts together what they say.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use zeph_plugin::process::{Completed, End, Program, RunError, RunErrorKind};
use zeph_plugin::{Kind, Output, Tool, ToolError, settings};

use crate::checker::{Checker, Command, Level};
use crate::diagnostic::{Diagnostic, Severity};
use crate::parse::Printout;
use crate::project::Project;
use crate::report::{Findings, Report, View};

/// Most findings that can be asked for.
const MAX: u32 = 1_000;

/// Most characters of what a program says about itself.
const SAID_CHARS_MAX: usize = 1_000;

/// The arguments of `diagnostics`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The project, a directory of it, or one file, absolute or relative to the working directory. For a file, only its own
    /// diagnostics are shown.
    #[serde(default = "here")]
    pub path: String,
    /// `check`: errors and warnings of the compiler. `clippy`: lints of Rust as well; slower.
    #[serde(default)]
    pub kind: Option<Level>,
    /// Another name of `kind`.
    #[serde(default)]
    pub level: Option<Level>,
    /// Most diagnostics shown. All are counted.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub max_diagnostics: Option<u32>,
}

fn here() -> String {
    ".".to_owned()
}

/// What the operator set: `[tools.diagnostics]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Settings {
    max_diagnostics: Option<u32>,
}

/// The plugin's tools.
pub fn tools() -> Vec<Tool> {
    vec![
        Tool::new("diagnostics", |args: Args, _| run(&args))
            .title("Check a project")
            .describe(
                "Checks a project with its own compiler or linter and returns the errors and warnings with file, line and column: \
                 cargo check or clippy for Rust, tsc for TypeScript, ruff and mypy for Python, go vet for Go. The project is found from \
                 `path`. Use it after editing code. It changes nothing, and does not download dependencies.",
            )
            .kind(Kind::Read)
            .read_only()
            .returns::<Report>(),
    ]
}

fn run(args: &Args) -> Result<Output, ToolError> {
    let working = working_directory();
    let path = working.join(&args.path);
    let found = path.metadata().map_err(|error| {
        ToolError::io(
            error.kind(),
            format!("`{}` cannot be read: {error}", args.path),
        )
    })?;
    let level = args.kind.or(args.level).unwrap_or_default();
    let Some(project) = Project::around(&path, level) else {
        return Err(ToolError::not_found(format!(
            "there is no project that it knows at `{}` or above: no Cargo.toml, tsconfig.json, pyproject.toml, go.mod or the like",
            args.path
        )));
    };
    let mut findings = Findings::default();
    for checker in &project.checkers {
        check(checker, &project.directory, &mut findings)?;
    }
    let view = View {
        project: &project.directory,
        working: &working,
        only: found
            .is_file()
            .then_some(path.as_path())
            .filter(|file| !is_marker(file, &project)),
    };
    let max = match args.max_diagnostics {
        Some(max) => max,
        None => settings::<Settings>()?.max_diagnostics.unwrap_or(MAX),
    };
    Ok(findings.report(view, max.clamp(1, MAX) as usize))
}

/// Whether a file stands for its project: all of it is meant.
fn is_marker(file: &Path, project: &Project) -> bool {
    let mut markers = project.checkers.iter().flat_map(|checker| checker.markers);
    markers.any(|marker| project.directory.join(marker.file) == file)
}

/// Runs the first command of `checker` that is there.
///
/// Errors: the checker could not look at the project at all.
fn check(checker: &Checker, directory: &Path, findings: &mut Findings) -> Result<(), ToolError> {
    let mut missing = None;
    for command in checker
        .commands
        .iter()
        .filter(|command| command.is_for(directory))
    {
        match command.run(directory) {
            Ok(completed) => {
                findings.checkers.push(checker.name.to_owned());
                return take(checker, completed, findings);
            }
            Err(error) if error.kind == RunErrorKind::NotFound => missing = Some(error.message),
            Err(error) => return Err(error.into()),
        }
    }
    let name = checker.name;
    findings.warnings.push(match missing {
        Some(message) => format!("{name} did not run: {message}"),
        None => format!("{name} did not run: nothing of it is installed"),
    });
    Ok(())
}

impl Command {
    fn is_for(&self, directory: &Path) -> bool {
        self.needs
            .is_none_or(|needs| directory.join(needs).is_file())
    }

    fn run(&self, directory: &Path) -> Result<Completed, RunError> {
        Program::new(self.program)
            .args(self.arguments.split(' '))
            .directory(directory.to_string_lossy())
            .run()
    }
}

/// What a checker that ran has found.
///
/// Errors: it found nothing, because it could not look at the project.
fn take(checker: &Checker, completed: Completed, findings: &mut Findings) -> Result<(), ToolError> {
    let Completed {
        end,
        stdout,
        stderr,
    } = completed;
    let omitted = stdout.omitted;
    let printout = Printout {
        stdout: stdout.text,
        stderr: stderr.text,
    };
    let found = (checker.parse)(&printout);
    let has_errors = found.iter().any(|one| one.severity == Severity::Error);
    let is_empty = found.is_empty();
    findings.diagnostics.extend(found);
    let name = checker.name;
    if omitted > 0 {
        findings.warnings.push(format!(
            "{name} printed too much: {omitted} bytes in the middle are missing, and what stood there is not counted"
        ));
    }
    match end {
        End::TimedOut => findings.warnings.push(format!(
            "{name} was ended because it took too long; what it had found until then is shown. A larger `limits.wall_clock_secs`, or a \
             build with `bash` in the background, gives it more time"
        )),
        End::Flooded => findings.warnings.push(format!("{name} was ended because it printed without end")),
        End::Killed(signal) => findings.warnings.push(format!("{name} was ended by signal {signal}: {}", said(&printout.stderr))),
        End::Exited(0) => {}
        End::Exited(_) if has_errors => {}
        End::Exited(code) => return failed(name, code, &printout, is_empty, findings),
    }
    Ok(())
}

/// A checker that failed without an error in the code.
fn failed(
    name: &str,
    code: i32,
    printout: &Printout,
    is_empty: bool,
    findings: &mut Findings,
) -> Result<(), ToolError> {
    let said = said(&printout.stderr);
    if let Some(advice) = advice(&printout.stderr) {
        return Err(ToolError::permanent(format!("{advice} ({said})")));
    }
    // Linters exit so when they found something.
    if !is_empty && said.is_empty() {
        return Ok(());
    }
    let has_begun = printout.stdout.contains("\"build-finished\"");
    if is_empty && !has_begun {
        let said = match said.is_empty() {
            true => format!("it ended with exit code {code} and said nothing"),
            false => said,
        };
        return Err(ToolError::permanent(format!(
            "{name} could not check the project: {said}"
        )));
    }
    findings.diagnostics.push(Diagnostic {
        severity: Severity::Error,
        message: said,
        file: None,
        line: None,
        col: None,
        code: None,
        rendered: Some(printout.stderr.trim_end().to_owned()),
    });
    Ok(())
}

/// What can be done about failures of cargo that come from this sandbox.
fn advice(stderr: &str) -> Option<&'static str> {
    const NOT_DOWNLOADED: [&str; 4] = [
        "retry without `--offline`",
        "--offline was specified",
        "retry without the offline flag",
        "failed to download",
    ];
    if stderr.contains("because --locked was passed") {
        return Some(
            "`Cargo.lock` is missing or out of date, and this tool changes nothing in the project: run `cargo generate-lockfile` with \
             `bash` first",
        );
    }
    let says = |words: &&str| stderr.contains(*words);
    NOT_DOWNLOADED.iter().any(says).then_some(
        "dependencies of the project are not downloaded, and this tool has no network: run `cargo fetch` where there is one, then call it \
         again",
    )
}

/// The begin of what a program says on its standard error, without the lines that only repeat how many errors there are.
fn said(stderr: &str) -> String {
    let lines = stderr
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let text: Vec<&str> = lines.collect();
    let text = text.join("; ");
    match text.char_indices().nth(SAID_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Where relative paths start.
#[cfg(target_family = "wasm")]
fn working_directory() -> PathBuf {
    wasip2::cli::environment::initial_cwd()
        .unwrap_or_default()
        .into()
}

/// Where relative paths start.
#[cfg(not(target_family = "wasm"))]
fn working_directory() -> PathBuf {
    PathBuf::from("/")
}

#[cfg(test)]
mod tests {
    use super::{advice, said};

    #[test]
    fn failures_that_come_from_the_sandbox_get_advice() {
        let lock = "error: cannot create the lock file /w/Cargo.lock because --locked was passed to prevent this\n";
        assert!(advice(lock).unwrap().contains("generate-lockfile"));
        let offline = "error: no matching package named `x` found\nAs a reminder, you're using offline mode (--offline) which can sometimes \
                       cause surprising resolution failures, if this error is too confusing you may wish to retry without `--offline`.\n";
        assert!(advice(offline).unwrap().contains("cargo fetch"));
        assert_eq!(advice("error: unclosed table"), None);
    }

    #[test]
    fn what_a_program_says_is_one_bounded_line() {
        assert_eq!(said("error: a\n\n  b\n"), "error: a; b");
        assert_eq!(said(&"é".repeat(5_000)).chars().count(), 1_001);
    }
}
