//! The ten file tools, through the JSON-lines border.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::product::{Product, answer};

/// A workspace like a small repository, with a file of every awkward kind.
fn repository() -> Product {
    let product = Product::new();
    product
        .file("src/main.rs", "fn main() {\n    println!(\"hi\");\n}\n")
        .file("src/util.rs", "// main helper\n")
        .file("notes.txt", "one\ntwo\nthree\n")
        .file("windows.txt", "one\r\ntwo\r\n")
        .file("twice.txt", "same\nsame\n")
        .file("empty.txt", "")
        .file("latin.txt", b"caf\xe9\n")
        .file("bin", b"\x7fELF\x02\x01\x00\x00")
        .file(".gitignore", "target/\n")
        .file("target/out.rs", "fn main() {}\n")
        .file("tree/a/b.txt", "b\n")
        .file("tree/c.txt", "c\n");
    fs::create_dir(product.work.join("docs")).unwrap();
    symlink("notes.txt", product.work.join("link")).unwrap();
    symlink("/etc/passwd", product.work.join("escape")).unwrap();
    product
}

/// Makes the calls one after another in one workspace; each expectation is (status, text that must be there).
fn check(product: &Product, calls: &[(&str, Value, &str, &str)]) {
    let lines: String = calls
        .iter()
        .enumerate()
        .map(|(id, (tool, params, ..))| {
            json!({"id": id, "tool": tool, "params": params}).to_string() + "\n"
        })
        .collect();
    let answers = product.answers(&["--jobs", "1", "--allow", "*"], lines);
    for (id, (tool, params, status, text)) in calls.iter().enumerate() {
        let got = answer(&answers, id);
        assert_eq!(got["status"], *status, "{tool} {params}: {}", got["text"]);
        let shown = got["text"].as_str().unwrap();
        assert!(
            shown.contains(text),
            "{tool} {params}: wanted {text:?} in {shown}"
        );
    }
}

#[test]
fn read() {
    let product = repository();
    check(
        &product,
        &[
            (
                "read",
                json!({"path": "notes.txt"}),
                "ok",
                "   1\tone\n   2\ttwo\n   3\tthree",
            ),
            (
                "read",
                json!({"path": "notes.txt", "offset": 1, "limit": 1}),
                "ok",
                "   2\ttwo\n… 1 more line; continue with offset=2",
            ),
            (
                "read",
                json!({"path": product.work.join("notes.txt")}),
                "ok",
                "one",
            ),
            ("read", json!({"path": "link"}), "ok", "one"),
            ("read", json!({"path": "windows.txt"}), "ok", "   2\ttwo"),
            ("read", json!({"path": "empty.txt"}), "ok", "empty"),
            ("read", json!({"path": "latin.txt"}), "ok", "caf"),
            ("read", json!({"path": "bin"}), "failed", "ELF"),
            (
                "read",
                json!({"path": "notes.txt", "offset": 99}),
                "failed",
                "3 lines",
            ),
            ("read", json!({"path": "src"}), "failed", "directory"),
            (
                "read",
                json!({"path": "note.txt"}),
                "failed",
                "did you mean `notes.txt`?",
            ),
            ("read", json!({"path": "escape"}), "refused", "`escape`"),
            (
                "read",
                json!({"path": "/etc/passwd"}),
                "refused",
                "outside the allowed directories",
            ),
            ("read", json!({"path": ""}), "failed", "[tool_error]"),
            ("read", json!({"path": "a\u{0}b"}), "failed", "[tool_error]"),
        ],
    );
}

/// A name with a line feed in it is not that of the directory with a space there.
#[test]
fn an_allowed_directory_is_shown_as_it_is_named() {
    let product = Product::new();
    product.file("nl\ndir/notes.txt", "");
    let ran = product.run(&["--root", "nl\ndir", "call", "read", "path=/etc/passwd"]);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("/nl\\ndir`"), "{ran:?}");
}

