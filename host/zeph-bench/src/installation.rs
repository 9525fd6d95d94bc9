//! How long an installation from the packaged crates takes.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::figures::{Bench, Row, verdict};
use crate::program::{cargo, program, succeed};

/// How long it may take on two cores.
const INSTALL_MAX: Duration = Duration::from_secs(12 * 60);

/// `cargo install` of what `cargo xtask package` makes, with a home of cargo's that holds nothing. Needs the registry.
pub(crate) fn install(_: &Bench) -> Result<Vec<Row>> {
    let place = tempfile::tempdir()?;
    let packages = place.path().join("packages");
    succeed(cargo()?.args(["xtask", "package"]).arg(&packages))?;
    let archive = std::fs::read_dir(&packages)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.to_string_lossy().ends_with("-source.tar.gz"));
    let archive = archive.context("`cargo xtask package` made no sources")?;
    let sources = place.path().join("sources");
    std::fs::create_dir(&sources)?;
    let mut unpack = program("tar");
    unpack.arg("-xzf").arg(archive).arg("--strip-components=1");
    succeed(unpack.arg("-C").arg(&sources))?;
    let start = Instant::now();
    succeed(&mut installing(&sources, place.path())?)?;
    let took = start.elapsed();
    Ok(vec![Row {
        figure: "`cargo install` of the packaged crates, everything fetched anew".to_owned(),
        measured: format!("{} min {} s", took.as_secs() / 60, took.as_secs() % 60),
        reach: "≤ 12 min on two cores".to_owned(),
        ratio: verdict("", took <= INSTALL_MAX),
    }])
}

fn installing(sources: &std::path::Path, place: &std::path::Path) -> Result<Command> {
    let mut install = cargo()?;
    install
        .current_dir(sources)
        .env("CARGO_HOME", place.join("cargo"))
        .env("CARGO_TARGET_DIR", place.join("target"))
        .args(["install", "--locked", "--path", "zeph-host", "--root"])
        .arg(place.join("installed"));
    Ok(install)
}
