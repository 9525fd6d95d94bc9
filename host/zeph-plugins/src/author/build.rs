//! Builds a project with its language's own tools, which are known by the files that are there.
//!
//! This is the one place where the product starts processes that are no tool call: what runs is the author's own build tool, in a
//! folder that a person named on the command line, with that person's rights. No guest and no model gets here.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::cargo::{self, Artifact, TARGET};

/// Most bytes of a build's output that are kept, the last ones: where compilers say what is wrong.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;

/// Most bytes of what cargo says it made: a line of some hundred bytes for each crate, the plugin's own last.
const SAID_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How the projects of one language are built.
#[derive(Debug)]
struct Builder {
    /// The file that shows the language.
    marker: &'static str,
    /// What has to be there before, and the command that makes it.
    first: Option<(&'static str, &'static [&'static str])>,
    command: &'static [&'static str],
    /// What is added so that it says on its standard output what it made, and nothing else on its standard error than problems.
    more: &'static [&'static str],
}

/// The first one whose file is there is taken: a Makefile stands above the tools it calls.
static BUILDERS: [Builder; 4] = [
    Builder {
        marker: "Cargo.toml",
        first: None,
        command: &["cargo", "build", "--release", "--target", TARGET],
        // Quiet: of a build that succeeds, its standard error has nothing but warnings.
        more: &["--quiet", "--message-format=json-render-diagnostics"],
    },
    Builder {
        marker: "Makefile",
        first: None,
        command: &["make"],
        more: &[],
    },
    Builder {
        marker: "package.json",
        first: Some(("node_modules", &["npm", "install"])),
        command: &["npm", "run", "build"],
        more: &[],
    },
    Builder {
        marker: "build.py",
        first: None,
        command: &["python3", "build.py"],
        more: &[],
    },
];

/// What came of a build.
#[derive(Debug, Default)]
pub struct Built {
    /// The component that was made, when the tool says which.
    pub component: Option<Artifact>,
    /// The end of what the tool wrote to its standard error all the same: warnings, as a rule.
    pub warnings: String,
}

/// Why nothing was built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The folder shows no language.
    #[error("`{}` is not a plugin project: it has none of {}", .0.display(), markers())]
    NoProject(PathBuf),
    /// The program is not there, or the system does not start it.
    #[error("`{command}` does not start")]
    Start {
        /// The command, as a person would type it.
        command: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The system's trouble around a build.
    #[error("the output of `{command}` cannot be read")]
    Output {
        /// The command, as a person would type it.
        command: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The tool said no.
    #[error("`{command}` failed ({status})")]
    Failed {
        /// The command, as a person would type it.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it said.
        output: String,
    },
}

fn markers() -> String {
    let names = BUILDERS
        .iter()
        .map(|builder| format!("`{}`", builder.marker));
    names.collect::<Vec<_>>().join(", ")
}

/// A folder that can be built.
#[derive(Debug)]
pub struct Project {
    folder: PathBuf,
    builder: &'static Builder,
}

impl Project {
    /// Finds out how `folder` is built.
    ///
    /// Errors: [`BuildError::NoProject`].
    pub fn open(folder: &Path) -> Result<Self, BuildError> {
        let is_there = |builder: &&Builder| folder.join(builder.marker).is_file();
        match BUILDERS.iter().find(is_there) {
            Some(builder) => Ok(Self {
                folder: folder.to_owned(),
                builder,
            }),
            None => Err(BuildError::NoProject(folder.to_owned())),
        }
    }

    /// The command that builds it, as a person would type it.
    pub fn command(&self) -> String {
        self.builder.command.join(" ")
    }

    /// Builds it. Dropping the future ends the build with everything it started.
    ///
    /// Errors: [`BuildError`].
    pub async fn build(&self) -> Result<Built, BuildError> {
        let Builder {
            first,
            command,
            more,
            ..
        } = self.builder;
        if let Some((needed, command)) = first
            && !self.folder.join(needed).exists()
        {
            self.run(command, &[]).await?;
        }
        let (said, warnings) = self.run(command, more).await?;
        let mut made = cargo::made(&self.folder, &said);
        // Of several, the author has to choose one by name.
        let component = made.pop().filter(|_| made.is_empty());
        Ok(Built {
            component,
            warnings,
        })
    }

    /// What the tool wrote to its standard output and to its standard error.
    async fn run(&self, words: &[&str], more: &[&str]) -> Result<(String, String), BuildError> {
        let command = words.join(" ");
        let cannot_start = |source| BuildError::Start {
            command: command.clone(),
            source,
        };
        let mut said = tempfile::tempfile().map_err(cannot_start)?;
        let mut problems = tempfile::tempfile().map_err(cannot_start)?;
        let words = [words, more].concat();
        let running = BuildProcess::start(&words, &self.folder, (&said, &problems));
        let status = running.map_err(cannot_start)?.end().await;
        let status = status.map_err(cannot_start)?;
        let unread = |source| BuildError::Output {
            command: command.clone(),
            source,
        };
        let problems = tail(&mut problems, OUTPUT_BYTES_MAX).map_err(unread)?;
        if status.success() {
            let said = tail(&mut said, SAID_BYTES_MAX).map_err(unread)?;
            return Ok((said, problems));
        }
        // What is for a machine says nothing that the other stream does not say for a person.
        let said = match more {
            [] => tail(&mut said, OUTPUT_BYTES_MAX).map_err(unread)?,
            _ => String::new(),
        };
        let output = [said, problems].concat();
        Err(BuildError::Failed {
            command,
            status,
            output,
        })
    }
}

/// What a command prints that a person could have typed in `folder`, when it succeeds. Blocks.
#[expect(
    clippy::disallowed_methods,
    reason = "the author's own tool, in a folder that a person named: see the head of this file"
)]
pub(super) fn output(words: &[&str], folder: &Path) -> io::Result<Vec<u8>> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(folder);
    let output = command.stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(io::Error::other("it failed")),
    }
}

/// The last bytes of a file, `bytes_max` at most, as text.
fn tail(file: &mut File, bytes_max: u64) -> io::Result<String> {
    let n_bytes = file.metadata()?.len();
    file.seek(SeekFrom::Start(n_bytes.saturating_sub(bytes_max)))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A started program at the head of a process group of its own. Dropping it ends the group.
struct BuildProcess {
    child: Child,
}

impl BuildProcess {
    #[expect(
        clippy::disallowed_methods,
        reason = "the author's own build, typed at the terminal: see the head of this file"
    )]
    fn start(words: &[&str], folder: &Path, (said, output): (&File, &File)) -> io::Result<Self> {
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(output.try_clone()?)
            .process_group(0);
        Ok(Self {
            child: command.spawn()?,
        })
    }

    async fn end(mut self) -> io::Result<ExitStatus> {
        let pid = Pid::from_child(&self.child);
        // The number stays taken until the child is waited for below: what `drop` ends is never another's group.
        let waits = move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options))
        };
        tokio::task::spawn_blocking(waits).await??;
        self.child.wait()
    }
}

impl Drop for BuildProcess {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            kill_process_group(Pid::from_child(&self.child), Signal::KILL).ok();
            self.child.wait().ok();
        }
    }
}

#[cfg(test)]
mod tests;
