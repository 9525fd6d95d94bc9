//! What is handed out, made of a program that is there and taken into use: installed, started, removed.
//!
//! `ZEPH_DIST=FOLDER` tests what `cargo xtask dist FOLDER` has made instead.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::read::GzDecoder;
use serde_json::Value;

/// What is handed out, in a folder of this test or the given one.
struct Made {
    folder: PathBuf,
    is_given: bool,
    _scratch: Option<tempfile::TempDir>,
}

#[expect(clippy::disallowed_methods, reason = "tests start programs")]
fn command(name: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(name)
}

#[expect(clippy::disallowed_methods, reason = "a variable names what is tested")]
fn given() -> Option<PathBuf> {
    std::env::var_os("ZEPH_DIST").map(PathBuf::from)
}

/// Whether the program is there; says so when it is not.
fn has(name: &str) -> bool {
    let has = command(name).arg("--version").output().is_ok();
    if !has {
        drop(writeln!(
            std::io::stderr(),
            "skipped: `{name}` is not installed"
        ));
    }
    has
}

fn succeed(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(
        status.success(),
        "{command:?}: {status}\n{stdout}\n{stderr}"
    );
    stdout.into_owned()
}

/// A program of this build, without its symbols: `None` where only this crate was built.
fn program(scratch: &Path) -> Option<PathBuf> {
    let own = std::env::current_exe().unwrap();
    let profile = own.ancestors().nth(2).unwrap();
    let names = ["zeph-host-under-test", "zeph-host"];
    let built = names
        .iter()
        .map(|name| profile.join(name))
        .find(|program| program.exists());
    let Some(built) = built else {
        drop(writeln!(
            std::io::stderr(),
            "skipped: no `zeph-host` was built"
        ));
        return None;
    };
    let stripped = scratch.join("zeph-host");
    let is_stripped = command("strip")
        .arg("-o")
        .arg(&stripped)
        .arg(&built)
        .status();
    if !is_stripped.is_ok_and(|status| status.success()) {
        fs::copy(&built, &stripped).unwrap();
    }
    Some(stripped)
}

fn zeph_dist() -> Command {
    let mut command = command(env!("CARGO_BIN_EXE_zeph-dist"));
    command
        .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
        .env("SOURCE_DATE_EPOCH", "1767225600")
        .env("DEBFULLNAME", "zeph-host packages")
        .env("DEBEMAIL", "packages@lists.debian.org");
    command
}

/// The packages, made or given; `None` where there is nothing to make them of.
fn packages() -> Option<Made> {
    if let Some(folder) = given() {
        return Some(Made {
            folder,
            is_given: true,
            _scratch: None,
        });
    }
    let scratch = tempfile::tempdir().unwrap();
    let program = program(scratch.path())?;
    let folder = scratch.path().join("out");
    succeed(
        zeph_dist()
            .arg("dist")
            .arg(&folder)
            .arg("--fast")
            .arg("--program")
            .arg(program),
    );
    Some(Made {
        folder,
        is_given: false,
        _scratch: Some(scratch),
    })
}

