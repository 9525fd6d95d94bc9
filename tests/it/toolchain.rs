//! Projects as `plugin new` writes them, built by the languages' own tools.
//!
//! Each language has one project folder under `target/toolchains`, where its tools stay installed: only the first build of a
//! clone downloads anything. What was built is kept by a digest of the project's files, so that tests share it.
//! JavaScript, Python and C take a minute and the package registries: they are built when `ZEPH_SLOW_TESTS=1`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::left_out::leave_out;
use crate::product::Product;

/// The languages there are templates for.
pub(crate) const LANGUAGES: [&str; 4] = ["rust", "js", "python", "c"];

/// The languages there are templates of filter strategies for, as the functions here take them.
pub(crate) const FILTERS: [&str; 3] = ["rust_filter", "js_filter", "python_filter"];

/// Longest time of one command. Installing everything on a busy machine takes a few minutes.
const COMMAND_MAX: Duration = Duration::from_secs(900);

/// A change to a project before it is built: in the file, the first text becomes the second.
pub(crate) type Edit<'a> = (&'a str, &'a str, &'a str);

/// The name of the language's project: its component is `NAME.wasm`.
pub(crate) fn name(language: &str) -> String {
    format!("count_{language}")
}

/// The component of the language's template. None, with a line that says so, when its tools are not to be used.
pub(crate) fn built(language: &str) -> Option<PathBuf> {
    built_with(language, &[])
}

/// The same, changed: what an author's next version would be.
pub(crate) fn built_with(language: &str, edits: &[Edit]) -> Option<PathBuf> {
    let project = Project::open(language, edits)?;
    let kept = project.kept();
    if !kept.exists() {
        project.build();
        // Renamed into place, so that a test that is ended half-way leaves no half of a component.
        let part = kept.with_extension("part");
        fs::copy(project.component(), &part).unwrap();
        fs::rename(&part, &kept).unwrap();
    }
    Some(kept)
}

/// Runs the tests that a project comes with. False, with a line that says so, when its tools are not to be used.
pub(crate) fn tested(language: &str) -> bool {
    let Some(project) = Project::open(language, &[]) else {
        return false;
    };
    project.install();
    let is_test = |command: &&String| command.contains("test");
    let command = project.commands.iter().find(is_test);
    project.run(command.unwrap());
    true
}

/// The files of a new project and the commands to go on with, as `plugin new` gives them.
pub(crate) fn new_project(language: &str) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    let product = Product::new();
    let name = name(language);
    let (lang, is_filter) = match language.split_once('_') {
        Some((lang, _filter)) => (lang, true),
        None => (language, false),
    };
    let mut words = vec!["plugin", "new", "--lang", lang, &name, "--json"];
    words.extend(is_filter.then_some("--filter"));
    let ran = product.run(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said: Value = serde_json::from_str(&ran.stdout).unwrap();
    let strings = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    let read = |path: String| {
        let bytes = fs::read(product.work.join(&name).join(&path)).unwrap();
        (path, bytes)
    };
    let files = strings(&said["files"]).into_iter().map(read).collect();
    (files, strings(&said["next"]))
}

/// One language's folder, held by one test at a time.
struct Project {
    language: String,
    files: BTreeMap<String, Vec<u8>>,
    commands: Vec<String>,
    folder: PathBuf,
    _lock: File,
}

impl Project {
    fn open(language: &str, edits: &[Edit]) -> Option<Self> {
        if !is_rust(language) && !slow_tests(&format!("{language} is built")) {
            return None;
        }
        let (mut files, commands) = new_project(language);
        for (path, from, to) in edits {
            let bytes = files.get_mut(*path).unwrap();
            let text = String::from_utf8(bytes.clone()).unwrap();
            assert!(text.contains(from), "{path} does not say {from:?}");
            *bytes = text.replace(from, to).into_bytes();
        }
        if is_rust(language) {
            // The versions of the workspace are on this machine: nothing is downloaded.
            let lock = include_str!("../../Cargo.lock");
            files.insert("Cargo.lock".to_owned(), lock.into());
        }
        let folder = toolchains().join(language);
        fs::create_dir_all(&folder).unwrap();
        let lock = File::create(toolchains().join(format!("{language}.lock"))).unwrap();
        lock.lock().unwrap();
        let project = Self {
            language: language.to_owned(),
            files,
            commands,
            folder,
            _lock: lock,
        };
        project.write();
        Some(project)
    }

