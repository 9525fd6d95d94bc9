//! `plugin sync` and `plugin bundle`: a folder as its lock says, with and without a network.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::registry::docker_registry::DockerRegistry;
use super::{WANTS, WANTS_MORE, wanting, with_section};
use crate::product::Product;

impl Product {
    /// The lock beside the folder of plugins.
    pub(super) fn lock(&self) -> PathBuf {
        self.home.join(".local/share/zeph-host/zeph.lock")
    }

    pub(super) fn lock_text(&self) -> String {
        fs::read_to_string(self.lock()).unwrap()
    }

    /// Writes the operator's configuration.
    pub(super) fn configure(&self, text: &str) {
        let folder = self.home.join(".config/zeph-host");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), text).unwrap();
    }

    fn component(&self, name: &str) -> PathBuf {
        self.plugins().join(format!("{name}.wasm"))
    }
}

/// Name and action of each line, as `sync` says.
fn actions(synced: &Value) -> Vec<(String, String, bool)> {
    let plugins = synced["plugins"].as_array().unwrap();
    let line = |plugin: &Value| {
        let text = |key: &str| plugin[key].as_str().unwrap().to_owned();
        (text("name"), text("action"), plugin["done"] == true)
    };
    plugins.iter().map(line).collect()
}

fn line(name: &str, action: &str, done: bool) -> (String, String, bool) {
    (name.to_owned(), action.to_owned(), done)
}

/// A product with the plugin `notes`, which came from `notes.wasm`, as the lock says.
fn with_notes(manifest: &str) -> Product {
    let product = Product::new();
    product.file("notes.wasm", wanting(manifest));
    product.plugin_json(&["add", "notes.wasm"]);
    product
}

fn bundled(product: &Product, file: &str) -> Vec<u8> {
    product.plugin_json(&["bundle", file, "--force"]);
    fs::read(product.work.join(file)).unwrap()
}

#[test]
fn a_folder_is_brought_in_line_with_its_lock() {
    let product = with_notes(WANTS);
    let source = product.work.join("notes.wasm");
    let text = product.lock_text();
    let expect = format!("source = {{ file = \"{}\" }}", source.display());
    assert!(
        text.contains("version = 3\n") && text.contains(&expect),
        "{text}"
    );
    let done = [line("notes", "keep", true)];
    assert_eq!(actions(&product.plugin_json(&["sync"])), done);

    fs::remove_file(product.component("notes")).unwrap();
    let planned = product.plugin_json(&["sync", "--dry-run"]);
    assert_eq!(actions(&planned), [line("notes", "install", false)]);
    assert!(!product.component("notes").exists());
    let synced = product.plugin_json(&["sync"]);
    assert_eq!(actions(&synced), [line("notes", "install", true)]);

    product.drop_in("notes", b"something else");
    product.drop_in("other", &wanting(WANTS_MORE));
    let synced = product.plugin_json(&["sync"]);
    let expect = [
        line("notes", "replace", true),
        line("other.wasm", "beyond", false),
    ];
    assert_eq!(actions(&synced), expect);
    assert_eq!(
        fs::read(product.component("notes")).unwrap(),
        wanting(WANTS)
    );
    product.refuses(&["sync", "--prune"], 5, &["--prune --yes"]);
    assert!(product.component("other").exists());
    let synced = product.plugin_json(&["sync", "--prune", "--yes"]);
    assert_eq!(actions(&synced)[1], line("other.wasm", "beyond", true));
    assert!(!product.component("other").exists());
    assert_eq!(product.lock_text(), text);
    let ran = product.run(&["call", "echo", "text=hello"]);
    assert_eq!(ran.stdout, "hello\n", "{ran:?}");
}