impl Made {
    /// The one file whose name holds this.
    fn file(&self, part: &str) -> PathBuf {
        let files = fs::read_dir(&self.folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = files
            .filter(|path| path.to_string_lossy().contains(part))
            .collect();
        assert_eq!(files.len(), 1, "{part}: {files:?}");
        files.remove(0)
    }
}

/// One run of the program serves all: to pack it takes longest.
#[test]
fn packages_are_installed_started_and_removed() {
    let Some(made) = packages() else { return };
    let scratch = tempfile::tempdir().unwrap();
    succeed(
        command("sha256sum")
            .args(["--check", "--strict", "SHA256SUMS"])
            .current_dir(&made.folder),
    );
    debian(&made, scratch.path());
    npm(&made, scratch.path());
    wheel(&made, scratch.path());
    container(&made, scratch.path());
    bill(&made);
    licences(&made);
}

fn debian(made: &Made, scratch: &Path) {
    let package = made.file("_amd64.deb");
    if !has("dpkg") {
        return;
    }
    let root = scratch.join("debian");
    let database = root.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(database.join(folder)).unwrap();
    }
    fs::write(database.join("status"), "").unwrap();
    let dpkg = || {
        let mut dpkg = command("dpkg");
        dpkg.arg(format!("--root={}", root.display()));
        dpkg.args([
            "--force-script-chrootless",
            "--force-not-root",
            "--force-bad-path",
        ]);
        dpkg
    };
    succeed(dpkg().arg("--install").arg(&package));
    says_its_version(&root.join("usr/bin/zeph-host"));
    let altered = succeed(dpkg().args(["--verify", "zeph-host"]));
    assert_eq!(altered, "");
    if has("systemd-analyze") {
        let unit = fs::read_to_string(root.join("lib/systemd/system/zeph-host.service")).unwrap();
        // Where the program is not installed, any other is as good for this.
        let copy = scratch.join("zeph-host.service");
        fs::write(&copy, unit.replace("/usr/bin/zeph-host", "/bin/sh")).unwrap();
        let verified = command("systemd-analyze")
            .args(["verify", "--man=no"])
            .arg(&copy)
            .output();
        let complaints = String::from_utf8(verified.unwrap().stderr).unwrap();
        let about_it = complaints.lines().filter(|line| line.contains("zeph-host"));
        assert_eq!(about_it.collect::<Vec<_>>(), [""; 0]);
    }
    succeed(dpkg().args(["--remove", "zeph-host"]));
    assert!(!root.join("usr").exists());
    succeed(dpkg().args(["--purge", "zeph-host"]));
    if made.is_given && has("lintian") {
        let found = succeed(command("lintian").arg("--allow-root").arg(&package));
        assert_eq!(found, "");
    }
}

fn npm(made: &Made, scratch: &Path) {
    if !has("npm") {
        return;
    }
    let project = scratch.join("npm");
    fs::create_dir(&project).unwrap();
    succeed(
        command("npm")
            .args(["install", "--offline", "--no-audit", "--no-fund"])
            .arg(made.file("zeph-host-linux-x64-"))
            .arg(made.file("zeph-host-0.1.0.tgz"))
            .env("HOME", scratch)
            .current_dir(&project),
    );
    let installed = project.join("node_modules/.bin/zeph-host");
    says_its_version(&installed);
    // The exit code is the program's own.
    let mut refused = command(&installed);
    refused.args(["call", "read", "path=/etc/passwd"]);
    refused.current_dir(&project);
    assert_ne!(run_apart(&mut refused, scratch).status.code(), Some(0));
    // Without the package for this machine, it says what is missing.
    fs::remove_dir_all(project.join("node_modules/zeph-host-linux-x64")).unwrap();
    let output = command(&installed).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("the package `zeph-host-linux-x64` is not installed"),
        "{said}"
    );
}

fn wheel(made: &Made, scratch: &Path) {
    if !has("python3") {
        return;
    }
    let place = scratch.join("python");
    let made_place = command("python3")
        .args(["-m", "venv"])
        .arg(&place)
        .output()
        .unwrap();
    if !made_place.status.success() {
        drop(writeln!(
            std::io::stderr(),
            "skipped: Python makes no environments here"
        ));
        return;
    }
    let pip = || command(place.join("bin/pip"));
    let wheel = made.file(".whl");
    succeed(
        pip()
            .args(["install", "--no-index", "--disable-pip-version-check"])
            .arg(&wheel),
    );
    says_its_version(&place.join("bin/zeph-host"));
    succeed(pip().args(["uninstall", "--yes", "zeph-host"]));
    assert!(!place.join("bin/zeph-host").exists());
}