    /// Writes what differs only: make and cargo go by the time of a change.
    fn write(&self) {
        for (path, bytes) in &self.files {
            let path = self.folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            // Cargo takes out of the lock file what the project does not need.
            let is_own = path.ends_with("Cargo.lock") && path.exists();
            if !is_own && fs::read(&path).ok().as_ref() != Some(bytes) {
                fs::write(&path, bytes).unwrap();
            }
        }
    }

    /// What else a build needs and does not fetch itself.
    fn install(&self) {
        let has_modules = self.folder.join("node_modules/.package-lock.json").exists();
        if self.language.starts_with("js") && !has_modules {
            self.run("npm install --no-fund --no-audit");
        }
    }

    fn build(&self) {
        self.install();
        let is_build = |command: &&String| command.contains("build") || *command == "make";
        let command = self.commands.iter().find(is_build);
        self.run(command.unwrap());
    }

    /// Where the language's tools leave it; the last command adds it.
    fn component(&self) -> PathBuf {
        let name = name(&self.language);
        match is_rust(&self.language) {
            true => rust_target().join(format!("wasm32-wasip2/release/{name}.wasm")),
            false => self.folder.join(format!("dist/{name}.wasm")),
        }
    }

    fn kept(&self) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        self.files.hash(&mut hasher);
        let kept = toolchains().join("built");
        fs::create_dir_all(&kept).unwrap();
        let digest = hasher.finish();
        kept.join(format!("{}-{digest:016x}.wasm", name(&self.language)))
    }

    /// Runs a command line of the project's README.
    fn run(&self, line: &str) {
        run_line(&self.folder, line);
    }
}

/// Runs a command line without quotes in `folder`; it has to succeed.
#[expect(
    clippy::disallowed_methods,
    reason = "the tests start the tools of the languages"
)]
pub(crate) fn run_line(folder: &Path, line: &str) {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words).current_dir(folder);
    for name in CLEARED {
        command.env_remove(name);
    }
    command
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_TARGET_DIR", rust_target())
        .env("ZIG_GLOBAL_CACHE_DIR", toolchains().join("zig"))
        .env("ZIG_LOCAL_CACHE_DIR", toolchains().join("zig"))
        .stdin(Stdio::null());
    let (done, ended) = mpsc::channel();
    let output = std::thread::spawn(move || {
        let output = command.output();
        done.send(()).unwrap_or_default();
        output
    });
    let waited = ended.recv_timeout(COMMAND_MAX);
    assert!(waited.is_ok(), "`{line}` does not end");
    let output = output.join().unwrap();
    let output = output.unwrap_or_else(|error| panic!("`{line}` does not start: {error}"));
    assert!(
        output.status.success(),
        "`{line}` in {}:\n{}{}",
        folder.display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Variables of the cargo that runs the tests, and of an active Python environment: they are not the author's.
const CLEARED: [&str; 7] = [
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "VIRTUAL_ENV",
];

fn is_rust(language: &str) -> bool {
    language.starts_with("rust")
}

/// Where the projects in Rust are built: all of them need the same crates, which take most of the time.
pub(crate) fn rust_target() -> PathBuf {
    toolchains().join("rust_target")
}

/// Where what the tests download is kept.
pub(crate) fn toolchains() -> &'static Path {
    Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/../toolchains"))
}

/// Whether tests may use the package registries. If not, a line says what is left out.
#[expect(
    clippy::disallowed_methods,
    reason = "the one switch of the tests is a variable"
)]
pub(crate) fn slow_tests(what: &str) -> bool {
    let is_on = std::env::var("ZEPH_SLOW_TESTS").is_ok_and(|value| value == "1");
    if !is_on {
        leave_out(&format!("{what} when ZEPH_SLOW_TESTS=1"));
    }
    is_on
}
