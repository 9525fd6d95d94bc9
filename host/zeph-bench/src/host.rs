//! A running `zeph-host run` at the other end of two pipes, spoken to in JSON lines.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::program::{profile_dir, program};

/// Whether results are used again.
const RESULT_CACHE: &str = "ZEPH_TOOLS_RESULT_CACHE_ENABLED";

/// How to start the program under measurement, away from the user's own configuration, store and audit.
pub(crate) struct InstalledHost {
    path: PathBuf,
    home: PathBuf,
}

impl InstalledHost {
    /// The program at `path`, installed in a fresh home in the target folder.
    ///
    /// It is copied there as an installation does: how the file was written decides in which pieces its pages are kept in memory, and a program
    /// as the linker wrote it takes a third more processor time to start.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let home = profile_dir("bench-home")?;
        if home.exists() {
            std::fs::remove_dir_all(&home)
                .with_context(|| format!("cannot remove `{}`", home.display()))?;
        }
        let folder = home.join("bin");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create `{}`", folder.display()))?;
        let installed = folder.join("zeph-host");
        std::fs::copy(path, &installed)
            .with_context(|| format!("cannot install the program `{}`", path.display()))?;
        let path = installed
            .canonicalize()
            .with_context(|| format!("there is no program `{}`", installed.display()))?;
        Ok(Self { path, home })
    }

    /// Bytes of the program's file.
    pub(crate) fn bytes(&self) -> Result<u64> {
        let about = std::fs::metadata(&self.path);
        Ok(about
            .with_context(|| format!("cannot read `{}`", self.path.display()))?
            .len())
    }

    /// Where it keeps what it can make anew.
    pub(crate) fn cache(&self) -> PathBuf {
        self.home.join("cache/zeph-host")
    }

    /// The program, to be started in `directory`, which is also what its tools may touch.
    pub(crate) fn command(&self, directory: &Path) -> Command {
        let mut command = program(&self.path);
        command
            .arg("--no-project")
            .current_dir(directory)
            .env("HOME", &self.home);
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"ZEPH_") {
                command.env_remove(name);
            }
        }
        // What is measured is the work, not the memory of it.
        command.env(RESULT_CACHE, "false");
        for (variable, folder) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
        ] {
            command.env(variable, self.home.join(folder));
        }
        command
    }

    /// The same as `run` with results used again.
    pub(crate) fn run_cached(&self, directory: &Path) -> Result<Host> {
        let mut command = self.command(directory);
        command.env(RESULT_CACHE, "true").arg("run");
        self.start(command)
    }

    /// Starts `zeph-host run` with `args` in `directory`, waits until it answers, and returns it.
    pub(crate) fn run(&self, directory: &Path, args: &[&str]) -> Result<Host> {
        let mut command = self.command(directory);
        command.arg("run").args(args);
        self.start(command)
    }

    /// Starts a `command` that is a `zeph-host run`, waits until it answers, and returns it.
    pub(crate) fn start(&self, mut command: Command) -> Result<Host> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{}`", self.path.display()))?;
        let requests = child
            .stdin
            .take()
            .context("bug: standard input is a pipe")?;
        let answers = BufReader::new(
            child
                .stdout
                .take()
                .context("bug: standard output is a pipe")?,
        );
        let mut host = Host {
            child,
            requests: Some(requests),
            answers,
        };
        host.call("list_directory", &json!({"path": "."}))?;
        self.wait_for_compilers();
        Ok(host)
    }

    /// Waits until no component is compiled any more: calls do not wait for it, but it takes a processor.
    fn wait_for_compilers(&self) {
        let is_at_work = || {
            let files = std::fs::read_dir(self.cache()).into_iter().flatten();
            let mut names = files.flatten().map(|file| file.file_name());
            names.any(|name| name.as_encoded_bytes().ends_with(b".answer"))
        };
        let mut n_quiet = 0;
        // Between two components it is quiet for a moment.
        while n_quiet < 10 {
            n_quiet = if is_at_work() { 0 } else { n_quiet + 1 };
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The running program; ended when dropped.
pub(crate) struct Host {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Host {
    /// Makes one call and returns its answer with the time between writing the one and having read the other.
    pub(crate) fn call(&mut self, tool: &str, params: &Value) -> Result<(Value, Duration)> {
        let started = Instant::now();
        self.send(&format!(
            "{}\n",
            json!({"id": 0, "tool": tool, "params": params})
        ))?;
        let answer = read(&mut self.answers)?;
        Ok((answer, started.elapsed()))
    }

    /// Makes one call that has to fail, and returns the time until its answer.
    pub(crate) fn call_failing(&mut self, tool: &str, params: &Value) -> Result<Duration> {
        let started = Instant::now();
        self.send(&format!(
            "{}\n",
            json!({"id": 0, "tool": tool, "params": params})
        ))?;
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .context("cannot read an answer")?;
        let answer: Value = serde_json::from_str(&line).context("an answer is not JSON")?;
        if answer["status"] != "failed" {
            bail!("a call did not fail: {}", line.trim_end());
        }
        Ok(started.elapsed())
    }

    /// Makes the same call `n_calls` times, all of them written at once, and returns the time until the last answer.
    pub(crate) fn call_many(
        &mut self,
        n_calls: usize,
        tool: &str,
        params: &Value,
    ) -> Result<Duration> {
        let requests =
            format!("{}\n", json!({"id": 0, "tool": tool, "params": params})).repeat(n_calls);
        let mut pipe = self
            .requests
            .take()
            .context("bug: the pipe is open until the program ends")?;
        let answers = &mut self.answers;
        let started = Instant::now();
        // A program that is busy answering may stop reading, so nobody waits for the other here.
        let (pipe, took) = std::thread::scope(|scope| -> Result<_> {
            let writer = scope.spawn(move || pipe.write_all(requests.as_bytes()).map(|()| pipe));
            for _ in 0..n_calls {
                read(answers)?;
            }
            let took = started.elapsed();
            let written = writer.join().expect("bug: writing does not panic");
            Ok((written.context("cannot write the calls")?, took))
        })?;
        self.requests = Some(pipe);
        Ok(took)
    }

    /// What it says beside the answers, when that is a pipe; once.
    pub(crate) fn notes(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Resident memory in bytes, as the kernel counts it.
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        resident_bytes(&self.child)
    }

    /// The most it was so far.
    pub(crate) fn peak_bytes(&self) -> Result<u64> {
        status_bytes(&self.child, "VmHWM:")
    }

    fn send(&mut self, line: &str) -> Result<()> {
        let pipe = self
            .requests
            .as_mut()
            .context("bug: the pipe is open until the program ends")?;
        pipe.write_all(line.as_bytes())
            .context("cannot write a call")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Closing its input ends it; waiting keeps the next measurement quiet.
        drop(self.requests.take());
        drop(self.child.wait());
    }
}

/// Reads one answer; a call that did not succeed is an error, so that no failure passes for a fast call.
fn read(answers: &mut BufReader<ChildStdout>) -> Result<Value> {
    let mut line = String::new();
    answers
        .read_line(&mut line)
        .context("cannot read an answer")?;
    if line.is_empty() {
        bail!("the program ended without an answer");
    }
    let answer: Value = serde_json::from_str(&line).context("an answer is not JSON")?;
    if answer["status"] != "ok" {
        bail!("a call did not succeed: {}", line.trim_end());
    }
    Ok(answer)
}

/// Resident memory of a process in bytes, as the kernel counts it.
pub(crate) fn resident_bytes(process: &Child) -> Result<u64> {
    status_bytes(process, "VmRSS:")
}

fn status_bytes(process: &Child, field: &str) -> Result<u64> {
    let status = format!("/proc/{}/status", process.id());
    let text =
        std::fs::read_to_string(&status).with_context(|| format!("cannot read `{status}`"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.context("the kernel does not tell resident memory")? * 1024)
}
