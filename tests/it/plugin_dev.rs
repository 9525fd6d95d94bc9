//! `zeph-host plugin dev` at work on a project whose build is a copy.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::plugin_cli::{WANTS, WANTS_MORE, wanting};
use crate::product::{Product, Ran};

/// How long anything may take on a machine that is busy with other tests and compiles a component meanwhile.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where the programs of this machine are.
const PROGRAMS: &str = "/usr/local/bin:/usr/bin:/bin";

/// The running command, with what it says on both streams.
struct Dev {
    child: Child,
    lines: Receiver<String>,
}

impl Dev {
    fn start(product: &Product, words: &[&str]) -> Self {
        let mut all = vec!["plugin", "dev"];
        all.extend(words);
        let mut command = product.command(&all);
        // Make, and what the recipes call.
        command.env("PATH", PROGRAMS);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        pass_on(child.stdout.take().unwrap(), sender.clone());
        pass_on(child.stderr.take().unwrap(), sender);
        Self { child, lines }
    }

    /// Waits for the next line that has all `words`.
    fn says(&self, words: &[&str]) {
        let deadline = Instant::now() + PATIENCE;
        let mut said = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if words.iter().all(|word| line.contains(word)) => return,
                Ok(line) => said.push(line),
                Err(error) => panic!("nothing says {words:?}: {error}; {said:#?}"),
            }
        }
    }

    /// Ctrl-C.
    fn interrupt(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn pass_on(stream: impl Read + Send + 'static, sender: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
}

/// A project that is built by copying `source`.
fn project() -> Product {
    let product = Product::new();
    product.file(
        "made/Makefile",
        "all:\n\tmkdir -p dist\n\tcp source dist/made.wasm\n",
    );
    product.file("made/source", wanting(""));
    product
}

#[test]
fn each_change_is_built_and_held_to_the_pin() {
    let product = project();
    let installed = product.plugins().join("made.wasm");
    let dev = Dev::start(&product, &["made"]);
    dev.says(&["plugin `made` built in", "it is active"]);
    assert_eq!(fs::read(&installed).unwrap(), wanting(""));

    product.file("made/source", wanting(WANTS));
    dev.says(&[
        "it is off until `zeph-host plugin approve made`",
        "--approve",
    ]);
    assert_eq!(fs::read(&installed).unwrap(), wanting(WANTS));

    let warns = "all:\n\techo 'warning: unused' >&2\n\tcp source dist/made.wasm\n";
    product.file("made/Makefile", warns);
    dev.says(&["warning: unused"]);
    dev.says(&["plugin `made` built in"]);

    // Neither what cannot be loaded nor what cannot be built takes its place.
    product.file("made/source", "no component at all");
    dev.says(&["error", "holds no component"]);
    product.file("made/source", b"\0asm\x0d\0\x01\0 and nothing more");
    dev.says(&["error", "made.wasm"]);
    product.file("made/Makefile", "all:\n\t@echo the tool says why; exit 7\n");
    dev.says(&["the tool says why"]);
    dev.says(&["error", "`make` failed"]);
    assert_eq!(fs::read(&installed).unwrap(), wanting(WANTS));

    assert_eq!(dev.interrupt(), Some(0));
}

#[test]
fn changes_are_approved_where_that_is_wanted() {
    let product = project();
    let dev = Dev::start(&product, &["made", "--approve"]);
    dev.says(&["it is active"]);
    for manifest in [WANTS, WANTS_MORE] {
        product.file("made/source", wanting(manifest));
        dev.says(&["the change is approved"]);
    }
    assert_eq!(dev.interrupt(), Some(0));
    let approved = product.plugin(&["approve", "made", "--yes"]);
    assert!(
        approved.stdout.contains("there is nothing to approve"),
        "{approved:?}"
    );
}

/// Nobody has signed what was built a moment ago, and a signature that is left is of another build.
#[test]
fn unsigned_builds_are_approved_where_that_is_wanted() {
    let product = project();
    let config = product.home.join(".config/zeph-host");
    fs::create_dir_all(&config).unwrap();
    let ask = "[plugins.trust]\nunsigned = \"ask\"\n";
    fs::write(config.join("config.toml"), ask).unwrap();
    let left = product.plugins().join("made.wasm.minisig");
    fs::create_dir_all(product.plugins()).unwrap();
    fs::write(&left, "of another build").unwrap();
    product.file("made/dist/made.wasm.minisig", "of another build");
    let dev = Dev::start(&product, &["made", "--approve"]);
    dev.says(&["it is approved"]);
    assert!(!left.exists());
    product.file("made/source", wanting(WANTS));
    dev.says(&["the change is approved"]);
    assert_eq!(dev.interrupt(), Some(0));
}

#[test]
fn a_folder_that_is_no_project() {
    let product = Product::new();
    product.file("made/notes.txt", "");
    product.refuses(
        &["dev", "made"],
        2,
        &["is not a plugin project", "`Cargo.toml`", "plugin new"],
    );
}

/// Cargo says where it puts a component, whatever told it to; here a variable that many projects share.
#[test]
fn a_component_is_found_where_cargo_puts_it() {
    let product = Product::new();
    product
        .file(
            "my-plugin/Cargo.toml",
            "[package]\nname = \"my-plugin\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
             [lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n",
        )
        .file("my-plugin/src/lib.rs", "");
    let cargo = Path::new(env!("CARGO")).parent().unwrap();
    let programs = format!("{}:{PROGRAMS}", cargo.display());
    let elsewhere = product.home.join("elsewhere");
    let command = |words: &[&str]| {
        let mut command = product.command(words);
        command
            .env("PATH", &programs)
            .env("CARGO_TARGET_DIR", &elsewhere);
        command
    };
    let made = elsewhere.join("wasm32-wasip2/release/my_plugin.wasm");
    let made = made.to_str().unwrap();
    // It has no tools; that this is said of it shows that it was found.
    let dev = Dev::spawn(command(&["plugin", "dev", "my-plugin"]));
    dev.says(&["error", made, "cannot be used"]);
    assert_eq!(dev.interrupt(), Some(0));

    let other = elsewhere.join("wasm32-wasip2/release/other.wasm");
    fs::copy(made, other).unwrap();
    let checked = command(&["plugin", "check", "my-plugin", "--json"]).output();
    let checked = Ran::from(checked.unwrap());
    assert_eq!(checked.json()["file"], made, "{checked:?}");
    let added = command(&["plugin", "add", "my-plugin"]).output().unwrap();
    let said = String::from_utf8_lossy(&added.stderr).into_owned();
    assert!(said.contains(made), "{said}");
}
