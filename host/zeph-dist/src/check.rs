//! Makes everything twice, in two places, and compares: what is handed out must not tell where it was made.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::program::{cargo, root, succeed};
use crate::release::{EPOCH_VARIABLE, Release};
use crate::staging::tracked;
use crate::{Order, sums, tell};

/// Two folders of different lengths, so that no place fits both.
const PLACES: [&str; 2] = ["one", "another/place"];

/// Copies the sources to two places below `folder`, makes everything there, and compares the digests.
///
/// Errors: names the files that differ.
pub(crate) fn twice(folder: &Path, order: &Order) -> Result<()> {
    let release = Release::of_workspace(order.fast)?;
    let mut lists = Vec::new();
    for place in PLACES {
        let place = folder.join(place);
        let (sources, out) = (place.join("sources"), place.join("out"));
        copy(&sources)?;
        std::fs::create_dir_all(&out)?;
        let mut make = cargo()?;
        make.current_dir(&sources)
            .env(EPOCH_VARIABLE, release.time.as_second().to_string())
            .env("CARGO_TARGET_DIR", place.join("target"))
            .args(["run", "--quiet", "--locked", "--package", "zeph-dist", "--"])
            .arg(order.extent.command())
            .arg(&out);
        for (option, path) in [
            ("--program", &order.program),
            ("--components", &order.components),
        ] {
            if let Some(path) = path {
                make.arg(option).arg(path);
            }
        }
        if order.fast {
            make.arg("--fast");
        }
        succeed(&mut make)?;
        let list = out.join(sums::FILE);
        lists.push(std::fs::read_to_string(&list).with_context(|| list.display().to_string())?);
    }
    compare(&lists)
}

fn compare(lists: &[String]) -> Result<()> {
    let [first, second] = lists else {
        bail!("bug: two places");
    };
    let lines: Vec<&str> = first.lines().collect();
    let differing: Vec<&str> = second
        .lines()
        .filter(|line| !lines.contains(line))
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    if !differing.is_empty() || lines.len() != second.lines().count() {
        bail!("not the same in both places: {}", differing.join(", "));
    }
    tell(&format!(
        "{} files are the same in both places.",
        lines.len()
    ));
    Ok(())
}

/// The files of the repository, as they are.
fn copy(to: &Path) -> Result<()> {
    let from = root()?;
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    for path in tracked(&from)? {
        let target = to.join(&path);
        let folder = target.parent().context("a file lies in a folder")?;
        std::fs::create_dir_all(folder)?;
        std::fs::copy(from.join(&path), &target)?;
    }
    Ok(())
}
