//! A program under test that is asked one command at a time, by a user, in a workspace made for it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, lchown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::world::World;
use crate::product::Product;

/// What stands wherever a command may not read, and so in no answer.
pub(super) const SECRET: &str = "canary-secret-5f1e";

/// The ordinary user: owns nothing on a usual machine.
const NOBODY: u32 = 65_534;

/// Longer than any command of these tables may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Who runs the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    Root,
    Plain,
    /// The user who runs the tests, not root.
    Own,
}

/// `tools.sandbox.allow_network`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    Off,
    On,
}

/// A way to run the program.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) user: User,
    pub(super) network: Network,
    /// `KEY=VALUE` of the configuration, besides.
    keys: Vec<String>,
}

impl Setting {
    pub(super) fn new(user: User, network: Network) -> Self {
        Self {
            user,
            network,
            keys: Vec::new(),
        }
    }

    pub(super) fn with(mut self, key: &str) -> Self {
        self.keys.push(key.to_owned());
        self
    }
}

/// A workspace with its surroundings, and the program running in it.
pub(super) struct Bench {
    pub(super) setting: Setting,
    pub(super) product: Product,
    pub(super) world: World,
    running: Option<Running>,
    n_calls: u64,
}

struct Running {
    child: Child,
    stdin: ChildStdin,
    answers: Receiver<String>,
}

/// What a call came back with.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: String,
    pub(super) text: String,
    pub(super) whole: Value,
}

impl Bench {
    /// A workspace with a repository in it, secrets in the home, and things outside that nobody may touch.
    pub(super) fn new(setting: Setting) -> Self {
        let product = Product::new();
        let top = product.work.parent().unwrap().to_path_buf();
        fs::set_permissions(&top, fs::Permissions::from_mode(0o755)).unwrap();
        let world = World::new(&top, &product.work, &product.home);
        let bench = Self {
            setting,
            product,
            world,
            running: None,
            n_calls: 0,
        };
        bench.own_everything();
        bench.outside_jail(super::world::REPOSITORY);
        bench
    }

