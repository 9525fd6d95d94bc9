//! The program under test, in a directory of its own with all its state.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

/// A workspace with some files, and a home for the program's state beside it.
pub(crate) struct Product {
    _dir: tempfile::TempDir,
    pub(crate) work: PathBuf,
    pub(crate) home: PathBuf,
}

impl Product {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (work, home) = (base.join("work"), base.join("home"));
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(&home).unwrap();
        Self {
            _dir: dir,
            work,
            home,
        }
    }

    /// Writes the configuration file of the user.
    pub(crate) fn user_config(&self, text: impl AsRef<[u8]>) -> &Self {
        let folder = self.home.join(".config/zeph-host");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), text).unwrap();
        self
    }

    /// Writes a file of the workspace, with its directories.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.work.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.work.join(path)).unwrap()
    }

    /// The program with `args`, in the workspace. Compiled components are shared by all tests: they are the same.
    #[expect(
        clippy::disallowed_methods,
        reason = "the tests start the program they test"
    )]
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zeph-host-under-test"));
        command
            .args(args)
            .current_dir(&self.work)
            .env_clear()
            .env("HOME", &self.home)
            .env("ZEPH_ENGINE_CACHE_DIR", cache_dir());
        // The keychain is the user's, whatever the variables say.
        if cfg!(target_os = "macos") {
            command.env("ZEPH_STORE_KEYRING", "false");
        }
        command
    }

    /// Runs to the end without input.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    /// Feeds `input` to `zeph-host run` with `args` and reads the answers. Each agrees with the schema, whatever the test.
    pub(crate) fn answers(&self, args: &[&str], input: impl AsRef<[u8]>) -> Vec<Value> {
        let ran = self.feed(args, input);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let answers = ran.json_lines();
        answers
            .iter()
            .for_each(|line| agrees_with_schema("answer", line));
        answers
    }

    /// The same, with everything the program said.
    pub(crate) fn feed(&self, args: &[&str], input: impl AsRef<[u8]>) -> Ran {
        let mut child = self.start(args);
        let mut stdin = child.stdin.take().unwrap();
        let input = input.as_ref().to_vec();
        let writer = std::thread::spawn(move || {
            // A program that refuses to start closes its end first.
            drop(stdin.write_all(&input));
        });
        let ran = Ran::from(child.wait_with_output().unwrap());
        writer.join().unwrap();
        ran
    }

    /// Starts `zeph-host run` with `args`, everything piped.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        let mut all = vec!["run"];
        all.extend(args);
        self.command(&all)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// One call over JSON lines that may do everything.
    pub(crate) fn call(&self, tool: &str, params: Value) -> Value {
        let line = serde_json::json!({"id": 1, "tool": tool, "params": params}).to_string();
        let mut answers = self.answers(&["--allow", "*"], line + "\n");
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.remove(0)
    }
}

/// Where the components are that the tests have compiled.
pub(crate) fn cache_dir() -> &'static Path {
    Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/components"))
}

/// Holds a JSON line, a `request` or an `answer`, against the schema that is published.
pub(crate) fn agrees_with_schema(direction: &str, line: &Value) {
    static SCHEMAS: LazyLock<[Validator; 2]> = LazyLock::new(|| {
        let texts = [
            include_str!("../../host/zeph-host/schema/request.json"),
            include_str!("../../host/zeph-host/schema/answer.json"),
        ];
        texts.map(|text| jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap())
    });
    let [request, answer] = &*SCHEMAS;
    let schema = if direction == "request" {
        request
    } else {
        answer
    };
    assert!(
        schema.is_valid(line),
        "not in the schema of {direction} lines: {line}"
    );
}

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let parse =
            |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.stdout.lines().map(parse).collect()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        }
    }
}

/// The answer with this id.
pub(crate) fn answer(answers: &[Value], id: impl Into<Value>) -> &Value {
    let id = id.into();
    let found = answers.iter().find(|answer| answer["id"] == id);
    found.unwrap_or_else(|| panic!("no answer {id} in {answers:#?}"))
}
