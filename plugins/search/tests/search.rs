//! The index and the search over a directory, without a host.
#![expect(clippy::unwrap_used, reason = "a failure is a failed test")]

use std::path::Path;
use std::time::{Duration, Instant};

use zeph_plugin_search::index::{Index, file_of};
use zeph_plugin_search::rank::{Hit, Layers, Query, search};
use zeph_plugin_search::refresh::Freshness;
use zeph_plugin_search::tool::Ground;

const MINUTE: Duration = Duration::from_secs(60);
const ALL: Layers = Layers {
    definitions: true,
    references: true,
    text: true,
};

struct Project {
    code: tempfile::TempDir,
    cache: tempfile::TempDir,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let this = Self {
            code: tempfile::tempdir().unwrap(),
            cache: tempfile::tempdir().unwrap(),
        };
        for (path, text) in files {
            this.write(path, text.as_bytes());
        }
        this
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.code.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn index_file(&self) -> std::path::PathBuf {
        file_of(self.cache.path(), self.code.path())
    }

    fn index(&self, below: &str, time: Option<Duration>) -> (Index, Freshness) {
        let ground = Ground {
            top: self.code.path().to_owned(),
            below: below.to_owned(),
            file: Some(self.index_file()),
            time,
        };
        ground.index(".").unwrap()
    }

    fn found(&self, query: &str) -> Vec<Hit> {
        let (index, _) = self.index("", Some(MINUTE));
        search(&index, "", &Query::of(query), (ALL, &[]))
    }
}

fn places(hits: &[Hit]) -> Vec<String> {
    let place = |hit: &Hit| format!("{} {}:{}", hit.layer.name(), hit.file, hit.start + 1);
    hits.iter().map(place).collect()
}

const AUTH: &str = "/// Checks the bearer token of a request.\npub fn auth_layer(token: &str) -> bool {\n    verify(token)\n}\n\nfn verify(t: &str) -> bool { !t.is_empty() }\n";
const MAIN: &str = "mod auth;\nfn main() {\n    if auth::auth_layer(\"x\") {\n        println!(\"in\");\n    }\n}\n";

#[test]
fn the_definition_comes_first_then_its_uses() {
    let project = Project::new(&[
        ("src/auth.rs", AUTH),
        ("src/main.rs", MAIN),
        ("tests/auth_layer.rs", "fn auth_layer() {}\n"),
    ]);
    let found = places(&project.found("auth_layer"));
    assert_eq!(found[0], "definition src/auth.rs:2", "{found:?}");
    assert!(
        found.contains(&"definition tests/auth_layer.rs:1".to_owned()),
        "{found:?}"
    );
    assert!(
        found.iter().any(|one| one.contains("src/main.rs")),
        "{found:?}"
    );
}

#[test]
fn words_find_what_comments_say() {
    let project = Project::new(&[("src/auth.rs", AUTH), ("src/main.rs", MAIN)]);
    let found = places(&project.found("bearer request"));
    assert_eq!(found[0], "text src/auth.rs:1", "{found:?}");
    assert!(project.found("no_such_thing_at_all").is_empty());
}

#[test]
fn changes_are_seen_and_nothing_else_is_read() {
    let project = Project::new(&[("a.rs", "fn one() {}\n"), ("b.rs", "fn two() {}\n")]);
    assert_eq!(project.index("", Some(MINUTE)).1.read, 2);
    assert_eq!(project.index("", Some(MINUTE)).1.read, 0);
    project.write("a.rs", b"fn three() {}\n");
    std::fs::remove_file(project.code.path().join("b.rs")).unwrap();
    let (_, state) = project.index("", None);
    assert_eq!(
        (state.pending, state.removed),
        (1, 1),
        "without refresh it only says so"
    );
    let (_, state) = project.index("", Some(MINUTE));
    assert_eq!((state.read, state.removed, state.files), (1, 1, 1));
    assert!(project.found("one").is_empty());
    assert_eq!(places(&project.found("three"))[0], "definition a.rs:1");
    let kept = std::fs::read(project.index_file()).unwrap();
    assert!(
        !kept.windows(3).any(|part| part == b"two"),
        "what is gone is forgotten"
    );
}

#[test]
fn a_part_of_the_tree_leaves_the_rest_as_it_is() {
    let project = Project::new(&[("a/x.rs", "fn one() {}\n"), ("ab/y.rs", "fn two() {}\n")]);
    project.index("", Some(MINUTE));
    let (index, state) = project.index("a", Some(MINUTE));
    assert_eq!((state.files, state.read, state.removed), (1, 0, 0));
    assert!(search(&index, "a", &Query::of("two"), (ALL, &[])).is_empty());
    assert_eq!(search(&index, "", &Query::of("two"), (ALL, &[])).len(), 1);
}

