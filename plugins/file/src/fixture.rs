//! A scratch directory that stands for the one granted root, for the tests of the tools.

use std::fs;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;
use zeph_plugin::{Category, Content, Context, Output, ToolError};

use crate::area::Area;
use crate::sys::Root;

/// A granted directory `root` beside one that is not granted, `outside`.
pub(crate) struct Fixture {
    directory: TempDir,
    pub(crate) area: Area,
}

impl Fixture {
    /// A root with these files; a path that ends in a slash makes a directory.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["root", "outside"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let root = directory.path().join("root").to_str().unwrap().to_owned();
        let area = Area::new(None, vec![Root::new(root)]);
        let fixture = Self { directory, area };
        for (path, content) in files {
            fixture.put(path, content.as_bytes());
        }
        fixture
    }

    /// Where `path` is on this machine.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join("root").join(path)
    }

    /// Makes a file with the directories above it.
    pub(crate) fn put(&self, path: &str, content: &[u8]) {
        let at = self.at(path);
        if path.ends_with('/') {
            fs::create_dir_all(at).unwrap();
            return;
        }
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, content).unwrap();
    }

    /// Makes a symbolic link.
    #[cfg(unix)]
    pub(crate) fn link(&self, target: &str, path: &str) {
        std::os::unix::fs::symlink(target, self.at(path)).unwrap();
    }

    /// The content of a file.
    pub(crate) fn content(&self, path: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.at(path)).unwrap()).into_owned()
    }

    /// Everything below the root, sorted; directories end in a slash, links in `@`.
    pub(crate) fn tree(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut pending = vec![String::new()];
        while let Some(below) = pending.pop() {
            for entry in fs::read_dir(self.at(&below)).unwrap() {
                let entry = entry.unwrap();
                let kind = entry.file_type().unwrap();
                let path = format!("{below}{}", entry.file_name().to_str().unwrap());
                if kind.is_dir() {
                    pending.push(format!("{path}/"));
                    found.push(format!("{path}/"));
                } else {
                    found.push(if kind.is_symlink() {
                        format!("{path}@")
                    } else {
                        path
                    });
                }
            }
        }
        found.sort();
        found
    }

    /// The text of a result, or `category: message`; the path of the root stands as `ROOT`.
    pub(crate) fn told(&self, result: Result<Output, ToolError>) -> String {
        let text = match result {
            Ok(output) => match &output.content[..] {
                [Content::Text(text)] => text.clone(),
                other => panic!("not one text: {other:?}"),
            },
            Err(error) => format!("{}: {}", label(error.category), error.message),
        };
        text.replace(self.at("").to_str().unwrap().trim_end_matches('/'), "ROOT")
    }
}

/// The structured part of a success.
pub(crate) fn structured(result: Result<Output, ToolError>) -> Value {
    serde_json::from_str(&result.unwrap().structured.unwrap()).unwrap()
}

/// Arguments as the component reads them.
pub(crate) fn args<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A call with a minute left.
pub(crate) fn context() -> Context {
    Context {
        call_id: String::new(),
        conversation_id: String::new(),
        turn_id: None,
        goal_id: None,
        caller_id: None,
        remaining_ms: 60_000,
        answers: Vec::new(),
        state: None,
    }
}

fn label(category: Category) -> &'static str {
    match category {
        Category::InvalidParameters => "invalid",
        Category::PolicyBlocked => "blocked",
        Category::PermanentFailure => "permanent",
        other => panic!("unexpected category {other:?}"),
    }
}
