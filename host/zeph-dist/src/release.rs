//! What is released: its version and time, the program, and the texts that go with it into every package.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use toml_edit::DocumentMut;

use crate::archive::{Item, gzip, tar};
use crate::licences;
use crate::parts::Part;
use crate::program::{program, root};

/// The one target that is built for: its programs need nothing of the machine but Linux.
pub(crate) const TRIPLE: &str = "x86_64-unknown-linux-musl";

/// The most the program may weigh.
pub(crate) const PROGRAM_BYTES_MAX: usize = 32_000_000;

/// The variable that fixes the time in all that is made, in seconds since 1970: <https://reproducible-builds.org/specs/source-date-epoch/>.
pub(crate) const EPOCH_VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// A state of the repository that is handed out.
#[derive(Debug)]
pub(crate) struct Release {
    /// The root of the workspace.
    pub(crate) root: PathBuf,
    /// As in the manifest of the workspace.
    pub(crate) version: String,
    /// The time that stands in everything.
    pub(crate) time: Timestamp,
    /// The address of the sources, where the manifest of the workspace names one.
    pub(crate) repository: Option<String>,
    /// How hard packing tries, from 1 to 9.
    pub(crate) level: u32,
    /// Who packs, as `NAME <ADDRESS>`: from the variables of Debian's own tools.
    pub(crate) maintainer: String,
}

impl Release {
    /// That of the workspace this program was built in. The time is `SOURCE_DATE_EPOCH`, else that of the newest commit.
    pub(crate) fn of_workspace(fast: bool) -> Result<Self> {
        let root = root()?;
        let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
        let manifest: DocumentMut = manifest.parse()?;
        let package = &manifest["workspace"]["package"];
        let version = package["version"].as_str();
        let repository = package.get("repository").and_then(|text| text.as_str());
        Ok(Self {
            version: version.context("the workspace has no version")?.to_owned(),
            time: time(&root)?,
            repository: repository.map(str::to_owned),
            level: if fast { 1 } else { 9 },
            maintainer: maintainer(),
            root,
        })
    }

    /// The name of a file of this release: `zeph-host-VERSION-REST`.
    pub(crate) fn file(&self, rest: &str) -> String {
        format!("zeph-host-{}-{rest}", self.version)
    }

    /// A text of the repository.
    pub(crate) fn text(&self, path: &str) -> Result<String> {
        let path = self.root.join(path);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))
    }
}

fn time(root: &Path) -> Result<Timestamp> {
    let seconds = match variable(EPOCH_VARIABLE) {
        Some(seconds) => seconds,
        None => {
            let mut git = program("git");
            git.current_dir(root).args(["log", "-1", "--format=%ct"]);
            output(&mut git)
                .with_context(|| format!("set `{EPOCH_VARIABLE}`: no commit has a time"))?
        }
    };
    let seconds = seconds.trim().parse();
    let seconds = seconds.with_context(|| format!("`{EPOCH_VARIABLE}` is a number of seconds"))?;
    Ok(Timestamp::from_second(seconds)?)
}

/// As `dch` and `debuild` find it out; without the variables a name that no one can take for a person's.
fn maintainer() -> String {
    let name = variable("DEBFULLNAME").unwrap_or_else(|| "zeph-host packages".to_owned());
    let address = variable("DEBEMAIL").unwrap_or_else(|| "packages@zeph-host.invalid".to_owned());
    format!("{name} <{address}>")
}

pub(crate) fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "tools for packages are told by variables"
    )]
    std::env::var(name).ok()
}

/// The platform of this machine's compiler, as a triple.
pub(crate) fn platform() -> Result<String> {
    let about = output(program("rustc").arg("-vV"))?;
    let platform = about.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(platform.context("`rustc` names no platform")?.to_owned())
}

/// What a program prints; an error unless it succeeds.
pub(crate) fn output(command: &mut std::process::Command) -> Result<String> {
    let name = command.get_program().display().to_string();
    let output = command
        .output()
        .with_context(|| format!("cannot start `{name}`"))?;
    if !output.status.success() {
        let problem = String::from_utf8_lossy(&output.stderr);
        bail!("`{name}` failed ({}): {}", output.status, problem.trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The program and all that packages hold besides it.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) program: Vec<u8>,
    /// In the language of `man`.
    pub(crate) manual: String,
    /// The shell, and the script for it.
    pub(crate) completions: [(&'static str, String); 3],
    /// Both licences of the program itself, by the names of their files.
    pub(crate) licences: [(&'static str, String); 2],
    /// The licences of all that is linked into it.
    pub(crate) third_party: String,
}

impl Contents {
    /// Asks the program for its manual and completions.
    pub(crate) fn gather(release: &Release, file: &Path, parts: &[Part]) -> Result<Self> {
        let ask = |args: &[&str]| output(program(file).args(args).current_dir("/"));
        let said = ask(&["--version"])?;
        let of_release = format!("zeph-host {}", release.version);
        if said.trim() != of_release {
            bail!(
                "`{}` is `{}`, not `{of_release}`",
                file.display(),
                said.trim()
            );
        }
        let shell = |name| Ok::<_, anyhow::Error>((name, ask(&["completions", name])?));
        let licence = |name| Ok::<_, anyhow::Error>((name, release.text(name)?));
        Ok(Self {
            program: std::fs::read(file)?,
            manual: ask(&["man"])?,
            completions: [shell("bash")?, shell("zsh")?, shell("fish")?],
            licences: [licence("LICENSE-MIT")?, licence("LICENSE-APACHE")?],
            third_party: licences::list(release, parts)?,
        })
    }

    /// The licences as files of a folder that ends with `/`.
    pub(crate) fn licence_files(&self, folder: &str) -> Vec<Item> {
        let third_party = [("THIRD-PARTY.txt", &self.third_party)];
        let own = self.licences.iter().map(|(name, text)| (*name, text));
        own.chain(third_party)
            .map(|(name, text)| Item::file(format!("{folder}{name}"), text.as_bytes()))
            .collect()
    }
}

/// The program with its manual and completions, to be unpacked anywhere.
pub(crate) fn write_program(release: &Release, contents: &Contents, folder: &Path) -> Result<()> {
    let name = release.file(TRIPLE);
    let mut items = vec![
        Item::program(format!("{name}/zeph-host"), &contents.program),
        Item::file(format!("{name}/zeph-host.1"), contents.manual.as_bytes()),
    ];
    for (shell, script) in &contents.completions {
        let path = format!("{name}/completions/zeph-host.{shell}");
        items.push(Item::file(path, script.as_bytes()));
    }
    items.extend(contents.licence_files(&format!("{name}/")));
    let packed = gzip(release, &tar(release, &items)?)?;
    write(folder, &format!("{name}.tar.gz"), &packed)
}

/// Writes a file of the release.
pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, bytes).with_context(|| format!("cannot write `{}`", path.display()))
}
