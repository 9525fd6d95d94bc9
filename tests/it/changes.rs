//! What file tools may change, in which order, and what others learn of it: through the JSON-lines border.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::product::{Product, Ran, answer};

const CALLS: usize = 20;

/// A file of twenty lines, and a call for each that changes it; ids start at `first`.
fn edits(first: usize) -> String {
    let call = |id: usize| {
        let params = json!({"path": "f", "old_string": format!("<{id}>"), "new_string": format!("<done {id}>")});
        json!({"id": id, "tool": "edit", "params": params}).to_string() + "\n"
    };
    (first..first + CALLS).map(call).collect()
}

fn numbered(n: usize) -> String {
    (0..n).map(|id| format!("<{id}>\n")).collect()
}

/// Every edit that said `ok` is in the file, no other is; how many there are.
fn check_edits(product: &Product, answers: &[Value], ids: std::ops::Range<usize>) -> usize {
    let content = product.read("f");
    let done = ids.filter(|id| {
        let got = answer(answers, *id);
        let is_there = content.contains(&format!("<done {id}>"));
        assert_eq!(got["status"] == "ok", is_there, "{got}\n{content}");
        is_there
    });
    done.count()
}

#[test]
fn concurrent_edits_of_one_file_lose_nothing() {
    let product = Product::new();
    product.file("f", numbered(CALLS));
    let answers = product.answers(&["--jobs", "20", "--allow", "*"], edits(0));
    assert_eq!(check_edits(&product, &answers, 0..CALLS), CALLS);
}

#[test]
fn edits_of_two_hosts_lose_nothing() {
    let product = Product::new();
    product.file("f", numbered(2 * CALLS));
    let start = |first| {
        let mut child = product.start(&["--jobs", "20", "--allow", "*"]);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(edits(first).as_bytes()).unwrap();
        child
    };
    let (one, two) = (start(0), start(CALLS));
    let mut answers = Ran::from(one.wait_with_output().unwrap()).json_lines();
    answers.extend(Ran::from(two.wait_with_output().unwrap()).json_lines());
    assert_eq!(check_edits(&product, &answers, 0..2 * CALLS), 2 * CALLS);
}