#[test]
fn damaged_indexes_are_made_anew() {
    let project = Project::new(&[("a.rs", "fn one() {}\n")]);
    project.index("", Some(MINUTE));
    let whole = std::fs::read(project.index_file()).unwrap();
    for end in 0..whole.len() {
        std::fs::write(project.index_file(), &whole[..end]).unwrap();
        assert!(Index::load(&project.index_file()).files.is_empty());
    }
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        std::fs::write(project.index_file(), damaged).unwrap();
        assert!(Index::load(&project.index_file()).files.is_empty());
    }
    assert_eq!(project.index("", Some(MINUTE)).1.read, 1);
    assert_eq!(places(&project.found("one"))[0], "definition a.rs:1");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a file gets an old time")]
fn what_a_killed_call_left_behind_is_removed() {
    let project = Project::new(&[("a.rs", "fn one() {}\n")]);
    let left = |name: &str, seconds: u64| {
        let file = std::fs::File::create(project.cache.path().join(name)).unwrap();
        let then = std::time::SystemTime::now() - Duration::from_secs(seconds);
        file.set_modified(then).unwrap();
    };
    left("old.new", 3_600);
    left("running.new", 1);
    left("gone.index", 100 * 24 * 60 * 60);
    left("other.index", 24 * 60 * 60);
    project.index("", Some(MINUTE));
    let there = |name: &str| project.cache.path().join(name).exists();
    assert!(!there("old.new") && there("running.new"));
    assert!(!there("gone.index") && there("other.index"));
}

#[test]
fn odd_files_do_no_harm() {
    let project = Project::new(&[("a.rs", "fn one() {}\n")]);
    project.write(
        "long.js",
        format!("x='{}'\n", "y".repeat(900_000)).as_bytes(),
    );
    project.write("large.c", &vec![b' '; 1024 * 1024 + 1]);
    project.write(
        "latin.c",
        b"int gr\xF6\xDFe; /* \xFF\xFE */ int after(void) { return 0; }\n",
    );
    project.write("binary.py", b"\0\x01\x02def no(): pass\n");
    project.write("deep.js", "[".repeat(100_000).as_bytes());
    project.write("empty.go", b"");
    project.write("gen.ts", b"// @generated\nexport function one() {}\n");
    std::os::unix::fs::symlink(".", project.code.path().join("loop")).unwrap();
    let (_, state) = project.index("", Some(MINUTE));
    assert_eq!(state.skipped, 1);
    assert_eq!(
        places(&project.found("one"))[..2],
        ["definition a.rs:1", "definition gen.ts:2"]
    );
    assert_eq!(places(&project.found("after"))[0], "definition latin.c:1");
    assert_eq!(project.index("", Some(MINUTE)).1.read, 0);
}

#[test]
fn calls_at_once_leave_a_whole_index() {
    let project = Project::new(&[("a.rs", AUTH), ("b.rs", MAIN)]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(project.index("", Some(MINUTE)).1.files, 2);
                }
            });
        }
    });
    assert_eq!(Index::load(&project.index_file()).files.len(), 2);
    assert_eq!(
        project.cache.path().read_dir().unwrap().count(),
        1,
        "nothing is left over"
    );
}

/// This repository: every `fn` that stands at a line's beginning is found, as a search by lines finds them.
#[test]
fn definitions_are_those_that_a_search_by_lines_finds() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host");
    let cache = tempfile::tempdir().unwrap();
    let top = top.canonicalize().unwrap();
    let ground = Ground {
        file: Some(file_of(cache.path(), &top)),
        top: top.clone(),
        below: "zeph-core/src".to_owned(),
        time: Some(MINUTE * 5),
    };
    let began = Instant::now();
    let (index, state) = ground.index(".").unwrap();
    eprintln!("{} files in {:?}", state.files, began.elapsed());
    assert!(state.files > 50 && state.pending == 0, "{state:?}");
    let mut missing = Vec::new();
    for file in &index.files {
        let text = std::fs::read_to_string(top.join(&file.path)).unwrap();
        let mut defined = Vec::new();
        let scanned = file.scan(
            |unit, _| defined.extend(unit.name.map(|_| unit.start)),
            |_, _| {},
        );
        assert!(scanned.is_some());
        let heads = [
            "fn ",
            "pub fn ",
            "pub(crate) fn ",
            "struct ",
            "pub struct ",
            "enum ",
            "pub enum ",
        ];
        for (number, line) in (0_u32..).zip(text.lines()) {
            if heads.iter().any(|head| line.starts_with(head)) && !defined.contains(&number) {
                missing.push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
