use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Barrier;

use proptest::prelude::*;
use serde_json::json;
use zeph_core::capability::{Capability, LimitName};
use zeph_core::id::{Digest, Pin, PluginId};
use zeph_core::manifest::Manifest;

use super::{
    LOCK_BYTES_MAX, Lock, LockError, LockFile, LockedPlugin, NextVersion, PinnedSigner,
    PluginSource, Provenance, read, write,
};
use crate::definitions::Definitions;
use crate::definitions::tests::{tool, want, wants, with_schema};
use crate::visible::is_hidden;

/// 2026-11-20T08:00:00Z.
const ACCEPTED_MS: i64 = 1_795_161_600_000;

fn plugin(name: &str) -> LockedPlugin {
    let definitions = Definitions::new(Vec::new(), vec![tool("shout")]).unwrap();
    LockedPlugin {
        name: PluginId(name.to_owned()),
        file: format!("{name}.wasm"),
        pin: Pin {
            wasm: Digest::new([7; 32]),
            tools: definitions.digest(),
        },
        accepted_at_ms: ACCEPTED_MS,
        disabled: false,
        operator_wants: false,
        provenance: None,
        next: None,
        definitions,
    }
}

fn lock_of(plugins: impl IntoIterator<Item = LockedPlugin>) -> Lock {
    let mut lock = Lock::default();
    plugins.into_iter().for_each(|plugin| lock.put(plugin));
    lock
}

fn parse(text: &str) -> Result<Lock, LockError> {
    read::lock(text, Path::new("/home/zeph.lock"))
}

/// Adds plugins of these names, however long others hold the file.
fn add(path: &Path, names: &[&str]) {
    let add = |lock: &mut Lock| {
        names.iter().for_each(|name| lock.put(plugin(name)));
        Ok::<_, LockError>(())
    };
    while let Err(error) = LockFile::edit(path, add) {
        assert!(matches!(error, LockError::Held { .. }), "{error:?}");
    }
}

fn names(path: &Path) -> Vec<String> {
    let lock = Lock::read(path).unwrap();
    lock.plugins()
        .iter()
        .map(|plugin| plugin.name.0.clone())
        .collect()
}

#[test]
fn the_file_is_made_for_people() {
    let mut notes = plugin("notes");
    let mut search = tool("search");
    search.description = "Finds notes.\n\nSays \"nothing\" when there are none.\n".to_owned();
    search.annotations.read_only = true;
    search.annotations.idempotent = true;
    search.title = None;
    search.output = None;
    notes.definitions = Definitions::new(wants(), vec![tool("keep"), search]).unwrap();
    notes.disabled = true;
    let mut bare = plugin("bare");
    bare.definitions = Definitions::default();
    let text = write::text(&lock_of([notes, bare]));
    let expect = include_str!("tests/sample.lock");
    assert_eq!(text, expect, "{text}");
}

/// Everything a plugin says comes back exactly, and no character of it is hidden in the file.
fn check_round(plugins: Vec<LockedPlugin>) {
    let text = write::text(&lock_of(plugins.clone()));
    let lock = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for (read, written) in lock.plugins().iter().zip(&plugins) {
        assert_eq!(
            (&read.name, &read.file, read.pin),
            (&written.name, &written.file, written.pin)
        );
        assert_eq!(read.accepted_at_ms, written.accepted_at_ms);
        assert_eq!(read.disabled, written.disabled);
        assert_eq!(
            (&read.provenance, &read.next),
            (&written.provenance, &written.next)
        );
        assert_eq!(read.definitions.wants(), written.definitions.wants());
        assert_eq!(
            read.definitions.digest(),
            written.definitions.digest(),
            "{text}"
        );
    }
    assert_eq!(lock.plugins().len(), plugins.len());
    assert_eq!(write::text(&lock), text);
    assert!(
        !text.contains(|character| is_hidden(character) && character != '\n'),
        "{text:?}"
    );
}

