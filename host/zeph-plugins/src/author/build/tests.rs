//! Projects are known by their files, a failed build says what its tool said, and one that is given up leaves no process.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::time::Duration;

use super::{BuildError, Project};

/// Longest wait for what takes a moment.
const PATIENCE: Duration = Duration::from_secs(60);

fn check(files: &[&str], expected: Option<&str>) {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        fs::write(dir.path().join(file), "").unwrap();
    }
    let command = Project::open(dir.path()).map(|project| project.command());
    match expected {
        Some(expected) => assert_eq!(command.unwrap(), expected, "{files:?}"),
        None => assert!(
            matches!(command, Err(BuildError::NoProject(_))),
            "{files:?}"
        ),
    }
}

#[test]
fn a_project_is_known_by_its_files() {
    check(
        &["Cargo.toml"],
        Some("cargo build --release --target wasm32-wasip2"),
    );
    check(&["package.json"], Some("npm run build"));
    check(&["Makefile", "package.json"], Some("make"));
    check(&["build.py"], Some("python3 build.py"));
    check(&["plugin.toml"], None);
    check(&[], None);
}

fn makefile(dir: &Path, recipe: &str) -> Project {
    fs::write(dir.join("Makefile"), format!("all:\n\t@{recipe}\n")).unwrap();
    Project::open(dir).unwrap()
}

#[tokio::test]
async fn a_build_runs_in_the_folder_and_says_why_it_failed() {
    let dir = tempfile::tempdir().unwrap();
    makefile(dir.path(), "echo made >made")
        .build()
        .await
        .unwrap();
    assert_eq!(
        fs::read_to_string(dir.path().join("made")).unwrap(),
        "made\n"
    );

    let project = makefile(dir.path(), "echo to-stdout; echo to-stderr >&2; exit 3");
    match project.build().await {
        Err(BuildError::Failed {
            command, output, ..
        }) => {
            assert_eq!(command, "make");
            assert!(
                output.contains("to-stdout") && output.contains("to-stderr"),
                "{output}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn warnings_of_a_build_that_succeeds_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let project = makefile(dir.path(), "echo ordinary; echo warning: unused >&2");
    assert_eq!(project.build().await.unwrap().warnings, "warning: unused\n");
    let project = makefile(dir.path(), "echo ordinary");
    assert_eq!(project.build().await.unwrap().warnings, "");
}

/// The recipe holds a pipe open; it reads as ended only when every process of the build is gone.
#[tokio::test]
async fn a_build_that_is_given_up_ends_with_all_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let project = makefile(
        dir.path(),
        "exec >fifo; echo started; sleep 1000 & sleep 1000",
    );
    let mut reader = tokio::task::spawn_blocking(move || {
        let mut fifo = BufReader::new(File::open(fifo)?);
        let mut line = String::new();
        fifo.read_line(&mut line)?;
        Ok::<_, io::Error>((fifo, line))
    });
    let (mut fifo, line) = tokio::select! {
        ended = project.build() => panic!("{ended:?}"),
        started = &mut reader => started.unwrap().unwrap(),
    };
    assert_eq!(line, "started\n");
    let ends = tokio::task::spawn_blocking(move || {
        let mut rest = String::new();
        fifo.read_to_string(&mut rest).map(|_| rest)
    });
    let rest = tokio::time::timeout(PATIENCE, ends).await.unwrap();
    assert_eq!(rest.unwrap().unwrap(), "");
}