#[test]
fn what_is_not_what_the_lock_pins_is_not_installed() {
    let product = with_notes(WANTS);
    product.file("notes.wasm", wanting(WANTS_MORE));
    fs::remove_file(product.component("notes")).unwrap();
    product.refuses(&["sync"], 1, &["is not what the lock pins"]);
    assert!(!product.component("notes").exists());
    // A lock that a repository edited: another digest, another source, a name that leaves the folder.
    let text = product.lock_text();
    let fifo = product.work.join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    let source = product.work.join("notes.wasm").display().to_string();
    for (from, to, code, expect) in [
        (
            source.as_str(),
            "/etc/passwd",
            1,
            "is not what the lock pins",
        ),
        (&source, fifo.to_str().unwrap(), 1, "regular file"),
        (&source, "/nowhere/x", 1, "cannot be read"),
        (
            "name = \"notes\"",
            "name = \"../notes\"",
            2,
            "cannot be the name",
        ),
    ] {
        fs::write(product.lock(), text.replacen(from, to, 1)).unwrap();
        product.refuses(&["sync"], code, &[expect]);
    }
    let remote = format!("{{ file = \"{source}\" }}");
    for (to, expect) in [
        (
            "{ url = \"https://169.254.169.254/x.wasm\" }",
            "metadata service",
        ),
        (
            "{ reference = \"registry.example.org/a/b:1\", manifest = \"sha256:0707070707070707070707070707070707070707070707070707070707070707\" }",
            "not one of the registries",
        ),
    ] {
        fs::write(product.lock(), text.replacen(&remote, to, 1)).unwrap();
        let ran = product.plugin(&["sync"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(expect), "{expect}: {}", ran.stderr);
    }
}

#[test]
fn a_bundle_installs_on_a_machine_without_a_network() {
    let here = with_notes(WANTS);
    let bundle = bundled(&here, "plugins.bundle");
    assert_eq!(bundled(&here, "again.bundle"), bundle);
    here.refuses(&["bundle", "again.bundle"], 2, &["--force"]);

    let there = Product::new();
    there.file("plugins.bundle", &bundle);
    let sync = ["sync", "--from", "plugins.bundle"];
    there.refuses(&sync, 5, &["--from plugins.bundle --yes"]);
    let asked = there.plugin(&[&sync[..], &["--json"]].concat());
    assert_eq!(asked.code, Some(5), "{asked:?}");
    let asked: Value = serde_json::from_str(&asked.stdout).unwrap();
    assert_eq!(actions(&asked), [line("notes", "install", false)]);
    assert_eq!(asked["plugins"][0]["needs_consent"], true, "{asked}");
    assert!(!there.component("notes").exists() && !there.lock().exists());
    let planned = there.plugin_json(&[&sync[..], &["--dry-run"]].concat());
    assert_eq!(actions(&planned), [line("notes", "install", false)]);
    let synced = there.plugin_json(&[&sync[..], &["--yes"]].concat());
    assert_eq!(actions(&synced), [line("notes", "install", true)]);
    let ran = there.run(&["call", "echo", "text=hello"]);
    assert_eq!(ran.stdout, "hello\n", "{ran:?}");
    // The same bundle again, which needs nobody.
    let synced = there.plugin_json(&sync);
    assert_eq!(actions(&synced), [line("notes", "keep", true)]);
    // The lock is the other one's, but for when it was accepted.
    let pins = |text: String| {
        let (_, plugins) = text.split_once("[[plugin]]").unwrap();
        let lines = plugins.lines();
        let lines = lines.filter(|line| !line.starts_with("accepted = "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(pins(there.lock_text()), pins(here.lock_text()));

    // Another version: shown, agreed to, and what was granted stays.
    there.plugin_json(&["grant", "notes", "--host", "api.example.com"]);
    here.file("notes.wasm", wanting(WANTS_MORE));
    here.plugin_json(&["update", "notes", "--yes"]);
    there.file("plugins.bundle", bundled(&here, "plugins.bundle"));
    there.refuses(&sync, 5, &["is pinned otherwise", "requests more", "--yes"]);
    assert_eq!(fs::read(there.component("notes")).unwrap(), wanting(WANTS));
    let kept = there.plugin_json(&[&sync[..], &["--locked"]].concat());
    assert_eq!(actions(&kept), [line("notes", "keep", true)]);
    let synced = there.plugin_json(&[&sync[..], &["--yes"]].concat());
    assert_eq!(actions(&synced), [line("notes", "replace", true)]);
    assert_eq!(synced["plugins"][0]["adopted"], true, "{synced}");
    let info = there.plugin_json(&["info", "notes"]);
    assert_eq!(info["status"], "active", "{info}");
    assert_eq!(info["wants"][1]["is_granted"], true, "{info}");
}

/// Of what nobody signed the tags count, as for `plugin add` and `plugin update`, whatever its author says.
#[test]
fn versions_in_a_bundle_are_counted_by_their_tags() {
    let Some(registry) = DockerRegistry::start(false) else {
        return;
    };
    let host = format!("127.0.0.1:{}", registry.port);
    let product = || {
        let product = Product::new();
        product.configure(&format!(
            "[[plugins.registries]]\nhost = \"{host}\"\nplain_http = true\nprivate = true\n"
        ));
        product
    };
    for (name, version) in [("unchanged", "0.1.0"), ("unversioned", "nightly")] {
        let [old, new] = [(WANTS, "1.0.0"), (WANTS_MORE, "1.2.0")].map(|(manifest, tag)| {
            let product = product();
            let reference = format!("{host}/org/{name}:{tag}");
            let plugin = with_section(&wanting(manifest), "version", version.as_bytes());
            product.file("x.wasm", plugin);
            product.plugin_json(&["publish", "x.wasm", &reference]);
            product.plugin_json(&["add", &reference]);
            product
        });
        let (older, newer) = (bundled(&old, "b"), bundled(&new, "b"));
        let sync = ["sync", "--from", "b", "--yes"];
        new.file("b", older);
        new.refuses(&sync, 5, &["the later version 1.2.0", "--accept downgrade"]);
        old.file("b", newer);
        let synced = old.plugin_json(&sync);
        assert_eq!(actions(&synced), [line(name, "replace", true)]);
        let lock = old.lock_text();
        assert!(lock.contains("version = \"1.2.0\""), "{lock}");
    }
}

/// The tag in a bundle is the word of who made it: an older build under a later tag is a downgrade, and hides no release.
#[test]
fn a_tag_that_a_bundle_invented_counts_for_nothing() {
    let Some(registry) = DockerRegistry::start(false) else {
        return;
    };
    let host = format!("127.0.0.1:{}", registry.port);
    let product = |tag: &str| {
        let product = Product::new();
        product.configure(&format!(
            "[[plugins.registries]]\nhost = \"{host}\"\nplain_http = true\nprivate = true\n"
        ));
        product.file(
            "old.wasm",
            with_section(&wanting(WANTS), "version", b"1.1.0"),
        );
        product.file(
            "new.wasm",
            with_section(&wanting(WANTS_MORE), "version", b"1.2.0"),
        );
        for (file, tag) in [("old.wasm", "1.1.0"), ("new.wasm", "1.2.0")] {
            product.plugin_json(&["publish", file, &format!("{host}/org/x:{tag}")]);
        }
        product.plugin_json(&["add", &format!("{host}/org/x:{tag}")]);
        product
    };
    let old = product("1.1.0");
    let yes = ["sync", "--from", "b", "--yes"];
    let told = [
        "its component says",
        "1.1.0",
        "later version 1.2.0",
        "--accept downgrade",
    ];
    // A tag that nobody offers, and one that stands for another release.
    for tag in ["9.9.9", "1.2.0"] {
        let mut bundle = bundled(&old, "b");
        let (from, to) = (b"org/x:1.1.0", format!("org/x:{tag}"));
        let at = bundle.windows(from.len()).position(|some| some == from);
        let at = at.unwrap();
        bundle[at..at + to.len()].copy_from_slice(to.as_bytes());
        let there = product("1.2.0");
        there.file("b", &bundle);
        let before = there.lock_text();
        there.refuses(&yes, 5, &told);
        assert_eq!(there.lock_text(), before);
        there.plugin_json(&[&yes[..], &["--accept", "downgrade"]].concat());
        let outdated = there.plugin_json(&["outdated"]);
        assert_eq!(outdated[0]["newest"], "1.2.0", "{tag}: {outdated}");
    }
}

#[test]
fn a_bundle_that_was_changed_is_refused() {
    let here = with_notes(WANTS);
    let good = bundled(&here, "plugins.bundle");
    let there = Product::new();
    let sync = ["sync", "--from", "b", "--yes"];
    there.refuses(&sync, 2, &["cannot be read"]);
    for cut in [0, 100, 512, 1024, good.len() / 2, good.len() - 1] {
        there.file("b", &good[..cut]);
        there.refuses(&sync, 2, &["no bundle of plugins"]);
    }
    // A byte of the component, which stands last.
    let mut changed = good.clone();
    let at = changed.len() - 4096;
    changed[at] ^= 1;
    there.file("b", &changed);
    there.refuses(&sync, 1, &["another digest"]);
    // Definitions of the lock that a person would be shown.
    let text = String::from_utf8_lossy(&good);
    let from = b"It reads what it is told to.";
    let to = b"It reads what it is sold to.";
    assert!(text.contains("It reads what it is told to."));
    let mut changed = good.clone();
    let at = changed.windows(from.len()).position(|some| some == from);
    let at = at.unwrap();
    changed[at..at + to.len()].copy_from_slice(to);
    there.file("b", &changed);
    there.refuses(&sync, 1, &["do not have the digest"]);
    assert!(!there.component("notes").exists() && !there.lock().exists());
}

#[test]
fn two_commands_at_once_do_not_disturb_each_other() {
    let product = with_notes(WANTS);
    for _ in 0..3 {
        fs::remove_file(product.component("notes")).unwrap();
        let ran: Vec<_> = std::thread::scope(|scope| {
            let runs: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| product.plugin(&["sync", "--json"])))
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        // Each waits for the one before.
        for ran in &ran {
            assert_eq!(ran.code, Some(0), "{ran:?}");
        }
        assert_eq!(
            fs::read(product.component("notes")).unwrap(),
            wanting(WANTS)
        );
        let files = fs::read_dir(product.plugins()).unwrap().count();
        assert_eq!(files, 1);
    }
}

/// A key pair, and the configuration that trusts it with files.
fn signer(product: &Product, name: &str) -> String {
    let key = format!("{name}.key");
    if !product.work.join(&key).exists() {
        product.plugin_json(&["keygen", &key, "--no-password"]);
    }
    let public = product.read(&format!("{name}.pub"));
    let line = public.lines().nth(1).unwrap();
    format!("[[plugins.trust.signers]]\nname = \"{name}\"\nkey = \"{line}\"\noffers = [\"*\"]\n")
}

#[test]
fn the_lock_pins_the_signer_and_the_configuration_says_who_may_sign() {
    let here = Product::new();
    let (team, eve) = (signer(&here, "team"), signer(&here, "eve"));
    let strict = |signers: &str| format!("[plugins.trust]\nunsigned = \"refuse\"\n{signers}");
    here.configure(&strict(&team));
    let plugin = with_section(&wanting(WANTS), "version", b"1.0.0");
    here.file("notes.wasm", &plugin);
    here.refuses(&["add", "notes.wasm"], 1, &["notes", "sign"]);
    here.plugin_json(&["sign", "notes.wasm", "--key", "team.key"]);
    here.plugin_json(&["add", "notes.wasm"]);
    let text = here.lock_text();
    assert!(
        text.contains("signer = { name = \"team\", key = \"minisign "),
        "{text}"
    );
    let bundle = bundled(&here, "b");

    let there = |signers: &str| {
        let there = Product::new();
        there.configure(signers);
        there.file("b", &bundle);
        there
    };
    let sync = ["sync", "--from", "b", "--yes"];
    let good = there(&strict(&team));
    good.plugin_json(&sync);
    assert!(good.plugins().join("notes.wasm.minisig").exists());
    assert_eq!(good.plugin_json(&["info", "notes"])["status"], "active");
    // Signers of the lock give nobody a right.
    let stranger = there(&strict(&eve));
    stranger.refuses(&sync, 1, &["notes"]);
    assert!(!stranger.component("notes").exists() && !stranger.lock().exists());
    let lax = there(&eve);
    let told = ["pins the signer `team`", "plugins.trust.signers"];
    lax.refuses(&sync, 1, &told);

    // Another signer has to be named, even with `--yes`.
    here.configure(&strict(&format!("{team}{eve}")));
    let newer = with_section(&wanting(WANTS), "version", b"0.9.0");
    here.file("notes.wasm", &newer);
    fs::remove_file(here.work.join("notes.wasm.minisig")).unwrap();
    here.plugin_json(&["sign", "notes.wasm", "--key", "eve.key"]);
    let told = &[
        "it is signed by `eve`",
        "later version 1.0.0",
        "--accept signer --accept downgrade",
    ];
    here.refuses(&["update", "notes", "--yes"], 5, told);
    let accept = ["--accept", "signer", "--accept", "downgrade"];
    here.plugin_json(&[&["update", "notes", "--yes"][..], &accept].concat());
    assert!(here.lock_text().contains("name = \"eve\""));
    good.configure(&strict(&format!("{team}{eve}")));
    good.file("b", bundled(&here, "b"));
    good.refuses(&sync, 5, told);
    let synced = good.plugin_json(&[&sync[..], &accept].concat());
    assert_eq!(actions(&synced), [line("notes", "replace", true)]);
    assert_eq!(fs::read(good.component("notes")).unwrap(), newer);
    let bytes = |path: &Path| fs::read(path).unwrap();
    assert_eq!(
        bytes(&good.plugins().join("notes.wasm.minisig")),
        bytes(&here.plugins().join("notes.wasm.minisig"))
    );
}

#[test]
fn a_signer_may_be_called_otherwise_where_a_bundle_comes_from() {
    let here = Product::new();
    let team = signer(&here, "team");
    here.configure(&team);
    here.file("notes.wasm", wanting(WANTS));
    here.plugin_json(&["sign", "notes.wasm", "--key", "team.key"]);
    here.plugin_json(&["add", "notes.wasm"]);
    let there = Product::new();
    there.configure(&team.replace("\"team\"", "\"partner\""));
    there.file("b", bundled(&here, "b"));
    there.plugin_json(&["sync", "--from", "b", "--yes"]);
    let lock = there.lock_text();
    assert!(lock.contains("signer = { name = \"partner\""), "{lock}");
}

/// The lock of a bundle is its author's word: versions and signers are those that are found of the components.
#[test]
fn what_a_bundle_says_of_versions_and_signers_is_not_believed() {
    let here = Product::new();
    let team = signer(&here, "team");
    here.configure(&team);
    here.file(
        "notes.wasm",
        with_section(&wanting(WANTS), "version", b"1.0.0"),
    );
    here.plugin_json(&["sign", "notes.wasm", "--key", "team.key"]);
    here.plugin_json(&["add", "notes.wasm"]);
    let mut bundle = bundled(&here, "b");
    let (from, to) = (b"version = \"1.0.0\"", b"version = \"9.0.0\"");
    let at = bundle.windows(from.len()).position(|some| some == from);
    let at = at.unwrap();
    bundle[at..at + to.len()].copy_from_slice(to);
    let sync = ["sync", "--from", "b"];

    let stranger = Product::new();
    stranger.file("b", &bundle);
    stranger.refuses(
        &sync,
        5,
        &["not signed by a known signer", "the bundle says"],
    );
    stranger.plugin_json(&[&sync[..], &["--yes"]].concat());
    let lock = stranger.lock_text();
    assert!(
        !lock.contains("signer = ") && lock.contains("version = \"1.0.0\""),
        "{lock}"
    );

    let newer = Product::new();
    newer.configure(&team);
    newer.file("b", &bundle);
    let plugin = with_section(&wanting(WANTS_MORE), "version", b"2.0.0");
    newer.file("notes.wasm", plugin);
    newer.plugin_json(&["add", "notes.wasm"]);
    let yes = [&sync[..], &["--yes"]].concat();
    newer.refuses(&yes, 5, &["the later version 2.0.0", "--accept downgrade"]);
}