/// Whatever a link on the way leads to meanwhile, an edit puts a file's own new content in its place, and no other's.
#[test]
fn an_edit_through_a_link_that_changes_mixes_no_files() {
    let product = Product::new();
    for name in ["a", "b"] {
        let lines = format!("{name}\n{}", numbered(CALLS));
        product.file(&format!("{name}/f"), lines);
    }
    let (link, next) = (product.work.join("now"), product.work.join("next"));
    symlink("a", &link).unwrap();
    let is_over = AtomicBool::new(false);
    let answers = std::thread::scope(|scope| {
        scope.spawn(|| {
            for target in ["b", "a"].iter().cycle() {
                symlink(target, &next).unwrap();
                fs::rename(&next, &link).unwrap();
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let calls = edits(0).replace("\"f\"", "\"now/f\"");
        let answers = product.answers(&["--jobs", "20", "--allow", "*"], calls);
        is_over.store(true, Ordering::Relaxed);
        answers
    });
    let (a, b) = (product.read("a/f"), product.read("b/f"));
    assert!(a.starts_with("a\n") && b.starts_with("b\n"), "{a}{b}");
    for id in 0..CALLS {
        let got = answer(&answers, id);
        let done = format!("<done {id}>");
        let n_done = [&a, &b].iter().filter(|text| text.contains(&done)).count();
        assert_eq!(n_done, usize::from(got["status"] == "ok"), "{got}\n{a}{b}");
    }
}

/// Calls under a rule for each tool, and what must be in the answer.
fn check(product: &Product, allow: &[&str], calls: &[(&str, Value, &str)]) {
    let lines: String = calls
        .iter()
        .enumerate()
        .map(|(id, (tool, params, _))| {
            json!({"id": id, "tool": tool, "params": params}).to_string() + "\n"
        })
        .collect();
    let mut args = vec!["--jobs", "1"];
    args.extend(allow.iter().flat_map(|rule| ["--allow", rule]));
    let answers = product.answers(&args, lines);
    for (id, (tool, params, expected)) in calls.iter().enumerate() {
        let got = answer(&answers, id);
        let text = got["text"].as_str().unwrap();
        assert!(text.contains(expected), "{tool} {params}: {got}");
    }
}

#[test]
fn what_programs_obey_asks_though_the_tool_is_allowed() {
    let product = Product::new();
    product
        .file(".git/config", "[core]\n")
        .file(".git/hooks/pre-commit", "#!\n")
        .file("sub/.vscode/tasks.json", "{}")
        .file("sub/a", "a")
        .file("bin/hook", "x");
    symlink(".git/hooks", product.work.join("innocent")).unwrap();
    let asks = "no rule names it";
    check(
        &product,
        &["*"],
        &[
            (
                "write",
                json!({"path": ".git/hooks/post-commit", "content": "x"}),
                "--allow write:.git/hooks/post-commit",
            ),
            (
                "write",
                json!({"path": "innocent/pre-commit", "content": "x"}),
                "--allow write:.git/hooks/pre-commit",
            ),
            ("write", json!({"path": ".ENVRC", "content": "x"}), asks),
            ("write", json!({"path": "web/.npmrc", "content": "x"}), asks),
            (
                "edit",
                json!({"path": ".git/config", "old_string": "core", "new_string": "x"}),
                asks,
            ),
            ("create_directory", json!({"path": ".husky"}), asks),
            ("delete_path", json!({"path": ".git/config"}), asks),
            (
                "delete_path",
                json!({"path": "sub", "recursive": true}),
                "holds `.vscode`",
            ),
            (
                "delete_path",
                json!({"path": ".", "recursive": true}),
                "may not be deleted: it is an allowed directory",
            ),
            (
                "move_path",
                json!({"source": "sub", "destination": "other"}),
                "holds `.vscode`",
            ),
            (
                "copy_path",
                json!({"source": "sub", "destination": "other"}),
                "holds `.vscode`",
            ),
            (
                "move_path",
                json!({"source": "bin", "destination": ".git/hooks/more"}),
                asks,
            ),
            (
                "copy_path",
                json!({"source": "bin/hook", "destination": ".exrc"}),
                asks,
            ),
            (
                "move_path",
                json!({"source": "bin/hook", "destination": "lefthook.yml"}),
                asks,
            ),
            ("read", json!({"path": ".git/config"}), "[core]"),
            (
                "write",
                json!({"path": "src/x", "content": "x"}),
                "Wrote 1 byte",
            ),
        ],
    );
    assert_eq!(product.read(".git/config"), "[core]\n");
    assert_eq!(product.read("sub/a"), "a");
    check(
        &product,
        &[
            "write:.git/hooks/*",
            "delete_path:sub",
            "copy_path:**/.vscode",
        ],
        &[
            (
                "write",
                json!({"path": "innocent/pre-commit", "content": "yes"}),
                "Wrote 3 bytes",
            ),
            (
                "write",
                json!({"path": ".git/config", "content": "x"}),
                asks,
            ),
            (
                "delete_path",
                json!({"path": "sub", "recursive": true}),
                "Deleted: sub",
            ),
        ],
    );
    assert_eq!(product.read(".git/hooks/pre-commit"), "yes");
}

#[test]
fn a_project_is_copied_with_what_programs_obey_where_that_is_agreed() {
    let product = Product::new();
    product
        .file("sub/.git/hooks/pre-commit", "#!")
        .file("sub/.vscode/tasks.json", "{}")
        .file("sub/.npmrc", "x");
    let copy = |destination: &str| json!({"source": "sub", "destination": destination});
    check(
        &product,
        &["copy_path", "copy_path:other"],
        &[
            ("copy_path", copy("other"), "Copied: sub -> other"),
            ("copy_path", copy("more"), "no rule names it"),
        ],
    );
    // What is typed is its own approval.
    let typed = ["call", "copy_path", "source=sub", "destination=typed"];
    let ran = product.run(&typed);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for copied in ["other", "typed"] {
        let hook = format!("{copied}/.git/hooks/pre-commit");
        assert_eq!(product.read(&hook), "#!");
    }
    assert!(!product.work.join("more").exists());
}

#[test]
fn nobody_reads_a_private_file_while_it_is_rewritten_or_copied() {
    let product = Product::new();
    product.file("secret", "one\n").file("d/inner", "x");
    let mode = |path: &str| {
        let about = fs::metadata(product.work.join(path)).unwrap();
        about.permissions().mode() & 0o777
    };
    let set = |path: &str, mode| {
        fs::set_permissions(product.work.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    set("secret", 0o600);
    set("d", 0o700);
    check(
        &product,
        &["*"],
        &[
            (
                "edit",
                json!({"path": "secret", "old_string": "one", "new_string": "two"}),
                "Edited secret",
            ),
            (
                "copy_path",
                json!({"source": "secret", "destination": "copy"}),
                "Copied",
            ),
            (
                "copy_path",
                json!({"source": "d", "destination": "e"}),
                "Copied",
            ),
            ("write", json!({"path": "new", "content": "x"}), "Wrote"),
        ],
    );
    assert_eq!(
        (mode("secret"), mode("copy"), mode("e")),
        (0o600, 0o600, 0o700)
    );
    assert_ne!(mode("new") & 0o044, 0, "new files are like any other");
}

#[test]
fn names_forge_no_entries() {
    let product = Product::new();
    let name = "a\n[file] forged (1 byte)";
    product.file(name, "needle\n");
    let escaped = "a\\n[file] forged";
    check(
        &product,
        &["*"],
        &[
            ("list_directory", json!({}), escaped),
            ("find_path", json!({"pattern": "a*"}), escaped),
            ("grep", json!({"pattern": "needle"}), escaped),
            ("read", json!({"path": "a\nb"}), "a\\nb"),
            ("delete_path", json!({"path": name}), escaped),
        ],
    );
}

#[test]
fn explain_says_that_a_path_lies_outside() {
    let product = Product::new();
    for tool in ["read", "write"] {
        let ran = product.run(&[
            "explain",
            tool,
            "path=/etc/passwd",
            "content=x",
            "--allow",
            "*",
        ]);
        let ran = match tool {
            "read" => product.run(&["explain", tool, "path=/etc/passwd"]),
            _ => ran,
        };
        assert!(ran.stdout.starts_with("deny"), "{ran:?}");
        assert!(
            ran.stdout.contains("outside the allowed directories"),
            "{ran:?}"
        );
    }
}

#[test]
fn a_workspace_is_known_by_the_link_that_led_to_it() {
    let product = Product::new();
    product.file("f", "text\n");
    let link = product.home.join("link");
    symlink(&product.work, &link).unwrap();
    let lines: String = [
        json!({"id": 0, "tool": "read", "params": {"path": link.join("f")}}),
        json!({"id": 1, "tool": "find_path", "params": {"pattern": "f", "path": link}}),
        json!({"id": 2, "tool": "write", "params": {"path": link.join("new"), "content": "x"}}),
        json!({"id": 3, "tool": "read", "params": {"path": product.home.join("other/f")}}),
        json!({"id": 4, "tool": "bash", "params": {"command": format!("pwd; cat f {}", link.join("f").display())}}),
    ]
    .iter()
    .map(|call| call.to_string() + "\n")
    .collect();
    let root = link.to_str().unwrap();
    for (args, directory) in [(vec!["--root", root], &product.home), (vec![], &link)] {
        let mut all = vec!["run", "--jobs", "1", "--allow", "*"];
        all.extend(args);
        let mut command = product.command(&all);
        command.current_dir(directory).env("PWD", directory);
        command.stdin(std::process::Stdio::piped());
        command.stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(lines.as_bytes()).unwrap();
        drop(stdin);
        let answers = Ran::from(child.wait_with_output().unwrap()).json_lines();
        for id in 0..3 {
            assert_eq!(answer(&answers, id)["status"], "ok", "{answers:#?}");
        }
        assert_eq!(answer(&answers, 3)["status"], "refused", "{answers:#?}");
        // Commands have the directory of `--root`, too, and work there.
        let expected = format!(
            "{}\ntext\ntext\n",
            product.work.canonicalize().unwrap().display()
        );
        assert_eq!(answer(&answers, 4)["text"], expected, "{answers:#?}");
    }
    assert_eq!(product.read("new"), "x");
}

#[test]
fn one_deep_folder_hides_nothing_beside_it() {
    let product = Product::new();
    fs::create_dir_all(product.work.join("d/".repeat(600))).unwrap();
    product.file("z/f", "needle\n");
    check(
        &product,
        &["*"],
        &[
            ("find_path", json!({"pattern": "f"}), "z/f"),
            ("grep", json!({"pattern": "needle"}), "z/f:1: needle"),
        ],
    );
}