/// A plugin that says `text` wherever it can.
fn saying(text: &str) -> LockedPlugin {
    let mut saying = tool("say");
    saying.title = Some(text.to_owned());
    saying.description = text.to_owned();
    with_schema(&mut saying, |schema| {
        schema[text] = json!({ "description": text });
    });
    saying.output = Some(json!({ text: [text, 0.151_002_163_278_080_03, u64::MAX, -1] }).into());
    let name = text.to_owned();
    let mut wants = wants();
    wants[2] = want(Capability::Program { name }, text);
    let mut plugin = plugin("saying");
    plugin.definitions = Definitions::new(wants, vec![saying]).unwrap();
    plugin
}

#[test]
fn whatever_a_plugin_says_comes_back() {
    let texts = [
        "",
        "\n",
        "\n\n a \n b \n",
        " \n ",
        "'''\n\"\"\"\n\"\"",
        "ends with a quote\n\"",
        "ends with a backslash\n\\",
        "a\\\n   line that goes on",
        "it's \"quoted\" \\u0041 \\n",
        "tab\t and \r\n and \x1b[2J \0 \x7f \u{9b}",
        "bidi \u{202e} zero \u{200b} tag \u{e0041} bom \u{feff} \u{2028}",
        "[[plugin]]\nname = \"evil\"",
        "# no comment\n\"\"\"\n[[plugin]]\nname = \"evil\"\n",
        "é 漢 😀",
    ];
    for text in texts {
        check_round(vec![plugin("first"), saying(text), plugin("last")]);
    }
}

proptest! {
    /// A lock that was edited is read as the same text again, or refused; it never crashes the reader.
    #[test]
    fn no_edited_lock_crashes_the_reader(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<char>()), 1..6),
        choice in 0..6_usize,
    ) {
        let mut notes = saying("hello");
        notes.provenance = provenances().into_iter().nth(choice);
        let mut text: Vec<char> = write::text(&lock_of([notes, plugin("last")])).chars().collect();
        for (at, character) in changes {
            let at = at.index(text.len());
            text[at] = character;
        }
        let text: String = text.into_iter().collect();
        if let Ok(lock) = parse(&text) {
            let again = write::text(&lock);
            prop_assert_eq!(write::text(&parse(&again).unwrap()), again);
        }
    }

    #[test]
    fn any_text_comes_back(text in any::<String>(), lines in "[a'\"\\\\ \n\r\t#=\\[\\]\u{202e}\u{e0041}]{0,40}") {
        check_round(vec![saying(&text), plugin("last")]);
        check_round(vec![saying(&lines)]);
    }
}

/// Where a plugin may be had from, with and without a version and a signer.
fn provenances() -> Vec<Provenance> {
    let manifest = Digest::new([3; 32]);
    let reference = "registry.example.org:5000/team/notes:1.2.0".to_owned();
    let url = "https://example.org/a.wasm?x=\"\u{202e}".to_owned();
    let sources = [
        PluginSource::Registry {
            reference,
            manifest,
        },
        PluginSource::Url { url },
        PluginSource::File {
            path: "/home/it's \n/a.wasm".into(),
        },
    ];
    let with = |source: PluginSource| Provenance {
        source,
        version: Some("1.2.0-rc.1+build.5".parse().unwrap()),
        signer: Some(PinnedSigner {
            name: "te\u{202e}am\"".to_owned(),
            key: "minisign E7620F1842B4E81F".to_owned(),
        }),
    };
    let without = |source: PluginSource| Provenance {
        source,
        version: None,
        signer: None,
    };
    let sources = sources.into_iter();
    sources
        .flat_map(|source| [with(source.clone()), without(source)])
        .collect()
}