#[test]
fn a_file_larger_than_a_guest_may_hold_is_read_in_pages() {
    let product = Product::new();
    let line = "x".repeat(1023) + "\n";
    product.file("huge.txt", line.repeat(40 * 1024) + "the end\n");
    let memory = ["--set", "limits.memory_bytes=20971520", "--jobs", "1"];
    let call = json!({"id": 1, "tool": "read", "params": {"path": "huge.txt", "offset": 40_960}})
        .to_string()
        + "\n";
    let got = product.answers(&memory, call).remove(0);
    assert!(
        got["text"].as_str().unwrap().contains("40961\tthe end"),
        "{got}"
    );
}

#[test]
fn write_keeps_modes_and_links_and_leaves_no_temporary_file() {
    let product = repository();
    let script = product.work.join("run.sh");
    product.file("run.sh", "old");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
    check(
        &product,
        &[
            (
                "write",
                json!({"path": "new/deep/file.txt", "content": "héllo"}),
                "ok",
                "Wrote 6 bytes to new/deep/file.txt",
            ),
            (
                "write",
                json!({"path": "run.sh", "content": "new"}),
                "ok",
                "Wrote 3 bytes",
            ),
            (
                "write",
                json!({"path": "link", "content": "through the link\n"}),
                "ok",
                "Wrote",
            ),
            (
                "write",
                json!({"path": "src", "content": "x"}),
                "failed",
                "directory",
            ),
            (
                "write",
                json!({"path": "escape", "content": "x"}),
                "refused",
                "`escape`",
            ),
            (
                "write",
                json!({"path": "../x", "content": "x"}),
                "refused",
                "outside",
            ),
        ],
    );
    assert_eq!(product.read("new/deep/file.txt"), "héllo");
    assert_eq!(
        fs::metadata(&script).unwrap().permissions().mode() & 0o777,
        0o750
    );
    assert!(
        fs::symlink_metadata(product.work.join("link"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(product.read("notes.txt"), "through the link\n");
    let names = fs::read_dir(&product.work)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(
        !names.into_iter().any(|name| name.contains(".zeph-")),
        "no temporary file is left"
    );
}

#[test]
fn a_hard_link_out_of_the_workspace_is_replaced_not_written_through() {
    let product = Product::new();
    let outside = product.home.join("shared.txt");
    fs::write(&outside, "shared").unwrap();
    fs::hard_link(&outside, product.work.join("linked.txt")).unwrap();
    check(
        &product,
        &[(
            "edit",
            json!({"path": "linked.txt", "old_string": "shared", "new_string": "mine"}),
            "ok",
            "Edited",
        )],
    );
    assert_eq!(product.read("linked.txt"), "mine");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "shared");
}

#[test]
fn edit() {
    let product = repository();
    check(
        &product,
        &[
            (
                "edit",
                json!({"path": "notes.txt", "old_string": "two", "new_string": "TWO"}),
                "ok",
                "-two\n+TWO",
            ),
            (
                "edit",
                json!({"path": "twice.txt", "old_string": "same", "new_string": "x"}),
                "failed",
                "2",
            ),
            (
                "edit",
                json!({"path": "notes.txt", "old_string": "absent", "new_string": "x"}),
                "failed",
                "not found",
            ),
            (
                "edit",
                json!({"path": "notes.txt", "old_string": "one", "new_string": "one"}),
                "failed",
                "[tool_error]",
            ),
            (
                "edit",
                json!({"path": "notes.txt", "old_string": "", "new_string": "x"}),
                "failed",
                "old_string",
            ),
            (
                "edit",
                json!({"path": "windows.txt", "old_string": "two", "new_string": "2"}),
                "ok",
                "Edited",
            ),
            (
                "edit",
                json!({"path": "nowhere.txt", "old_string": "a", "new_string": "b"}),
                "failed",
                "does not exist",
            ),
            (
                "edit",
                json!({"path": "bin", "old_string": "ELF", "new_string": "x"}),
                "failed",
                "[tool_error]",
            ),
        ],
    );
    assert_eq!(product.read("notes.txt"), "one\nTWO\nthree\n");
    assert_eq!(
        product.read("twice.txt"),
        "same\nsame\n",
        "nothing is written when it is not unique"
    );
    assert_eq!(product.read("windows.txt"), "one\r\n2\r\n");
}

#[test]
fn grep() {
    let product = repository();
    check(
        &product,
        &[
            (
                "grep",
                json!({"pattern": "main"}),
                "ok",
                "src/main.rs:1: fn main() {",
            ),
            (
                "grep",
                json!({"pattern": "main"}),
                "ok",
                "(2 matches in 2 files)",
            ),
            (
                "grep",
                json!({"pattern": "main", "include_ignored": true}),
                "ok",
                "target/out.rs:1:",
            ),
            (
                "grep",
                json!({"pattern": "MAIN", "case_sensitive": false}),
                "ok",
                "src/main.rs:1:",
            ),
            (
                "grep",
                json!({"pattern": "MAIN"}),
                "ok",
                "No matches for: MAIN",
            ),
            (
                "grep",
                json!({"pattern": "two", "context": 1, "path": "notes.txt"}),
                "ok",
                "notes.txt-1- one\nnotes.txt:2: two\nnotes.txt-3- three",
            ),
            (
                "grep",
                json!({"pattern": "main", "glob": ["util*"]}),
                "ok",
                "(1 match in 1 file)",
            ),
            (
                "grep",
                json!({"pattern": "e", "max_results": 1}),
                "ok",
                " of ",
            ),
            (
                "grep",
                json!({"pattern": "("}),
                "failed",
                "regular expression",
            ),
            (
                "grep",
                json!({"pattern": "root", "path": "/etc"}),
                "refused",
                "outside",
            ),
            (
                "grep",
                json!({"pattern": "root", "path": "escape"}),
                "refused",
                "`escape`",
            ),
        ],
    );
}

#[test]
fn find_and_list() {
    let product = repository();
    check(
        &product,
        &[
            (
                "find_path",
                json!({"pattern": "*.rs"}),
                "ok",
                "src/main.rs\nsrc/util.rs",
            ),
            (
                "find_path",
                json!({"pattern": "**/b.txt", "path": "tree"}),
                "ok",
                "tree/a/b.txt",
            ),
            (
                "find_path",
                json!({"pattern": "*", "max_results": 2}),
                "ok",
                "showing first 2 of",
            ),
            (
                "find_path",
                json!({"pattern": "nothing"}),
                "ok",
                "No files matching: nothing",
            ),
            (
                "find_path",
                json!({"pattern": "[", "path": "."}),
                "failed",
                "[tool_error]",
            ),
            (
                "find_path",
                json!({"pattern": "passwd", "path": "/etc"}),
                "refused",
                "outside",
            ),
            ("list_directory", json!({"path": "."}), "ok", "[dir]  docs"),
            (
                "list_directory",
                json!({"path": "."}),
                "ok",
                "[symlink] link",
            ),
            (
                "list_directory",
                json!({"path": "docs"}),
                "ok",
                "Empty directory: docs",
            ),
            (
                "list_directory",
                json!({"path": "notes.txt"}),
                "failed",
                "[tool_error]",
            ),
            (
                "list_directory",
                json!({"path": ".."}),
                "refused",
                "outside",
            ),
        ],
    );
}

#[test]
fn create_move_copy_delete() {
    let product = repository();
    check(
        &product,
        &[
            (
                "create_directory",
                json!({"path": "x/y/z"}),
                "ok",
                "Created directory: x/y/z",
            ),
            (
                "create_directory",
                json!({"path": "notes.txt"}),
                "failed",
                "[tool_error]",
            ),
            (
                "move_path",
                json!({"source": "tree/c.txt", "destination": "x/c.txt"}),
                "ok",
                "Moved: tree/c.txt -> x/c.txt",
            ),
            (
                "move_path",
                json!({"source": "x/c.txt", "destination": "notes.txt"}),
                "failed",
                "exists already",
            ),
            (
                "move_path",
                json!({"source": "nowhere", "destination": "y"}),
                "failed",
                "does not exist",
            ),
            (
                "move_path",
                json!({"source": "notes.txt", "destination": "../out.txt"}),
                "refused",
                "outside",
            ),
            (
                "copy_path",
                json!({"source": "src", "destination": "src2"}),
                "ok",
                "Copied: src -> src2 (2 files",
            ),
            (
                "copy_path",
                json!({"source": "src", "destination": "src/inner"}),
                "failed",
                "into itself",
            ),
            (
                "copy_path",
                json!({"source": "escape", "destination": "copy"}),
                "refused",
                "`escape`",
            ),
            (
                "copy_path",
                json!({"source": "notes.txt", "destination": "src/main.rs"}),
                "failed",
                "exists already",
            ),
            ("delete_path", json!({"path": "x"}), "failed", "recursive"),
            (
                "delete_path",
                json!({"path": "x", "recursive": true}),
                "ok",
                "Deleted: x",
            ),
            (
                "delete_path",
                json!({"path": "escape"}),
                "ok",
                "Deleted: escape",
            ),
            (
                "delete_path",
                json!({"path": "."}),
                "refused",
                "may not be deleted",
            ),
            (
                "delete_path",
                json!({"path": "..", "recursive": true}),
                "refused",
                "[tool_error]",
            ),
            (
                "delete_path",
                json!({"path": "nowhere"}),
                "failed",
                "does not exist",
            ),
        ],
    );
    assert!(!product.work.join("x").exists());
    assert_eq!(product.read("src2/main.rs"), product.read("src/main.rs"));
    assert!(
        fs::metadata("/etc/passwd").is_ok(),
        "deleting a link leaves its target"
    );
}

#[test]
fn a_copy_stays_executable_and_loses_its_set_id_bits() {
    let product = repository();
    let mode = |path: &str| {
        fs::metadata(product.work.join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    product
        .file("scripts/run.sh", "x")
        .file("scripts/plain", "x");
    for (path, bits) in [("scripts/run.sh", 0o4750), ("scripts/plain", 0o600)] {
        fs::set_permissions(product.work.join(path), fs::Permissions::from_mode(bits)).unwrap();
    }
    check(
        &product,
        &[
            (
                "copy_path",
                json!({"source": "scripts/run.sh", "destination": "one.sh"}),
                "ok",
                "Copied",
            ),
            (
                "copy_path",
                json!({"source": "scripts", "destination": "scripts2"}),
                "ok",
                "Copied",
            ),
        ],
    );
    assert_eq!(mode("one.sh"), 0o750);
    assert_eq!(mode("scripts2/run.sh"), 0o750);
    assert_eq!(mode("scripts2/plain"), 0o600);
}

#[test]
fn a_delete_never_follows_a_link_out() {
    let product = Product::new();
    let outside = product.home.join("precious");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "kept").unwrap();
    product.file("tree/inside.txt", "x");
    symlink(&outside, product.work.join("tree/link")).unwrap();
    check(
        &product,
        &[(
            "delete_path",
            json!({"path": "tree", "recursive": true}),
            "ok",
            "Deleted: tree",
        )],
    );
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "kept");
    assert!(!product.work.join("tree").exists());
}

#[test]
fn a_copy_never_follows_a_link_out() {
    let product = Product::new();
    let secret = product.home.join("secret");
    fs::write(&secret, "secret").unwrap();
    product.file("tree/inside.txt", "x");
    symlink(&secret, product.work.join("tree/link")).unwrap();
    check(
        &product,
        &[(
            "copy_path",
            json!({"source": "tree", "destination": "copy"}),
            "ok",
            "Copied: tree -> copy",
        )],
    );
    assert_eq!(product.read("copy/inside.txt"), "x");
    assert!(
        fs::read_to_string(product.work.join("copy/link")).is_err(),
        "the link is not followed"
    );
}

/// A name that is not UTF-8 cannot be given to a tool. It is shown with escapes, and nothing is lost or left out in silence.
#[test]
fn a_name_that_is_not_utf8_is_told() {
    let product = Product::new();
    let odd = |name: &[u8]| product.work.join("tree").join(OsStr::from_bytes(name));
    product.file("tree/plain.txt", "needle\n");
    fs::write(odd(b"caf\xe9.txt"), "needle\n").unwrap();
    fs::create_dir(odd(b"dir\xff")).unwrap();
    fs::write(odd(b"dir\xff/inner.txt"), "needle\n").unwrap();
    let note = "is not UTF-8; no file tool can open it";
    let copy = |to: &str| json!({"source": "tree", "destination": to});
    check(
        &product,
        &[
            (
                "list_directory",
                json!({"path": "tree"}),
                "ok",
                "[special] caf\\xE9.txt",
            ),
            (
                "list_directory",
                json!({"path": "tree"}),
                "ok",
                "[special] dir\\xFF",
            ),
            ("list_directory", json!({"path": "tree"}), "ok", note),
            (
                "find_path",
                json!({"pattern": "*.txt"}),
                "ok",
                "tree/caf\\xE9.txt",
            ),
            ("find_path", json!({"pattern": "*.txt"}), "ok", note),
            (
                "grep",
                json!({"pattern": "needle"}),
                "ok",
                "[2 files could not be read]",
            ),
            ("copy_path", copy("copy"), "ok", "[2 entries skipped"),
            (
                "delete_path",
                json!({"path": "tree", "recursive": true}),
                "failed",
                "`tree` is not deleted, and nothing in it",
            ),
            ("read", json!({"path": "tree/plain.txt"}), "ok", "needle"),
            ("move_path", copy("moved"), "ok", "Moved: tree -> moved"),
        ],
    );
    assert!(!product.work.join("tree").exists());
    let moved = |name: &[u8]| product.work.join("moved").join(OsStr::from_bytes(name));
    assert!(moved(b"caf\xe9.txt").exists() && moved(b"dir\xff/inner.txt").exists());
}

#[test]
fn catalog_schemas_stay_in_the_subset_all_providers_accept() {
    let product = Product::new();
    let tools = product.run(&["tools", "--json"]);
    let tools: Value = serde_json::from_str(&tools.stdout).unwrap();
    let tools = tools
        .as_array()
        .unwrap_or_else(|| tools["tools"].as_array().expect("a list of tools"));
    // Ten of files, two of the web, one of compilers, one of code, three of commands, three of the host itself.
    assert_eq!(tools.len(), 20);
    for tool in tools {
        let schema = &tool["parameters"];
        assert_eq!(schema["type"], "object", "{tool}");
        plain(schema, tool["name"].as_str().unwrap());
    }
}

/// No reference, no union, no keyword a provider refuses, a description for every parameter.
fn plain(schema: &Value, place: &str) {
    const ALLOWED: [&str; 12] = [
        "type",
        "description",
        "properties",
        "required",
        "items",
        "enum",
        "minimum",
        "maximum",
        "default",
        "minLength",
        "maxLength",
        "additionalProperties",
    ];
    for (key, value) in schema.as_object().unwrap() {
        assert!(
            ALLOWED.contains(&key.as_str()),
            "{place}: `{key}` in {schema}"
        );
        if key == "type" {
            assert!(value.is_string(), "{place}: {schema}");
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        assert!(
            property["description"].is_string(),
            "{place}.{name} has no description"
        );
        plain(property, &format!("{place}.{name}"));
    }
    if let Some(items) = schema.get("items") {
        plain(items, &format!("{place}[]"));
    }
}
