//! The prompt on a terminal of its own, and what becomes of it when that goes away.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::product::Product;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the editor asks a terminal when it begins: where the cursor is.
const WHERE: &str = "\x1b[6n";

/// `zeph-host run` on a terminal that is not the controlling one of anybody: when it goes away no signal comes.
pub(crate) struct Prompt {
    child: Child,
    master: fs::File,
    shown: String,
}

impl Prompt {
    pub(crate) fn start(product: &Product) -> Self {
        Self::start_with(product, &["run"], "zeph")
    }

    /// Any command on such a terminal; it has begun when the terminal shows `words`.
    pub(crate) fn start_with(product: &Product, args: &[&str], words: &str) -> Self {
        let (child, master) = on_a_terminal(product.command(args));
        let mut prompt = Self {
            child,
            master,
            shown: String::new(),
        };
        prompt.until(words);
        prompt
    }

    /// Reads until the terminal shows `words`, and answers for the terminal meanwhile.
    pub(crate) fn until(&mut self, words: &str) {
        self.until_all(&[words]);
    }

    /// Reads until the terminal shows these words, one after the other.
    pub(crate) fn until_all(&mut self, words: &[&str]) {
        let are_in = |mut shown: &str| {
            words.iter().all(|words| match shown.split_once(words) {
                Some((_, rest)) => {
                    shown = rest;
                    true
                }
                None => false,
            })
        };
        let end = Instant::now() + PATIENCE;
        let mut n_answered = self.shown.matches(WHERE).count();
        while !are_in(&self.shown) {
            let left = end.saturating_duration_since(Instant::now());
            let mut watched = [PollFd::new(&self.master, PollFlags::IN)];
            let patience = Timespec::try_from(left).unwrap();
            let n_ready = poll(&mut watched, Some(&patience)).unwrap();
            assert!(n_ready > 0, "{words:?} never came: {}", self.shown);
            let mut bytes = [0; 4096];
            let n_bytes = self.master.read(&mut bytes).unwrap();
            self.shown
                .push_str(&String::from_utf8_lossy(&bytes[..n_bytes]));
            while n_answered < self.shown.matches(WHERE).count() {
                self.master.write_all(b"\x1b[1;1R").unwrap();
                n_answered += 1;
            }
        }
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        self.press(line.as_bytes());
        self.master.write_all(b"\r").unwrap();
    }

    /// Presses keys; what was shown before counts no more.
    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.shown.clear();
        self.master.write_all(keys).unwrap();
    }

    /// Sends the program `SIGINT`, as Ctrl-C does.
    pub(crate) fn interrupt(&mut self) {
        self.shown.clear();
        let process = Pid::from_child(&self.child);
        rustix::process::kill_process(process, Signal::INT).unwrap();
    }

    /// Waits for the program to end by itself.
    pub(crate) fn wait(self) -> Option<i32> {
        ended(self.child)
    }

    /// Sends the program `SIGTERM` and waits for it to end.
    pub(crate) fn terminate(self) -> Option<i32> {
        let process = Pid::from_child(&self.child);
        rustix::process::kill_process(process, Signal::TERM).unwrap();
        ended(self.child)
    }

    /// Closes the terminal and waits for the program to end.
    fn close(self) -> Option<i32> {
        drop(self.master);
        ended(self.child)
    }
}

/// Starts a command on a new terminal; the other end of it.
fn on_a_terminal(mut command: Command) -> (Child, fs::File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = || {
        let mut options = fs::File::options();
        options.read(true).write(true).open(&name).unwrap()
    };
    command
        .stdin(terminal())
        .stdout(terminal())
        .stderr(terminal());
    // The command holds our end of the terminal, which would keep it open; it goes with the function.
    (command.spawn().unwrap(), master.into())
}

/// Waits for a program to end.
fn ended(mut child: Child) -> Option<i32> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > end {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the program goes on");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process with this word in its command line is there.
fn is_running(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(word))
}

/// A time to sleep that no other process has.
fn mark(of: u32) -> String {
    format!("86400.{of}{}", std::process::id())
}

#[test]
fn a_prompt_whose_terminal_is_closed_ends() {
    let product = Product::new();
    let prompt = Prompt::start(&product);
    assert_eq!(prompt.close(), Some(129));
}

#[test]
fn a_lost_terminal_ends_what_runs_in_the_background() {
    let product = Product::new();
    let mut prompt = Prompt::start(&product);
    let mark = mark(1);
    prompt.type_line(&format!("bash background=true command='sleep {mark}'"));
    prompt.until("started run_id");
    assert_eq!(prompt.close(), Some(129));
    assert!(!is_running(&mark), "the background run is left");
}

#[test]
fn a_lost_terminal_ends_the_command_that_runs() {
    let product = Product::new();
    let mut prompt = Prompt::start(&product);
    let mark = mark(2);
    prompt.type_line(&format!("bash command='echo $((6*7)) runs; sleep {mark}'"));
    prompt.until("42 runs");
    assert_eq!(prompt.close(), Some(129));
    assert!(!is_running(&mark), "the command is left");
}

/// A shell on a terminal of its own. A job of it starts the arguments, and leaves them in the background when something is written to the pipe
/// `go`: the kernel answers every read of such a program with an error then, and sends no signal. The shell ends as the program does.
const ORPHAN: &str = r#"
cd "$0"
mkfifo go end
set -m
bash -c '(cd "$0"; "$@" < /dev/tty; echo $? > "$OLDPWD/end") & read -r _ < go' "$@"
set +m
read -r code < end
exit "$code"
"#;

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a shell leaves the program under test in the background"
)]
fn a_prompt_in_the_background_whose_shell_has_ended_ends() {
    let product = Product::new();
    let run = product.command(&["run"]);
    let pipes = tempfile::tempdir().unwrap();
    let mut shell = Command::new("setsid");
    shell
        .args(["--ctty", "bash", "-c", ORPHAN])
        .arg(pipes.path())
        .arg(&product.work)
        .arg(run.get_program())
        .args(run.get_args());
    shell.env_clear().env("PATH", "/usr/bin:/bin");
    let set = |(name, value): (_, Option<_>)| Some((name, value?));
    shell.envs(run.get_envs().filter_map(set));
    let (child, master) = on_a_terminal(shell);
    let mut prompt = Prompt {
        child,
        master,
        shown: String::new(),
    };
    prompt.until("zeph");
    fs::write(pipes.path().join("go"), "now\n").unwrap();
    assert_eq!(ended(prompt.child), Some(129));
}

#[test]
fn a_prompt_that_is_left_with_ctrl_d_is_a_success() {
    let product = Product::new();
    let mut prompt = Prompt::start(&product);
    prompt.shown.clear();
    prompt.master.write_all(b"\x04").unwrap();
    assert_eq!(prompt.child.wait().unwrap().code(), Some(0));
}
