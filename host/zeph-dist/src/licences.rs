//! The licences of all that is in the program, with their texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::parts::Part;
use crate::release::{Release, output};

/// How files with licences and notices are named, in lower case.
const NAMES: [&str; 6] = [
    "license",
    "licence",
    "copying",
    "copyright",
    "notice",
    "unlicense",
];

/// Texts for crates that name a licence and carry none: those whose text says everything without a name in it, and ours.
const KNOWN: [(&str, &str); 2] = [("Apache-2.0", "LICENSE-APACHE"), ("MIT", "LICENSE-MIT")];

const HEAD: &str = "\
zeph-host is handed out under the MIT license or the Apache license, version 2.0, at your option.

This lists what is linked into the program and into the components and programs it carries, each with the license its authors name.
The texts follow; above each stands which of them it belongs to.
";

/// What is in the program and no lock file names.
const OTHERS: [(&str, &str, &str); 3] = [
    (
        "the Public Suffix List",
        "MPL-2.0",
        include_str!("../assets/SUFFIXES-COPYRIGHT"),
    ),
    ("musl", "MIT", include_str!("../assets/MUSL-COPYRIGHT")),
    (
        "the Rust standard library",
        "MIT OR Apache-2.0",
        include_str!("../assets/RUST-COPYRIGHT"),
    ),
];

/// The list, then every text once.
///
/// Errors: for a crate without a licence.
pub(crate) fn list(release: &Release, parts: &[Part]) -> Result<String> {
    let mut list = format!("{HEAD}\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, licence, text) in OTHERS {
        writeln!(list, "{name}: {licence}")?;
        texts
            .entry(text.to_owned())
            .or_default()
            .push(name.to_owned());
    }
    for part in parts.iter().filter(|part| !part.is_own()) {
        let name = format!("{} {}", part.name, part.version);
        writeln!(list, "{name}: {}", licence(part)?)?;
        for text in texts_of(release, part)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    // By the first that has it: sorted by the text, a changed word would move everything.
    let mut texts: Vec<_> = texts
        .into_iter()
        .map(|(text, users)| (users, text))
        .collect();
    texts.sort();
    for (users, text) in texts {
        let rule = "-".repeat(80);
        write!(
            list,
            "\n{rule}\n{}\n{rule}\n\n{}\n",
            users.join(", "),
            text.trim_end()
        )?;
    }
    Ok(list)
}

/// What a part says of its licence, or where it says so.
fn licence(part: &Part) -> Result<String> {
    if !part.licence.is_empty() {
        return Ok(part.licence.clone());
    }
    let file = part.licence_file.as_deref().and_then(Path::file_name);
    let file = file.with_context(|| format!("the crate `{}` names no licence", part.name))?;
    Ok(format!("see its file {}", file.display()))
}

/// The texts a crate carries; where it carries none, those of the licences it names.
fn texts_of(release: &Release, part: &Part) -> Result<Vec<String>> {
    let mut files: Vec<_> = std::fs::read_dir(&part.folder)
        .with_context(|| format!("cannot read `{}`", part.folder.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_file() && is_licence(path))
        .collect();
    files.extend(part.licence_file.clone());
    files.sort();
    files.dedup();
    let mut texts = Vec::new();
    for file in files {
        let bytes =
            std::fs::read(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
        texts.push(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"));
    }
    if texts.is_empty() {
        let named = KNOWN.iter().find(|(name, _)| part.licence.contains(name));
        texts.extend(named.map(|(_, file)| release.text(file)).transpose()?);
    }
    Ok(texts)
}

fn is_licence(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_lowercase();
    NAMES.iter().any(|known| name.starts_with(known)) && !name.ends_with(".rs")
}

/// Which compiler builds this, as `rustc` prints it: `1.95.0`.
pub(crate) fn compiler_version() -> Result<String> {
    let printed = output(crate::program::program("rustc").arg("--version"))?;
    let version = printed.split_whitespace().nth(1);
    Ok(version.context("`rustc` names no version")?.to_owned())
}
