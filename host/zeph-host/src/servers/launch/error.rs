//! Why a server did not start: what, where, and the exact key or command that would help.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use zeph_config::CommandServer;
use zeph_core::failure::one_line;
use zeph_core::id::ServerName;
use zeph_shell::program::{NOT_STARTED, ProgramFault};

/// Most lines of an error stream that are shown.
const LINES_MAX: usize = 12;

/// Most characters of one of them.
const LINE_CHARS_MAX: usize = 300;

/// Why a server did not start.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum LaunchError {
    /// A secret that it refers to is not stored.
    #[error(
        "the MCP server `{server}` gets `{used_for}` from the secret `{secret}`, which is not stored{}; `zeph-host secret set {secret}` stores it",
        because(problem.as_deref())
    )]
    Secret {
        /// The server.
        server: ServerName,
        /// The variable or the header.
        used_for: String,
        /// The secret.
        secret: String,
        /// Why no stored secret is used, if that is so.
        problem: Option<String>,
    },
    /// A variable of it would make the program load other code.
    #[error(
        "`{variable}` makes programs load other code than the one that is named, so it is not passed; remove it: from `mcp.servers.{server}.env`, or from `--env` of `zeph-host wrap` and `env` of the client's entry"
    )]
    Variable {
        /// The server.
        server: ServerName,
        /// The variable.
        variable: String,
    },
    /// No sandbox can be made.
    #[error(
        "this machine cannot run MCP servers in a sandbox ({missing}); `zeph-host doctor` tells how to get it, and `tools.sandbox.disabled = true` runs them without one"
    )]
    NoSandbox {
        /// What is missing.
        missing: String,
    },
    /// Its way out to hosts cannot be made.
    #[error("the way out to the hosts of the MCP server cannot be made: {0}")]
    Exit(String),
    /// A directory of the host cannot be made or used.
    #[error("{what} cannot be used: {}: {source}", path.display())]
    Directory {
        /// What for.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// Its command would install something, and is not understood.
    #[error("the MCP server `{server}`: {problem}")]
    Command {
        /// The server.
        server: ServerName,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// It could not be installed.
    #[error(
        "the MCP server `{server}` could not be installed: {problem}{}",
        lines(stderr)
    )]
    Install {
        /// The server.
        server: ServerName,
        /// What failed, and what to do.
        problem: String,
        /// The end of what the installer printed.
        stderr: String,
    },
    /// It was not started.
    #[error("the MCP server `{server}` was not started: {problem}")]
    NotStarted {
        /// The server.
        server: ServerName,
        /// Why, and what to do.
        problem: String,
    },
}

impl LaunchError {
    /// Of a program that the shell did not start.
    pub(super) fn of_program(
        name: &ServerName,
        server: &CommandServer,
        fault: &ProgramFault,
    ) -> Self {
        let program = one_line(&server.program, 100);
        let problem = match fault {
            ProgramFault::NotFound(_) => format!(
                "there is no program `{program}` on the search path; install it, or give its absolute path: in `mcp.servers.{name}.command`, or as the COMMAND of `zeph-host wrap`"
            ),
            ProgramFault::NotInJail(_) => not_in_sandbox(name, &program),
            ProgramFault::Directory(text) => format!(
                "{text}; list it in `mcp.servers.{name}.allow_read`, or set `mcp.servers.{name}.cwd`"
            ),
            ProgramFault::Jail(text) => {
                let key = format!("mcp.servers.{name}.hosts");
                let text = text.replace("tools.sandbox.allow_hosts", &key);
                text.replace("`allow_hosts`", "its `hosts`")
            }
        };
        Self::NotStarted {
            server: name.clone(),
            problem,
        }
    }
}

/// Why a server that was started never ran, in one sentence.
pub(super) fn of_fault(server: &ServerName, fault: &str) -> String {
    match is_not_started(fault) {
        true => not_in_sandbox(server, "the program"),
        false => format!("its sandbox cannot be used: {}", one_line(fault, 300)),
    }
}

/// Whether it is the program that could not be started.
pub(super) fn is_not_started(fault: &str) -> bool {
    fault.starts_with(NOT_STARTED)
}

fn not_in_sandbox(server: &ServerName, program: &str) -> String {
    format!(
        "{program} is not in its sandbox, or the interpreter that it names is not; list the directory it lies in in `mcp.servers.{server}.allow_read`"
    )
}

fn because(problem: Option<&str>) -> String {
    problem.map_or_else(String::new, |problem| format!(" ({problem})"))
}

/// The last lines, without what could speak to a terminal.
fn lines(stderr: &str) -> String {
    let all: Vec<&str> = stderr
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &all[all.len().saturating_sub(LINES_MAX)..];
    let shown = last
        .iter()
        .map(|line| format!("\n  | {}", one_line(line, LINE_CHARS_MAX)));
    shown.collect()
}
