//! Compiling what is handed out, so that it does not tell where it was compiled.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::program::{self, cargo, profile_dir, succeed};
use crate::release::{
    EPOCH_VARIABLE, PROGRAM_BYTES_MAX, Release, TRIPLE, output, platform, variable,
};
use crate::staging::files_below;
use crate::tell;

/// Tells build scripts which paths not to leave in the programs they compile: see `host/build/nested_cargo.rs`.
const REMAP_VARIABLE: &str = "ZEPH_REMAPPED_PATHS";

/// Between flags in `CARGO_ENCODED_RUSTFLAGS`, and between paths in the variable above.
const SEPARATOR: &str = "\x1f";

/// The allocator reserves address space in pieces of 64 MiB, not of a GiB: it notes which parts of a piece are taken, some 170 kB for a GiB that
/// every start writes.
const ALLOCATOR_FLAG: &str = "-DMI_DEFAULT_ARENA_RESERVE=65536L";

/// Arguments of the linker for the program. Relative relocations are packed: a megabyte and a half.
const LINK_ARGS: [&str; 2] = ["-fuse-ld=lld", "-Wl,-z,pack-relative-relocs"];

/// A component of this repository, compiled and packed.
#[derive(Debug)]
pub(crate) struct Guest {
    /// The variable that the crate of the components knows it by.
    pub(crate) variable: String,
    pub(crate) packed: Vec<u8>,
    /// Of the component before it was packed: `sha256:` and 64 digits.
    pub(crate) digest: String,
}

/// Where the linker puts the tables for unwinding: the order of its own depends on what it reads first.
const LAYOUT: &str = "host/zeph-dist/layout.ld";

/// How hard packing the tables for unwinding tries.
const TABLES_LEVEL: i32 = 19;

/// Builds the program, packs its tables for unwinding, and returns where it is.
pub(crate) fn program(release: &Release) -> Result<PathBuf> {
    let target = target_dir()?;
    let mut build = building(release, &target)?;
    build.args([
        "rustc",
        "--locked",
        "--package",
        "zeph-host",
        "--bin",
        "zeph-host",
    ]);
    build.args(profile()).arg("--");
    let linker = format!("-B{}", linker_dir()?.display());
    let layout = format!("-Wl,-T,{}", release.root.join(LAYOUT).display());
    for arg in LINK_ARGS
        .into_iter()
        .chain([linker.as_str(), layout.as_str()])
    {
        build.arg(format!("-Clink-arg={arg}"));
    }
    succeed(&mut build)?;
    let folder = target.join(TRIPLE).join("dist");
    // Beside the one that cargo made, which it takes for its own next time.
    let program = folder.join("packed/zeph-host");
    let size = pack_tables(&folder.join("zeph-host"), &program)?;
    if size > PROGRAM_BYTES_MAX {
        tell(&format!(
            "warning: the program is {size} bytes large; the limit is {PROGRAM_BYTES_MAX}"
        ));
    }
    Ok(program)
}

/// Packs the tables for unwinding of a program, and returns its size then.
fn pack_tables(linked: &Path, packed: &Path) -> Result<usize> {
    let program = std::fs::read(linked)?;
    let program = zeph_unwind::pack(&program, TABLES_LEVEL)
        .with_context(|| format!("cannot pack `{}`", linked.display()))?;
    let folder = packed.parent().context("a file lies in a folder")?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(packed, &program)?;
    // With the modes of a program.
    std::fs::set_permissions(packed, std::fs::metadata(linked)?.permissions())?;
    Ok(program.len())
}

/// The folder with the linker that comes with the compiler: the layout is then the same whichever linker a machine has, and what most have takes
/// six times as long.
fn linker_dir() -> Result<PathBuf> {
    let sysroot = output(program::program("rustc").args(["--print", "sysroot"]))?;
    let libraries = Path::new(sysroot.trim()).join("lib/rustlib");
    let folder = libraries.join(platform()?).join("bin/gcc-ld");
    if !folder.join("ld.lld").exists() {
        bail!(
            "the compiler has no linker in `{}`\n\nhint: install Rust with rustup",
            folder.display()
        );
    }
    Ok(folder)
}

/// Builds the components, with the same build that the program uses.
pub(crate) fn guests(release: &Release) -> Result<Vec<Guest>> {
    let target = target_dir()?;
    let mut build = building(release, &target)?;
    build
        .args(["build", "--locked", "--package", "zeph-bundle"])
        .args(profile());
    let messages = output(build.arg("--message-format=json-render-diagnostics"))?;
    let is_bundle = |message: &Value| {
        let package = message["package_id"].as_str().unwrap_or_default();
        message["reason"] == "build-script-executed" && package.contains("/plugins/bundle")
    };
    let script = messages
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .find(is_bundle);
    let script = script.context("cargo built no components")?;
    let folder = script["out_dir"]
        .as_str()
        .context("cargo names no folder")?;
    guests_in(Path::new(folder))
}

/// The components that lie in a folder, packed.
pub(crate) fn guests_in(folder: &Path) -> Result<Vec<Guest>> {
    let mut guests = Vec::new();
    for file in files_below(folder, &[])? {
        let Some(variable) = file.to_str().and_then(|name| name.strip_suffix(".packed")) else {
            continue;
        };
        let packed = std::fs::read(folder.join(&file))?;
        let bytes = zstd::decode_all(packed.as_slice())?;
        let digest: String = Sha256::digest(bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        guests.push(Guest {
            variable: variable.to_owned(),
            packed,
            digest: format!("sha256:{digest}"),
        });
    }
    if guests.is_empty() {
        bail!("`{}` holds no packed components", folder.display());
    }
    Ok(guests)
}

fn profile() -> [&'static str; 4] {
    ["--profile", "dist", "--target", TRIPLE]
}

/// A folder of its own: with paths remapped, nothing of other builds fits.
fn target_dir() -> Result<PathBuf> {
    profile_dir("dist-build")
}

/// `cargo` with an environment that makes the same bytes everywhere.
fn building(release: &Release, target: &Path) -> Result<Command> {
    let home = variable("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cargo")));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    let moved = [
        renamed(&home, "/cargo")?,
        renamed(&release.root, "/zeph-host")?,
        renamed(target, "/target")?,
    ];
    // Messages of panics name the files of crates: with short names.
    let mut paths = moved.to_vec();
    for registry in std::fs::read_dir(home.join("registry/src"))
        .into_iter()
        .flatten()
    {
        paths.insert(1, renamed(&registry?.path(), "/registry")?);
    }
    let flags = paths
        .iter()
        .map(|path| format!("--remap-path-prefix={path}"));
    let mut build = cargo()?;
    build
        .env(EPOCH_VARIABLE, release.time.as_second().to_string())
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_INCREMENTAL", "0")
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            flags.collect::<Vec<_>>().join(SEPARATOR),
        )
        .env(
            format!("CFLAGS_{}", TRIPLE.replace('-', "_")),
            format!("-ffile-prefix-map={} {ALLOCATOR_FLAG}", moved[0]),
        )
        .env(REMAP_VARIABLE, moved.join(SEPARATOR));
    Ok(build)
}

/// `FROM=TO` for a folder whose place is not the same everywhere; of two that fit, the compiler takes the later.
fn renamed(path: &Path, name: &str) -> Result<String> {
    match path.to_str() {
        Some(path) if !path.contains(['=', ' ', '\x1f']) => Ok(format!("{path}={name}")),
        _ => bail!("`{}` must not hold spaces or `=`", path.display()),
    }
}
