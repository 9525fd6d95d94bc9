//! The prompt on a terminal of its own, and what becomes of it when that goes away.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

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
        Self::run(product.command(args), None, words)
    }

    /// A command on such a terminal, which has this many columns and rows, or does not say.
    pub(crate) fn run(command: Command, size: Option<(u16, u16)>, words: &str) -> Self {
        let (child, master) = on_a_terminal(command, size);
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
        while !are_in(&self.shown) {
            let has_come = self.read(end.saturating_duration_since(Instant::now()));
            assert!(has_come, "{words:?} never came: {}", self.shown);
        }
    }

    /// Has a full screen drawn anew until it holds these words, anywhere: of one that changes only what differs is drawn.
    pub(crate) fn redraw_until(&mut self, words: &[&str]) {
        let end = Instant::now() + PATIENCE;
        while !words.iter().all(|word| self.shown.contains(word)) {
            assert!(Instant::now() < end, "{words:?} never came: {}", self.shown);
            self.press(b"\x0c");
            while self.read(Duration::from_millis(200)) {}
        }
    }

    /// Reads what comes within this time, and answers for the terminal; whether something came.
    pub(crate) fn read(&mut self, patience: Duration) -> bool {
        let mut watched = [PollFd::new(&self.master, PollFlags::IN)];
        let patience = Timespec::try_from(patience).unwrap();
        if poll(&mut watched, Some(&patience)).unwrap() == 0 {
            return false;
        }
        let n_answered = self.shown.matches(WHERE).count();
        let mut bytes = [0; 4096];
        let n_bytes = self.master.read(&mut bytes).unwrap();
        self.shown
            .push_str(&String::from_utf8_lossy(&bytes[..n_bytes]));
        for _ in n_answered..self.shown.matches(WHERE).count() {
            self.master.write_all(b"\x1b[1;1R").unwrap();
        }
        true
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

    /// What it shows since the last keys.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Gives the terminal a size. It is not the controlling one of the program, which hears of it when it looks.
    pub(crate) fn resize(&self, ws_col: u16, ws_row: u16) {
        set_size(&self.master, ws_col, ws_row);
    }

    /// Sends the program `SIGINT`, as Ctrl-C does.
    pub(crate) fn interrupt(&mut self) {
        self.signal(Signal::INT);
    }

    /// Sends the program a signal; what was shown before counts no more.
    pub(crate) fn signal(&mut self, signal: Signal) {
        self.shown.clear();
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the program is stopped.
    pub(crate) fn until_stopped(&self) {
        let stat = format!("/proc/{}/stat", self.child.id());
        let end = Instant::now() + PATIENCE;
        let is_stopped = || {
            let stat = fs::read_to_string(&stat).unwrap();
            stat.rsplit(')')
                .next()
                .unwrap()
                .trim_start()
                .starts_with('T')
        };
        while !is_stopped() {
            assert!(Instant::now() < end, "it goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
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
    pub(crate) fn close(self) -> Option<i32> {
        drop(self.master);
        ended(self.child)
    }
}

fn set_size(master: &fs::File, ws_col: u16, ws_row: u16) {
    let size = Winsize {
        ws_row,
        ws_col,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(master, size).unwrap();
}

/// Starts a command on a new terminal; the other end of it.
fn on_a_terminal(mut command: Command, size: Option<(u16, u16)>) -> (Child, fs::File) {
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
    let master = fs::File::from(master);
    if let Some((ws_col, ws_row)) = size {
        set_size(&master, ws_col, ws_row);
    }
    // The command holds our end of the terminal, which would keep it open; it goes with the function.
    (command.spawn().unwrap(), master)
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
fn what_runs_in_the_background_is_asked_to_end_with_the_program() {
    let product = Product::new();
    let mut prompt = Prompt::start(&product);
    let work =
        r#"trap "echo asked > end; exit" TERM; echo there > begin; while :; do sleep 0.05; done"#;
    prompt.type_line(&format!("bash background=true command='{work}'"));
    prompt.until("started run_id");
    let begin = product.work.join("begin");
    let patience = Instant::now() + PATIENCE;
    while !begin.exists() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(prompt.close(), Some(129));
    assert_eq!(
        fs::read_to_string(product.work.join("end")).unwrap(),
        "asked\n"
    );
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
    let (child, master) = on_a_terminal(shell, None);
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

#[test]
fn lines_typed_while_a_command_runs_are_run_after_it() {
    let product = Product::new();
    let mut prompt = Prompt::start(&product);
    prompt.type_line("bash command='echo $((6*7)) runs; until test -e go; do sleep 0.05; done'");
    prompt.until("42 runs");
    prompt.press(
        b"bash command='echo $((7*7)) second'\rwrite {\"path\": \"a\",\r\"content\": \"b\"}\r",
    );
    prompt.press(b"bash command='echo $((8*8)) third'\r/quit\r");
    product.file("go", "");
    prompt.until_all(&["49 second", "64 third"]);
    assert_eq!(prompt.wait(), Some(0));
    assert_eq!(product.read("a"), "b");
}

#[test]
fn ctrl_z_stops_the_prompt_and_keeps_the_line() {
    use std::os::unix::process::CommandExt as _;

    let product = Product::new();
    let mut command = product.command(&["run"]);
    // A job of its own: the test is not stopped with it.
    command.process_group(0);
    let mut prompt = Prompt::run(command, Some((80, 24)), "zeph> ");
    prompt.press(b"bash command='echo ");
    prompt.until("echo ");
    prompt.press(b"\x1a");
    prompt.until_stopped();
    prompt.signal(Signal::CONT);
    prompt.until("echo ");
    prompt.type_line("$((6*7)) goes on'");
    prompt.until("42 goes on");
    prompt.type_line("/quit");
    assert_eq!(prompt.wait(), Some(0));
}

/// The line editor takes all that comes in one piece, and returns at the first of it that ends a line.
#[test]
fn what_comes_in_one_piece_is_all_used() {
    let product = Product::new();
    let mut prompt = Prompt::start(&product);
    prompt
        .press(b"\x1b[200~bash command=\"echo fir''st\"\rbash command=\"echo sec''ond\"\x1b[201~");
    prompt.press(b"\r");
    prompt.until_all(&["first", "second"]);
    prompt.press(b"ls\x03bash command=\"echo thi''rd\"\r");
    prompt.until("third");
    prompt.press(b"ls\x03\x04");
    assert_eq!(prompt.wait(), Some(0));
}

#[test]
fn ctrl_c_forgets_the_lines_that_were_typed_ahead() {
    let product = Product::new();
    let mut prompt = Prompt::start(&product);
    let wait = "until test -e go; do sleep 0.05; done";
    prompt.type_line(&format!("bash command='echo $((6*7)) runs; {wait}'"));
    prompt.until("42 runs");
    prompt.press(
        format!("bash command='echo $((7*7)) runs; rm go; {wait}'\rwrite path=a content=b\r")
            .as_bytes(),
    );
    product.file("go", "");
    prompt.until("49 runs");
    prompt.interrupt();
    prompt.until_all(&["cancelled", "zeph"]);
    prompt.type_line("/quit");
    assert_eq!(prompt.wait(), Some(0));
    assert!(!product.work.join("a").exists());
}

#[test]
fn the_prompt_drives_no_plain_terminal() {
    let product = Product::new();
    let mut command = product.command(&["run"]);
    command.env("NO_COLOR", "1").env("TERM", "dumb");
    let mut prompt = Prompt::run(command, Some((80, 24)), "zeph> ");
    prompt.type_line("write {\"path\": \"a\",");
    prompt.until("… ");
    prompt.type_line("\"content\": \"b\"}");
    prompt.until_all(&["write", "zeph> "]);
    assert!(!prompt.shown().contains('\u{1b}'), "{:?}", prompt.shown());
    assert_eq!(product.read("a"), "b");
    assert_eq!(prompt.terminate(), Some(143));
}

#[test]
fn a_prompt_that_cannot_be_shown_is_refused() {
    let product = Product::new();
    let log = product.work.join("log");
    let (shell, log) = (product.command(&["run"]), log.display().to_string());
    let mut redirected = in_shell(&shell, r#""$0" "$@" 2>"$LOG"; echo "exit $?""#);
    redirected.env("LOG", log);
    Prompt::run(redirected, None, "exit 2");
    let log = product.read("log");
    assert!(log.contains("--jsonl"), "{log}");
}

/// A command as a script of a shell has it: `"$0" "$@"`.
#[expect(
    clippy::disallowed_methods,
    reason = "a shell redirects the streams of the program under test"
)]
fn in_shell(command: &Command, script: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(command.get_program());
    shell.args(command.get_args());
    shell.env_clear().env("PATH", "/usr/bin:/bin");
    let set = |(name, value): (_, Option<_>)| Some((name, value?));
    shell.envs(command.get_envs().filter_map(set));
    shell.current_dir(command.get_current_dir().unwrap());
    shell
}

/// A program's call that waits, of a tool that makes the file `a`.
fn with_waiting_call() -> Product {
    let product = Product::new();
    let line = r#"{"tool": "write", "params": {"path": "a", "content": "b"}}"#;
    let ran = product.feed(&[], line);
    assert!(
        ran.stdout.contains("confirmation_required"),
        "{}",
        ran.stdout
    );
    product
}

#[test]
fn what_was_typed_with_the_question_for_it_approves_no_waiting_call() {
    let product = with_waiting_call();
    let mut prompt = Prompt::start(&product);
    prompt.press(b"/approve\ra\r");
    prompt.until("Let it run");
    prompt.type_line("n");
    prompt.until_all(&["enied", "zeph"]);
    prompt.type_line("/quit");
    assert_eq!(prompt.wait(), Some(0));
}

#[test]
fn what_was_typed_before_a_question_is_no_answer_on_the_command_line() {
    let product = with_waiting_call();
    let approve = product.command(&["approve", "--last"]);
    let script = r#"echo typing; until test -e go; do sleep 0.05; done; "$0" "$@"; echo "exit $?""#;
    let mut prompt = Prompt::run(in_shell(&approve, script), None, "typing");
    prompt.press(b"y\ry\r");
    product.file("go", "");
    prompt.until("[y/N] ");
    prompt.press(b"\n");
    prompt.until("exit ");
    let approvals = product.run(&["approve"]);
    assert!(
        !approvals.stdout.contains("APPROVED"),
        "{}",
        approvals.stdout
    );
}