/// The root of the image holds the program and nothing else that could be started; a static program starts in it.
fn container(made: &Made, scratch: &Path) {
    let packed = fs::File::open(made.file("-container.tar.gz")).unwrap();
    let folder = scratch.join("container");
    tar::Archive::new(GzDecoder::new(packed))
        .unpack(&folder)
        .unwrap();
    let image = fs::read_dir(&folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let containerfile = fs::read_to_string(image.join("Containerfile")).unwrap();
    assert!(
        containerfile.contains("\nFROM scratch\n"),
        "{containerfile}"
    );
    let mut programs = Vec::new();
    let root = fs::File::open(image.join("rootfs.tar")).unwrap();
    for entry in tar::Archive::new(root).entries().unwrap() {
        let entry = entry.unwrap();
        let is_file = entry.header().entry_type().is_file();
        if is_file && entry.header().mode().unwrap() & 0o111 != 0 {
            programs.push(entry.path().unwrap().display().to_string());
        }
    }
    assert_eq!(programs, ["usr/bin/zeph-host"]);
    let root = folder.join("root");
    fs::create_dir(&root).unwrap();
    // As root, with its owners; the user of the image is a number that others have no right to give away.
    tar::Archive::new(fs::File::open(image.join("rootfs.tar")).unwrap())
        .unpack(&root)
        .unwrap();
    let certificates = fs::read_to_string(root.join("etc/ssl/certs/ca-certificates.crt")).unwrap();
    assert!(certificates.matches("BEGIN CERTIFICATE").count() > 100);
    if made.is_given && has("bwrap") {
        let inside = |args: &[&str]| {
            let mut bwrap = command("bwrap");
            bwrap.args([
                "--unshare-all",
                "--clearenv",
                "--setenv",
                "HOME",
                "/tmp",
                "--bind",
            ]);
            bwrap
                .arg(&root)
                .args(["/", "--proc", "/proc", "--dev", "/dev", "--chdir", "/work"]);
            succeed(bwrap.arg("/usr/bin/zeph-host").args(args))
        };
        assert_eq!(inside(&["--version"]).trim(), "zeph-host 0.1.0");
        inside(&["call", "write", "path=notes.txt", "content=hello world"]);
        assert!(inside(&["call", "grep", "pattern=hello"]).contains("notes.txt:1"));
    }
}

/// What CycloneDX 1.6 requires, and that all that is named is there.
fn bill(made: &Made) {
    let bill: Value = serde_json::from_slice(&fs::read(made.file(".cdx.json")).unwrap()).unwrap();
    assert_eq!(bill["bomFormat"], "CycloneDX");
    assert_eq!(bill["specVersion"], "1.6");
    let serial = bill["serialNumber"].as_str().unwrap();
    assert!(
        serial.starts_with("urn:uuid:") && serial.len() == 45,
        "{serial}"
    );
    let components = bill["components"].as_array().unwrap();
    let mut known: Vec<&str> = vec![bill["metadata"]["component"]["bom-ref"].as_str().unwrap()];
    for component in components {
        for required in ["type", "name", "version", "bom-ref"] {
            assert!(component[required].is_string(), "{component}");
        }
        known.push(component["bom-ref"].as_str().unwrap());
    }
    let n_known = known.len();
    known.sort_unstable();
    known.dedup();
    assert_eq!(known.len(), n_known, "one number for each component");
    for dependency in bill["dependencies"].as_array().unwrap() {
        let others = dependency["dependsOn"].as_array().unwrap();
        for named in others.iter().chain([&dependency["ref"]]) {
            let named = named.as_str().unwrap();
            assert!(
                known.binary_search(&named).is_ok(),
                "no component `{named}`"
            );
        }
    }
    // Of the program, of a guest, of what is embedded, and of the compiler.
    for name in ["wasmtime", "tree-sitter", "seccompiler", "musl"] {
        let stands = components.iter().any(|component| {
            component["name"]
                .as_str()
                .is_some_and(|it| it.starts_with(name))
        });
        assert!(stands, "no `{name}`");
    }
}

/// Every crate of the bill stands in the list of licences.
fn licences(made: &Made) {
    let list = fs::read_to_string(made.file("THIRD-PARTY.txt")).unwrap();
    let bill: Value = serde_json::from_slice(&fs::read(made.file(".cdx.json")).unwrap()).unwrap();
    let components = bill["components"].as_array().unwrap();
    for component in components
        .iter()
        .filter(|component| component["hashes"].is_array())
    {
        let (name, version) = (
            component["name"].as_str().unwrap(),
            component["version"].as_str().unwrap(),
        );
        assert!(
            list.contains(&format!("\n{name} {version}: ")),
            "{name} {version}"
        );
    }
}

/// Runs with a home of its own.
fn run_apart(command: &mut Command, home: &Path) -> Output {
    let home = home.join("home");
    fs::create_dir_all(&home).unwrap();
    command.env("HOME", home).output().unwrap()
}

fn says_its_version(program: &Path) {
    let said = succeed(command(program).arg("--version"));
    assert_eq!(said.trim(), "zeph-host 0.1.0");
}

/// The components of this build, as its build script packs them.
fn components(folder: &Path) {
    for embedded in zeph_bundle::COMPONENTS.iter().chain(zeph_bundle::FILTERS) {
        let name = format!("GUEST_{}.packed", embedded.name.to_uppercase());
        let packed = zstd::bulk::compress(&(embedded.bytes)(), 1).unwrap();
        fs::write(folder.join(name), packed).unwrap();
    }
}

/// Twice in a row, with the digests that the program knows, everything inside that sources name, and a lock that cargo takes as it is.
#[test]
fn crates_hold_all_they_are_made_of() {
    let scratch = tempfile::tempdir().unwrap();
    let packed = scratch.path().join("components");
    fs::create_dir(&packed).unwrap();
    components(&packed);
    let mut sums = Vec::new();
    for turn in ["one", "two"] {
        let out = scratch.path().join(turn);
        succeed(
            zeph_dist()
                .arg("package")
                .arg(&out)
                .arg("--fast")
                .arg("--components")
                .arg(&packed),
        );
        sums.push(fs::read_to_string(out.join("SHA256SUMS")).unwrap());
    }
    assert_eq!(sums[0], sums[1]);
    let out = scratch.path().join("one");
    let sources = fs::File::open(out.join("zeph-host-0.1.0-source.tar.gz")).unwrap();
    tar::Archive::new(GzDecoder::new(sources))
        .unpack(&out)
        .unwrap();
    let sources = out.join("zeph-host-0.1.0-source");
    for embedded in zeph_bundle::COMPONENTS {
        let name = format!("GUEST_{}.digest", embedded.name.to_uppercase());
        let digest = fs::read_to_string(sources.join("zeph-bundle/prebuilt").join(name)).unwrap();
        assert_eq!(digest, embedded.digest);
    }
    named_files_are_inside(&sources, &sources);
    let mut metadata = command(env!("CARGO"));
    metadata.args(["metadata", "--locked", "--offline", "--format-version", "1"]);
    // Crates of other platforms are not there.
    let about = succeed(command("rustc").arg("-vV"));
    let platform = about.lines().find_map(|line| line.strip_prefix("host: "));
    metadata.args(["--filter-platform", platform.unwrap()]);
    let metadata = succeed(metadata.current_dir(&sources));
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let own = packages
        .iter()
        .filter(|package| package["source"].is_null());
    assert_eq!(
        own.count(),
        fs::read_dir(&out)
            .unwrap()
            .filter(|entry| {
                entry
                    .as_ref()
                    .unwrap()
                    .path()
                    .extension()
                    .is_some_and(|end| end == "crate")
            })
            .count()
    );
}

/// Whether the files that sources name, where they name them in full, are there.
fn named_files_are_inside(root: &Path, folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            named_files_are_inside(root, &path);
            continue;
        }
        if path.extension().is_none_or(|end| end != "rs")
            || path.components().any(|part| part.as_os_str() == "shared")
        {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let naming = ["include_str!(\"", "include_bytes!(\"", "#[path = \""];
        for named in naming.iter().flat_map(|naming| text.split(naming).skip(1)) {
            let named = named.split('"').next().unwrap();
            // What tests alone read may be left out.
            if named.contains("tests") {
                continue;
            }
            let file = path.parent().unwrap().join(named);
            let inside = file
                .canonicalize()
                .is_ok_and(|file| file.starts_with(root.canonicalize().unwrap()));
            assert!(inside, "{}: {named}", path.display());
        }
    }
}
