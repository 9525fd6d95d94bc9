//! The wheel for PyPI: the program as a script, for every Python on Linux (<https://packaging.python.org/specifications/binary-distribution-format>).

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::archive::Item;
use crate::release::{self, Contents, Release};
use crate::zip::zip;

/// A static program needs neither C library, so the wheel names the oldest of both that installers know.
const PLATFORMS: [&str; 3] = [
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
    "musllinux_1_1_x86_64",
];

/// Writes `zeph_host-VERSION-py3-none-PLATFORMS.whl`.
pub(crate) fn write(release: &Release, contents: &Contents, folder: &Path) -> Result<()> {
    let name = format!("zeph_host-{}", release.version);
    let info = format!("{name}.dist-info");
    let mut items = vec![
        Item::program(format!("{name}.data/scripts/zeph-host"), &contents.program),
        Item::file(format!("{info}/METADATA"), metadata(release).as_bytes()),
        Item::file(format!("{info}/WHEEL"), tags()?.as_bytes()),
    ];
    items.extend(contents.licence_files(&format!("{info}/licenses/")));
    let record = record(&items, &info)?;
    items.push(Item::file(format!("{info}/RECORD"), record.as_bytes()));
    let file = format!("{name}-py3-none-{}.whl", PLATFORMS.join("."));
    release::write(folder, &file, &zip(release, &items)?)
}

fn metadata(release: &Release) -> String {
    let mut metadata = format!(
        "\
Metadata-Version: 2.4
Name: zeph-host
Version: {}
Summary: Runs the tools of LLM agents as sandboxed WebAssembly components
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
License-File: THIRD-PARTY.txt
Requires-Python: >=3.8
Keywords: mcp,agent,sandbox,wasm
Description-Content-Type: text/markdown
",
        release.version
    );
    if let Some(repository) = &release.repository {
        metadata += &format!("Project-URL: Repository, {repository}\n");
    }
    metadata + "\n" + include_str!("../assets/PACKAGE.md")
}

fn tags() -> Result<String> {
    let mut tags = "Wheel-Version: 1.0\nGenerator: zeph-dist\nRoot-Is-Purelib: false\n".to_owned();
    for platform in PLATFORMS {
        writeln!(tags, "Tag: py3-none-{platform}")?;
    }
    Ok(tags)
}

/// Every file with its digest and size, but for this list itself.
fn record(items: &[Item], info: &str) -> Result<String> {
    let mut record = String::new();
    for item in items {
        let bytes = item.bytes.as_deref().unwrap_or_default();
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        writeln!(record, "{},sha256={digest},{}", item.path, bytes.len())?;
    }
    writeln!(record, "{info}/RECORD,,")?;
    Ok(record)
}
