//! The package for Debian and what descends from it.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use crate::archive::{Item, ar, gzip, tar_below};
use crate::release::{self, Contents, Release};

const DOCUMENTS: &str = "usr/share/doc/zeph-host";

/// The scripts that dpkg starts.
const SCRIPTS: [(&str, &str); 3] = [
    ("postinst", include_str!("../assets/postinst")),
    ("prerm", include_str!("../assets/prerm")),
    ("postrm", include_str!("../assets/postrm")),
];

/// Writes `zeph-host_VERSION_amd64.deb`.
pub(crate) fn write(release: &Release, contents: &Contents, folder: &Path) -> Result<()> {
    let files = files(release, contents)?;
    let mut control = vec![
        Item::file("control", control(release, &files).as_bytes()),
        Item::file("md5sums", md5sums(&files)?.as_bytes()),
    ];
    let scripts = SCRIPTS.iter();
    control.extend(scripts.map(|(name, text)| Item::program(*name, text.as_bytes())));
    let packed = |items: &[Item]| gzip(release, &tar_below("./", release, items)?);
    let package = ar(
        release,
        &[
            ("debian-binary", b"2.0\n"),
            ("control.tar.gz", &packed(&control)?),
            ("data.tar.gz", &packed(&files)?),
        ],
    );
    let name = format!("zeph-host_{}_amd64.deb", release.version);
    release::write(folder, &name, &package)
}

fn files(release: &Release, contents: &Contents) -> Result<Vec<Item>> {
    let gz = |text: &str| gzip(release, text.as_bytes());
    let [(_, bash), (_, zsh), (_, fish)] = &contents.completions;
    let document = |name: &str, bytes: &[u8]| Item::file(format!("{DOCUMENTS}/{name}"), bytes);
    let changes = release.text("host/CHANGELOG.md")?;
    Ok(vec![
        Item::program("usr/bin/zeph-host", &contents.program),
        Item::file("usr/share/man/man1/zeph-host.1.gz", &gz(&contents.manual)?),
        Item::file(
            "usr/share/bash-completion/completions/zeph-host",
            bash.as_bytes(),
        ),
        Item::file(
            "usr/share/zsh/vendor-completions/_zeph-host",
            zsh.as_bytes(),
        ),
        Item::file(
            "usr/share/fish/vendor_completions.d/zeph-host.fish",
            fish.as_bytes(),
        ),
        Item::file(
            "lib/systemd/system/zeph-host.service",
            include_bytes!("../assets/zeph-host.service"),
        ),
        Item::file(
            "usr/share/lintian/overrides/zeph-host",
            include_bytes!("../assets/lintian-overrides"),
        ),
        document("copyright", include_bytes!("../assets/copyright")),
        document("THIRD-PARTY.txt.gz", &gz(&contents.third_party)?),
        document("NEWS.gz", &gz(&changes)?),
        document("changelog.gz", &gz(&changelog(release))?),
    ])
}

fn control(release: &Release, files: &[Item]) -> String {
    // In units of 1,024 bytes, each file for itself.
    let sizes = files.iter().filter_map(|file| file.bytes.as_ref());
    let size: usize = sizes.map(|bytes| bytes.len().div_ceil(1024)).sum();
    let mut control = format!(
        "\
Package: zeph-host
Version: {}
Architecture: amd64
Maintainer: {}
Installed-Size: {size}
Recommends: bubblewrap, ca-certificates
Suggests: git
Section: utils
Priority: optional
",
        release.version, release.maintainer
    );
    if let Some(repository) = &release.repository {
        control += &format!("Homepage: {repository}\n");
    }
    control
        + "\
Description: sandboxed tools for LLM agents
 Runs the tools of agents - read and edit files, search, run shell commands -
 without giving them the rights of the user: every tool is a WebAssembly
 component that can access only what was granted, and commands run in a
 sandbox of the operating system. One pipeline checks, approves, limits,
 filters and records every call of an MCP client, a terminal or a script.
 .
 The service zeph-host.service serves the tools over HTTP; it is not enabled
 by the installation.
"
}

fn changelog(release: &Release) -> String {
    let day = release.time.strftime("%a, %d %b %Y %H:%M:%S +0000");
    format!(
        "zeph-host ({}) unstable; urgency=medium\n\n  * Release {}. What changed for users stands in NEWS.gz.\n\n -- {}  {day}\n",
        release.version, release.version, release.maintainer
    )
}

/// For `dpkg --verify`, by the program that makes them everywhere.
fn md5sums(files: &[Item]) -> Result<String> {
    let scratch = tempfile::tempdir()?;
    let mut sums = String::new();
    for (at, file) in files.iter().enumerate() {
        let bytes = file.bytes.as_deref().unwrap_or_default();
        let copy = scratch.path().join(at.to_string());
        std::fs::write(&copy, bytes)?;
        let printed = release::output(crate::program::program("md5sum").arg(&copy))?;
        let sum = printed.split_whitespace().next().unwrap_or_default();
        writeln!(sums, "{sum}  {}", file.path)?;
    }
    Ok(sums)
}