#[test]
fn source_version_and_signer_come_back() {
    for provenance in provenances() {
        let mut known = plugin("known");
        known.provenance = Some(provenance.clone());
        let mut waiting = plugin("waiting");
        waiting.next = Some(NextVersion {
            wasm: Digest::new([9; 32]),
            provenance,
        });
        let text = write::text(&lock_of([known.clone()]));
        assert!(text.contains("\nversion = 3\n"), "{text}");
        check_round(vec![plugin("first"), known, waiting, plugin("last")]);
    }
}

#[test]
fn a_source_is_made_for_people() {
    let mut notes = plugin("notes");
    notes.provenance = provenances().into_iter().next();
    notes.provenance.as_mut().unwrap().signer = Some(PinnedSigner {
        name: "team".to_owned(),
        key: "minisign E7620F1842B4E81F".to_owned(),
    });
    let text = write::text(&lock_of([notes]));
    let manifest = "03".repeat(32);
    let expect = format!(
        "source = {{ reference = \"registry.example.org:5000/team/notes:1.2.0\", manifest = \"sha256:{manifest}\" }}
version = \"1.2.0-rc.1+build.5\"
signer = {{ name = \"team\", key = \"minisign E7620F1842B4E81F\" }}
"
    );
    assert!(text.contains(&expect), "{text}");
}

#[test]
fn a_source_that_makes_no_sense_is_refused_with_its_line() {
    let mut notes = plugin("notes");
    notes.provenance = provenances().into_iter().next();
    let good = write::text(&lock_of([notes]));
    let source = good
        .lines()
        .find(|line| line.starts_with("source"))
        .unwrap();
    let signer = good
        .lines()
        .find(|line| line.starts_with("signer"))
        .unwrap();
    let line = good
        .lines()
        .position(|line| line.starts_with("source"))
        .unwrap()
        + 1;
    let table = [
        (source, "source = {}", 0, "a source is"),
        (source, "source = { url = \"ftp://x\" }", 0, "begins with"),
        (source, "source = { file = \"a.wasm\" }", 0, "is absolute"),
        (
            source,
            "source = { file = \"/a\", url = \"https://x\" }",
            0,
            "a source is",
        ),
        (
            source,
            "source = { reference = \"a b/c\", manifest = \"sha256:0303030303030303030303030303030303030303030303030303030303030303\" }",
            0,
            "no reference",
        ),
        (source, "source = { where = \"x\" }", 0, "unknown field"),
        (source, "", 1, "belongs to a `source`"),
        ("1.2.0-rc.1+build.5", "1.2", 1, "no semantic version"),
        (
            signer,
            "signer = { name = \"\", key = \"k\" }",
            2,
            "1 to 2048 bytes",
        ),
    ];
    for (from, to, n_below, expect) in table {
        let error = parse(&good.replacen(from, to, 1)).unwrap_err();
        let told = error.to_string();
        assert!(told.contains(expect), "{to}: {told}");
        let at = format!("line {}:", line + n_below);
        assert!(told.contains(&at), "{to}: {told}, not {at}");
    }
}

#[test]
fn limits_beyond_what_toml_must_take_come_back() {
    let mut large = plugin("large");
    let capability = Capability::Limit {
        name: LimitName::MemoryBytes,
        value: u64::MAX,
    };
    large.definitions = Definitions::new(vec![want(capability, "all")], Vec::new()).unwrap();
    check_round(vec![large]);
}

/// A plugin whose manifest requests hosts by this name.
fn of_hosts(name: &str, more: &str) -> LockedPlugin {
    let text = format!("[[host]]\nname = \"{name}\"\n{more}reason = \"x\"\n");
    let manifest = Manifest::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut plugin = plugin("reaching");
    plugin.definitions = Definitions::new(manifest.wants, Vec::new()).unwrap();
    plugin.pin.tools = plugin.definitions.digest();
    plugin
}

#[test]
fn every_host_of_a_manifest_comes_back() {
    let named = ["*", "a.example.org", "*.example.org", "10.0.0.1", "[::1]"];
    let ports = ["", ":80", ":443", ":8443"];
    let named = named.map(|host| ports.map(|port| format!("{host}{port}")));
    let named = named.into_iter().flatten().chain(["*:*".to_owned()]);
    for name in named {
        for methods in ["", "methods = [\"GET\", \"POST\"]\n"] {
            for plain in ["", "plain_http = true\n"] {
                check_round(vec![of_hosts(&name, &format!("{methods}{plain}"))]);
            }
        }
    }
    // As it was once written of plain HTTP.
    let plain = of_hosts("*:*", "plain_http = true\n");
    let text = write::text(&lock_of([plain.clone()]));
    let lock = parse(&text.replace("\"*:*\"", "\"*:*:80\"")).unwrap();
    let read = lock.get(&plain.name).unwrap();
    assert_eq!(read.definitions.wants(), plain.definitions.wants());
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeph.lock");
    add(&path, &["first"]);
    let text = fs::read_to_string(&path).unwrap();
    let mut endless = plugin("second");
    endless.provenance = Some(Provenance {
        source: PluginSource::Url {
            url: format!("https://example.org/{}", "a".repeat(3000)),
        },
        version: None,
        signer: None,
    });
    let put = |lock: &mut Lock| {
        lock.put(endless);
        Ok::<_, LockError>(())
    };
    let error = LockFile::edit(&path, put).unwrap_err();
    assert!(error.told().contains("at most 2048 bytes"), "{error:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_change_of_one_plugin_leaves_the_text_of_the_others() {
    let mut lock = lock_of(["one", "two", "three"].map(plugin));
    let before = write::text(&lock);
    let two = PluginId("two".to_owned());
    let block = |text: &str, name: &str| {
        let blocks = text.split("\n[[plugin]]\n");
        let start = format!("name = \"{name}\"\n");
        blocks
            .filter(|block| block.starts_with(&start))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    lock.get_mut(&two).unwrap().disabled = true;
    let mut again = saying("something else");
    again.name = two.clone();
    lock.put(again);
    let after = write::text(&lock);
    assert_ne!(block(&before, "two"), block(&after, "two"));
    for name in ["one", "three"] {
        assert_eq!(block(&before, name).len(), 1);
        assert_eq!(block(&before, name), block(&after, name));
    }
    let order: Vec<_> = lock
        .plugins()
        .iter()
        .map(|plugin| plugin.name.0.as_str())
        .collect();
    assert_eq!(order, ["one", "two", "three"]);
    assert!(lock.remove(&two).is_some());
    assert!(lock.remove(&two).is_none());
    let without = write::text(&lock_of(["one", "three"].map(plugin)));
    assert_eq!(write::text(&lock), without);
}

/// A good file with `from` replaced by `to`: what is said, so many lines below the change.
fn check_broken(from: &str, to: &str, n_below: usize, expect: &str) {
    let good = write::text(&lock_of([saying("hello"), plugin("last")]));
    let place = good
        .find(from)
        .unwrap_or_else(|| panic!("no {from}\n{good}"));
    let expect_line = good[..place].lines().count().max(1) + n_below;
    let expect_line = expect_line + usize::from(good[..place].ends_with('\n'));
    let error = parse(&good.replacen(from, to, 1)).unwrap_err();
    let LockError::Broken { line, problem, .. } = &error else {
        panic!("{from} → {to}: {error:?}");
    };
    assert!(problem.contains(expect), "{from} → {to}: {error}");
    assert_eq!(*line, expect_line, "{from} → {to}: {error}");
    let told = error.told();
    let is_whole =
        told.starts_with("`/home/zeph.lock`, line ") && told.contains("restore the file");
    assert!(is_whole, "{told}");
}

#[test]
fn what_is_not_entirely_right_is_refused_with_its_line() {
    let host = "kind = \"host\"";
    let accepted = "accepted = 2026-11-20T08:00:00Z";
    let table = [
        ("version = 1", "version = 0", 0, "no version 0"),
        (
            "version = 1",
            "version = 1\nsigned = true",
            1,
            "unknown field `signed`",
        ),
        (
            "[[plugin]]\nname = \"last\"",
            "<<<<<<< HEAD\n=======\n[[plugin]]\nname = \"last\"\n>>>>>>> other",
            0,
            "a merge left a conflict; keep one side",
        ),
        ("file = ", "files = ", 0, "unknown field `files`"),
        (
            "kind = \"other\"",
            "kind = \"other\"\nx = 1",
            1,
            "unknown field `x`",
        ),
        ("wasm = \"sha256:07", "wasm = \"sha256:7", 0, "a digest is"),
        ("tools = \"sha", "tools = sha", 0, ""),
        (
            accepted,
            "accepted = 2026-11-20",
            0,
            "is not a time such as",
        ),
        (accepted, "disabled = 1", 0, "expected a boolean"),
        (
            "rights = \"read+write\"",
            "rights = \"read+fly\"",
            0,
            "`fly` is not a right",
        ),
        (host, "kind = \"all\"", 0, "unknown variant `all`"),
        (host, "port = 1, kind = \"host\"", 0, "unknown field `port`"),
        (host, "value = 1, kind = \"host\"", 0, "has other keys"),
        (host, "kind = \"directory\"", 0, "has other keys"),
        (
            "name = \"memory_bytes\"",
            "name = \"stars\"",
            0,
            "`stars` is not a limit",
        ),
        (
            "annotations = []",
            "annotations = [\"safe\"]",
            0,
            "unknown variant `safe`",
        ),
        ("parameters = '{", "parameters = '{{", 0, "not valid JSON"),
        (
            "\"type\":\"object\"}'",
            "\"type\":\"string\"}'",
            0,
            "\"type\": \"object\"",
        ),
        ("name = \"say\"", "name = \"s a y\"", 0, "a tool name has"),
        (
            "name = \"last\"",
            "name = \"saying\"",
            0,
            "for the second time",
        ),
    ];
    for (from, to, n_below, expect) in table {
        check_broken(from, to, n_below, expect);
    }
}

#[test]
fn a_file_without_its_version_is_refused() {
    for text in ["", "# nothing\n", "[[plugin]]\n", "version = \"1\"\n"] {
        let error = parse(text).unwrap_err();
        assert!(
            matches!(error, LockError::Broken { .. }),
            "{text}: {error:?}"
        );
        assert!(error.to_string().contains("line 1"), "{text}: {error}");
    }
}

#[test]
fn the_second_tool_of_a_name_is_refused() {
    let text = write::text(&lock_of([plugin("notes")]));
    let tool = text.split_once("\n[[plugin.tool]]\n").unwrap().1;
    let error = parse(&format!("{text}\n[[plugin.tool]]\n{tool}")).unwrap_err();
    assert!(
        error.to_string().contains("two tools named `shout`"),
        "{error}"
    );
}

#[test]
fn a_newer_file_is_told_as_such_whatever_else_it_holds() {
    let newer = "version = 5\nsigned = true\n[plugins.notes]\nname = 1\n";
    let error = parse(newer).unwrap_err();
    assert!(
        matches!(error, LockError::Newer { found: 5, .. }),
        "{error:?}"
    );
    assert!(error.told().contains("use the newer program"));
}

#[test]
fn a_file_that_is_not_there_is_empty_and_is_not_made_for_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zeph.lock");
    assert_eq!(Lock::read(&path).unwrap().plugins().len(), 0);
    LockFile::edit(&path, |_| Ok::<_, LockError>(())).unwrap();
    assert!(!path.exists());
    add(&path, &["notes"]);
    assert_eq!(names(&path), ["notes"]);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn a_change_that_fails_or_changes_nothing_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zeph.lock");
    add(&path, &["notes"]);
    let by_hand = fs::read_to_string(&path)
        .unwrap()
        .replace("[[plugin]]", "# mine\n[[plugin]]");
    fs::write(&path, &by_hand).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    add(&path, &["notes"]);
    let failed = LockFile::edit(&path, |lock| {
        lock.put(plugin("other"));
        Err::<(), _>(LockError::NotAFile { path: path.clone() })
    });
    assert!(matches!(failed, Err(LockError::NotAFile { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), by_hand);
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    // A real change keeps the rights of the file.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    add(&path, &["other"]);
    assert_eq!(names(&path), ["notes", "other"]);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o644
    );
}

#[test]
fn a_broken_file_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zeph.lock");
    for bad in [
        &b"version = 1\n<<<<<<< HEAD\n"[..],
        b"version = 1\n# \xff\n",
        b"version = 9\n",
    ] {
        fs::write(&path, bad).unwrap();
        let refused = LockFile::edit(&path, |lock| {
            lock.put(plugin("notes"));
            Ok::<_, LockError>(())
        });
        let error = refused.unwrap_err();
        assert!(Lock::read(&path).is_err());
        assert!(!matches!(error, LockError::File { .. }), "{error:?}");
        assert_eq!(fs::read(&path).unwrap(), bad);
    }
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (kept, used) = (dir.path().join("dotfiles"), dir.path().join("config"));
    fs::create_dir(&kept).unwrap();
    fs::create_dir(&used).unwrap();
    let (target, link) = (kept.join("my.lock"), used.join("zeph.lock"));
    symlink("../dotfiles/my.lock", &link).unwrap();
    // A link to nothing is more likely a disk that is not there than an empty lock.
    assert!(matches!(Lock::read(&link), Err(LockError::File { .. })));
    let refused = LockFile::edit(&link, |lock| {
        lock.put(plugin("notes"));
        Ok::<_, LockError>(())
    });
    assert!(matches!(refused, Err(LockError::File { .. })));
    add(&target, &["notes"]);
    add(&link, &["other"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(names(&target), ["notes", "other"]);
    assert_eq!(names(&link), ["notes", "other"]);
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo.lock");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    let folder = dir.path().join("folder.lock");
    fs::create_dir(&folder).unwrap();
    for path in [&fifo, &folder] {
        let error = Lock::read(path).unwrap_err();
        assert!(matches!(error, LockError::NotAFile { .. }), "{error:?}");
    }
    let large = dir.path().join("large.lock");
    fs::File::create(&large)
        .unwrap()
        .set_len(LOCK_BYTES_MAX + 1)
        .unwrap();
    assert!(matches!(Lock::read(&large), Err(LockError::TooLong { .. })));
}

#[test]
fn what_is_in_the_place_of_the_companion_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zeph.lock");
    let elsewhere = dir.path().join("elsewhere");
    symlink(&elsewhere, dir.path().join(".zeph.lock.guard")).unwrap();
    let refused = LockFile::edit(&path, |_| Ok::<_, LockError>(()));
    let told = refused.unwrap_err().told();
    assert!(told.contains(".zeph.lock.guard"), "{told}");
    assert!(!elsewhere.exists());
}

#[test]
fn changes_at_once_lose_nothing() {
    const N_HOSTS: usize = 4;
    const N_EACH: usize = 8;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zeph.lock");
    let barrier = Barrier::new(N_HOSTS);
    std::thread::scope(|scope| {
        for host in 0..N_HOSTS {
            let (path, barrier) = (&path, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for n in 0..N_EACH {
                    add(path, &[&format!("p{host}-{n}")]);
                    // A reader sees whole files only.
                    assert!(!names(path).is_empty());
                }
            });
        }
    });
    let mut found = names(&path);
    found.sort();
    found.dedup();
    assert_eq!(found.len(), N_HOSTS * N_EACH);
    let left: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}