    /// Runs a shell script as the user, without any jail, to prepare something.
    #[expect(
        clippy::disallowed_methods,
        reason = "preparations are not what is tested"
    )]
    pub(super) fn outside_jail(&self, script: &str) -> String {
        let mut command = Command::new("/bin/bash");
        command
            .args(["-euc", &self.filled(script)])
            .current_dir(&self.product.work)
            .env_clear()
            .env("HOME", self.product.work.parent().unwrap())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        self.become_user(&mut command);
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {told}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Everything in the temporary directory belongs to the user.
    pub(super) fn own_everything(&self) {
        if self.setting.user == User::Plain {
            give(self.product.work.parent().unwrap());
        }
    }

    /// Makes the call without waiting for its answer. Starts the program first when it is not running.
    pub(super) fn send(&mut self, tool: &str, params: Value) -> String {
        if self.running.is_none() {
            self.running = Some(self.start());
        }
        self.n_calls += 1;
        let line = json!({"id": self.n_calls, "tool": tool, "params": params}).to_string() + "\n";
        let running = self.running.as_mut().unwrap();
        running.stdin.write_all(line.as_bytes()).unwrap();
        line
    }

    /// Makes the call and returns its answer.
    pub(super) fn call(&mut self, tool: &str, params: Value) -> Answer {
        let line = self.send(tool, params);
        let (answer, whole) = loop {
            let running = self.running.as_mut().unwrap();
            let answer = running.answers.recv_timeout(PATIENCE);
            let answer = answer.unwrap_or_else(|_| panic!("no answer to {line}"));
            let whole: Value = serde_json::from_str(&answer).unwrap();
            // What ended in the background is told in between.
            if whole["role"].is_null() {
                break (answer, whole);
            }
        };
        assert_eq!(whole["id"], self.n_calls, "{whole}");
        assert!(
            !answer.contains(SECRET),
            "{line} read what it must not: {answer}"
        );
        Answer {
            status: whole["status"].as_str().unwrap_or_default().to_owned(),
            text: whole["text"].as_str().unwrap_or_default().to_owned(),
            whole,
        }
    }

    /// Runs a command with half a minute.
    pub(super) fn bash(&mut self, command: &str) -> Answer {
        self.bash_for(command, 30)
    }

    /// Runs a command with so many seconds.
    pub(super) fn bash_for(&mut self, command: &str, seconds: u64) -> Answer {
        let command = self.filled(command);
        self.call("bash", json!({"command": command, "timeout": seconds}))
    }

    /// Fails unless a whole jail stands around commands: attacks are made in one only.
    #[track_caller]
    pub(super) fn is_jailed(&mut self) {
        let look = "readlink /proc/self/ns/pid /proc/self/ns/mnt /proc/self/ns/user; grep NoNewPrivs /proc/self/status; \
                    test -e {out}/canary && echo bare; echo looked";
        let answer = self.bash(look);
        let own =
            ["pid", "mnt", "user"].map(|it| fs::read_link(format!("/proc/self/ns/{it}")).unwrap());
        let shares = own
            .iter()
            .any(|it| answer.text.contains(it.to_str().unwrap()));
        let is_whole = answer.text.contains("NoNewPrivs:\t1") && answer.text.contains("looked");
        assert!(
            is_whole && !shares && !answer.text.contains("bare"),
            "no whole jail stands here, so nothing is tried: {answer:?}"
        );
    }

    /// The next command runs as if nothing had been.
    #[track_caller]
    pub(super) fn lives(&mut self, after: &str) {
        let answer = self.bash("echo al''ive");
        assert!(answer.text.contains("alive"), "after {after}: {answer:?}");
    }

    /// Ends the program as a client does that closes its side.
    pub(super) fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.end();
        }
    }

    /// Kills the program.
    pub(super) fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.child.kill().unwrap();
            running.child.wait().unwrap();
        }
    }

    /// The id of the program's process.
    pub(super) fn pid(&self) -> u32 {
        self.running
            .as_ref()
            .map_or(0, |running| running.child.id())
    }

    /// The script with the names of places filled in.
    fn filled(&self, script: &str) -> String {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let world = &self.world;
        [
            ("{out}", text(&world.outside)),
            ("{home}", text(&self.product.home)),
            ("{work}", text(&self.product.work)),
            ("{port}", world.port().to_string()),
            ("{port6}", world.port6().to_string()),
            ("{abstract}", world.abstract_name.clone()),
            ("{token}", world.token.clone()),
            ("{victim}", world.victim().to_string()),
            ("{host}", self.pid().to_string()),
        ]
        .into_iter()
        .fold(script.to_owned(), |script, (name, value)| {
            script.replace(name, &value)
        })
    }

    fn start(&self) -> Running {
        let network = match self.setting.network {
            Network::Off => "tools.sandbox.allow_network=false",
            Network::On => "tools.sandbox.allow_network=true",
        };
        let mut args = vec!["run", "--jobs", "1", "--allow", "*", "--set", network];
        // The jail is what is tested here, not the rules before it.
        args.extend(["--set", "tools.shell.blocked_commands=[]"]);
        args.extend(["--set", "tools.shell.confirm_patterns=[]"]);
        args.extend(["--set", "tools.governance.flow=\"off\""]);
        for key in &self.setting.keys {
            args.extend(["--set", key]);
        }
        let mut command = self.product.command(&args);
        command
            .env("PATH", self.world.path())
            .env("ZEPH_ENGINE_CACHE_DIR", self.cache())
            .env("API_TOKEN", SECRET)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .env("SOME_NAME", SECRET)
            .env("SSH_AUTH_SOCK", self.world.outside.join("daemon.sock"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        self.become_user(&mut command);
        let mut child = command.spawn().unwrap();
        let (send, answers) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Running {
            stdin: child.stdin.take().unwrap(),
            child,
            answers,
        }
    }

    /// Compiled components, shared by all tests of one user. Not below the home, which is compared.
    fn cache(&self) -> PathBuf {
        let name = match self.setting.user {
            User::Plain => "components-of-nobody",
            User::Root | User::Own => "components",
        };
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&cache).unwrap();
        if self.setting.user == User::Plain {
            lchown(&cache, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        cache
    }

    fn become_user(&self, command: &mut Command) {
        if self.setting.user == User::Plain {
            command.uid(NOBODY).gid(NOBODY);
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.end();
    }
}

impl Running {
    fn end(mut self) {
        drop(self.stdin);
        self.child.wait().unwrap();
    }
}

fn give(path: &Path) {
    lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}
