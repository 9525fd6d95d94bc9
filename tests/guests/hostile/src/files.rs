//! One file operation, as told: how the tests probe the guard from inside a guest.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};

use schemars::JsonSchema;
use serde::Deserialize;
use zeph_plugin::{Output, ToolError};

/// What to do.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Arguments {
    /// The operation.
    op: Op,
    /// The path it works on.
    path: String,
    /// The second path, for operations with two.
    #[serde(default)]
    to: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Op {
    Read,
    Write,
    Append,
    Truncate,
    CreateNew,
    WriteThenRead,
    Stat,
    Lstat,
    List,
    Mkdir,
    Rmdir,
    Unlink,
    Rename,
    Link,
    Readlink,
    /// Waits until the file is there, and reads it.
    Await,
}

/// Runs it; the operating system's error kind is the message of the failure.
pub(crate) fn run(arguments: Arguments) -> Result<Output, ToolError> {
    match perform(&arguments) {
        Ok(text) => Ok(Output::text(text)),
        Err(error) => Err(ToolError::permanent(format!("{:?}", error.kind()))),
    }
}

fn perform(arguments: &Arguments) -> io::Result<String> {
    let Arguments { op, path, to } = arguments;
    match op {
        Op::Read => fs::read_to_string(path),
        Op::Await => loop {
            match fs::read_to_string(path) {
                Ok(text) if !text.is_empty() => return Ok(text),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => std::thread::sleep(std::time::Duration::from_millis(10)),
            }
        },
        Op::Write => fs::write(path, "written by the guest").map(|()| String::new()),
        Op::Append => append(path),
        Op::Truncate => OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(path)
            .map(|_| String::new()),
        Op::CreateNew => OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .map(|_| String::new()),
        Op::WriteThenRead => {
            fs::write(path, "written by the guest")?;
            fs::read_to_string(path)
        }
        Op::Stat => fs::metadata(path).map(|meta| meta.len().to_string()),
        Op::Lstat => fs::symlink_metadata(path).map(|meta| meta.len().to_string()),
        Op::List => list(path),
        Op::Mkdir => fs::create_dir(path).map(|()| String::new()),
        Op::Rmdir => fs::remove_dir(path).map(|()| String::new()),
        Op::Unlink => fs::remove_file(path).map(|()| String::new()),
        Op::Rename => fs::rename(path, to).map(|()| String::new()),
        Op::Link => fs::hard_link(path, to).map(|()| String::new()),
        Op::Readlink => fs::read_link(path).map(|target| target.display().to_string()),
    }
}

fn append(path: &str) -> io::Result<String> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(b"written by the guest")?;
    Ok(String::new())
}

fn list(path: &str) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names.join(" "))
}
