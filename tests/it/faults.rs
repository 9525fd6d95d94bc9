//! Bad surroundings: one clear message each, nothing half done.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::product::{Product, answer};

fn read_a() -> String {
    json!({"id": 1, "tool": "read", "params": {"path": "a.txt"}}).to_string() + "\n"
}

#[test]
fn a_broken_configuration_is_named_by_file_line_and_key() {
    let product = Product::new();
    let config = product.home.join(".config/zeph-host/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let table = [
        ("[tools\n", "config.toml:1"),
        ("[tools.overflow]\n\ntreshold = 5\n", "config.toml:3"),
        (
            "[tools.overflow]\n\ntreshold = 5\n",
            "`tools.overflow.threshold`",
        ),
        (
            "[limits]\nwall_clock_secs = \"soon\"\n",
            "limits.wall_clock_secs",
        ),
        (
            "[tools.file]\nallowed_paths = [\"/does/not/exist\"]\n",
            "/does/not/exist",
        ),
    ];
    for (text, expect) in table {
        fs::write(&config, text).unwrap();
        let ran = product.feed(&[], read_a());
        assert_eq!(ran.code, Some(3), "{text}: {}", ran.stderr);
        assert!(ran.stderr.contains(expect), "{text}: {}", ran.stderr);
        assert!(ran.stdout.is_empty(), "{text}: {}", ran.stdout);
    }
}

/// The signal that comes with it would end the process (exit code 153) without a word.
#[test]
#[expect(clippy::disallowed_methods, reason = "the shell of a person")]
fn a_limit_on_the_size_of_files_is_told() {
    let product = Product::new();
    let host = product.command(&["call", "bash", "command=true"]);
    let mut limited = std::process::Command::new("bash");
    limited.args(["-c", r#"ulimit -f 10; exec "$0" "$@""#]);
    limited.arg(host.get_program()).args(host.get_args());
    limited.env_clear().current_dir(&product.work);
    limited.envs(
        host.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let ran = limited.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code().is_some_and(|code| code < 128), "{ran:?}");
    assert!(said.contains("error: "), "{said}");
}

#[test]
fn a_project_file_cannot_widen() {
    let product = Product::new();
    let secret = product.home.join("secret.txt");
    fs::write(&secret, "s").unwrap();
    for text in [
        "[tools.file]\nallowed_paths = [\"/\"]\n",
        "[tools.file]\nallowed_paths = [\"..\"]\n",
        "[limits]\nwall_clock_secs = 3600\n",
        "[tools.audit]\nenabled = false\n",
        "[store]\npath = \"here.db\"\n",
    ] {
        product.file(".zeph/config.toml", text).file("a.txt", "a");
        let ran = product.feed(&[], read_a());
        assert_eq!(ran.code, Some(3), "{text}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(".zeph/config.toml:2"),
            "{text}: {}",
            ran.stderr
        );
    }
    product.file(
        ".zeph/config.toml",
        "[tools.file]\ndeny_read = [\"**/a.txt\"]\n",
    );
    assert_eq!(
        answer(&product.answers(&[], read_a()), 1)["status"],
        "failed",
        "narrowing works"
    );
}

#[test]
fn a_store_that_cannot_be_written_stops_the_start() {
    let product = Product::new();
    product.file("a.txt", "a").file("file", "x");
    let path = product.work.join("file/zeph.db");
    let ran = product.feed(
        &[
            "--set",
            &format!("store.path={:?}", path.display().to_string()),
        ],
        read_a(),
    );
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("store.path"), "{}", ran.stderr);
    assert!(ran.stdout.is_empty());
    let in_memory = product.feed(&["--set", "store.path=\":memory:\""], read_a());
    assert_eq!(in_memory.code, Some(0), "{}", in_memory.stderr);
}

#[test]
#[cfg(target_os = "linux")]
fn what_only_shows_something_needs_no_place_to_write() {
    let product = Product::new();
    product.file("a.txt", "a");
    let ran = |line: &str| {
        let args: Vec<&str> = line.split(' ').collect();
        let mut command = product.command(&args);
        // Nobody may make a folder there.
        let output = command.env("XDG_DATA_HOME", "/sys/zeph").output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), stderr)
    };
    for line in [
        "plugin list",
        "tools",
        "grants",
        "explain read path=a.txt",
        "audit",
        "audit query --json",
        "stats",
        "token list",
        "conversations",
        "approve --list",
        "trust",
    ] {
        let (code, stderr) = ran(line);
        assert_eq!(code, Some(0), "{line} {stderr}");
        assert!(stderr.contains("it is taken for empty"), "{line} {stderr}");
    }
    let (code, stderr) = ran("trust set read trusted");
    assert_ne!(code, Some(0), "{stderr}");
    assert!(stderr.contains("`store.path`"), "{stderr}");
}

#[test]
#[cfg(target_os = "linux")]
fn each_hint_about_a_folder_that_cannot_be_written_leads_on() {
    let product = Product::new();
    product.file("a.txt", "a");
    let ran = |settings: &[&str]| {
        let set = settings.iter().flat_map(|setting| ["--set", *setting]);
        let args: Vec<&str> = set.chain(["call", "read", "path=a.txt"]).collect();
        let mut command = product.command(&args);
        // Nobody may make a folder there.
        let output = command.env("XDG_DATA_HOME", "/sys/zeph").output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), stderr)
    };
    let (code, stderr) = ran(&[]);
    assert_eq!(code, Some(3), "{stderr}");
    let in_memory = "store.path=\":memory:\"";
    assert!(stderr.contains("`store.path = \":memory:\"`"), "{stderr}");
    let (code, stderr) = ran(&[in_memory]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("`tools.audit.file = \"none\"`"), "{stderr}");
    let (code, stderr) = ran(&[in_memory, "tools.audit.file=none"]);
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn without_its_record_no_call_is_made() {
    let product = Product::new();
    product.file("a.txt", "a");
    // A device that is always full.
    let args = ["--set", "tools.audit.file=\"/dev/full\"", "--allow", "*"];
    let write = json!({"id": 1, "tool": "write", "params": {"path": "b.txt", "content": "x"}})
        .to_string()
        + "\n";
    let ran = product.feed(&args, write);
    if ran.code == Some(3) {
        assert!(ran.stderr.contains("audit"), "{}", ran.stderr);
    } else {
        let got = answer(&ran.json_lines(), 1).clone();
        assert_eq!(got["error"]["category"], "server_error", "{got}");
    }
    assert!(!product.work.join("b.txt").exists(), "nothing was done");
}

#[test]
fn two_hosts_share_one_store() {
    let product = Product::new();
    product.file("a.txt", "a");
    let lines: String = (0..100)
        .map(|id| json!({"id": id, "tool": "read", "params": {"path": "a.txt"}}).to_string() + "\n")
        .collect();
    std::thread::scope(|scope| {
        let hosts: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| product.answers(&["--jobs", "4"], &lines)))
            .collect();
        for host in hosts {
            let answers = host.join().unwrap();
            assert!(
                answers.iter().all(|answer| answer["status"] == "ok"),
                "{answers:#?}"
            );
        }
    });
    let records = product
        .run(&["audit", "query", "--json", "--limit", "1000"])
        .json_lines();
    assert_eq!(records.len(), 300);
    assert!(
        records
            .iter()
            .all(|record| record["result"]["type"] == "success")
    );
}

#[test]
fn results_never_name_the_host_beyond_the_workspace() {
    let product = Product::new();
    product.file("a.txt", "a");
    std::os::unix::fs::symlink("/etc/passwd", product.work.join("link")).unwrap();
    let home = product.home.display().to_string();
    for (tool, params) in [
        ("read", json!({"path": "link"})),
        ("read", json!({"path": "/etc/shadow"})),
        ("list_directory", json!({"path": "/"})),
        ("grep", json!({"pattern": "root", "path": "/etc"})),
        (
            "read_overflow",
            json!({"id": "67e55044-10b1-426f-9247-bb680e5fe0c8"}),
        ),
    ] {
        let got: Value = product.call(tool, params.clone());
        let text = got["text"].as_str().unwrap();
        assert_ne!(got["status"], "ok", "{tool} {params}: {text}");
        assert!(
            !text.contains(&home) && !text.contains("root:x"),
            "{tool} {params}: {text}"
        );
    }
}

#[test]
fn doctor_says_what_it_can_with_a_broken_configuration() {
    let product = Product::new();
    let shown = |args: &[&str]| {
        let ran = product.run(args);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let shown: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        shown["checks"].as_array().unwrap().clone()
    };
    let has = |checks: &[serde_json::Value], group: &str, words: &str| {
        checks
            .iter()
            .any(|check| check["group"] == group && check.to_string().contains(words))
    };
    let of_project = |text: &str| product.file(".zeph/config.toml", text);
    of_project("nonsense = 1\n");
    let checks = shown(&["doctor", "--json"]);
    assert!(has(&checks, "configuration", "nonsense"), "{checks:?}");
    assert!(
        has(&checks, "configuration", "without those of the project"),
        "{checks:?}"
    );
    for group in ["store", "plugins", "jail", "editors"] {
        assert!(has(&checks, group, ""), "{group}: {checks:?}");
    }
    product.file(".zeph/config.toml", "");
    for args in [
        ["--set", "limits.cpu_secs=many", "doctor", "--json"],
        ["--config", "none.toml", "doctor", "--json"],
    ] {
        let checks = shown(&args);
        assert!(
            has(&checks, "configuration", "mistake"),
            "{args:?}: {checks:?}"
        );
        assert!(has(&checks, "jail", "landlock"), "{args:?}: {checks:?}");
        assert!(has(&checks, "store", "database"), "{args:?}: {checks:?}");
    }
}

/// A disk of two megabytes in a namespace of the test's own.
#[test]
#[cfg(target_os = "linux")]
#[expect(
    clippy::disallowed_methods,
    reason = "the program runs with a disk that is made for it"
)]
fn doctor_sees_a_full_disk() {
    let product = Product::new();
    let state = product.home.join(".local");
    std::fs::create_dir_all(&state).unwrap();
    let program = product.command(&[]);
    let check = |filler: &str| {
        let script = format!("{filler}; exec \"$0\" doctor --json");
        let output = std::process::Command::new("/usr/bin/bwrap")
            .args(["--dev-bind", "/", "/", "--size", "2097152", "--tmpfs"])
            .arg(&state)
            .args(["--chdir"])
            .arg(&product.work)
            .args(["--", "/bin/sh", "-c", &script])
            .arg(program.get_program())
            .env_clear()
            .env("HOME", &product.home)
            .env("STATE", &state)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let shown: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!(
                "{error}: {text} {}",
                String::from_utf8_lossy(&output.stderr)
            )
        });
        let checks = shown["checks"].as_array().unwrap().clone();
        let named = |name: &str| {
            checks
                .iter()
                .find(|one| one["name"] == name)
                .unwrap()
                .clone()
        };
        (named("database"), named("audit"))
    };
    let (database, audit) = check("true");
    for few in [database, audit] {
        assert_eq!(few["state"], "degraded", "{few}");
        assert!(
            few["detail"].as_str().unwrap().contains("MiB are free"),
            "{few}"
        );
    }
    let (database, audit) = check("head -c 4000000 /dev/zero >\"$STATE/full\" 2>/dev/null");
    for full in [database, audit] {
        assert_eq!(full["state"], "missing", "{full}");
        assert!(
            full["detail"]
                .as_str()
                .unwrap()
                .contains("no room on the disk"),
            "{full}"
        );
        assert!(
            full["how_to_get"]
                .as_str()
                .unwrap()
                .contains("free some space"),
            "{full}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn config_check_fails_where_the_host_would_not_start() {
    let product = Product::new();
    product.file("a.txt", "a");
    let link = product.work.join("dangling");
    std::os::unix::fs::symlink("nowhere/file", &link).unwrap();
    product.file("notes", "another application's\n");
    let foreign = product.work.join("notes");
    let at = |key: &str, place: &Path| format!("{key}={}", place.display());
    let (store, audit) = ("store.path", "tools.audit.file");
    for (settings, told) in [
        (
            vec![
                "tools.scope.enabled=true".to_owned(),
                "tools.scope.run_as_user=nosuch".to_owned(),
            ],
            "no such user",
        ),
        (vec![at(store, "/proc/x/zeph.db".as_ref())], "`store.path`"),
        (vec![at(store, &product.work)], "`store.path`"),
        (vec![at(store, "/dev/null".as_ref())], "`store.path`"),
        (vec![at(store, &link)], "`store.path`"),
        (vec![at(store, &foreign)], "of another application"),
        (
            vec![at(audit, "/proc/x.jsonl".as_ref())],
            "`tools.audit.file`",
        ),
        (vec![at(audit, &product.work)], "`tools.audit.file`"),
        (vec![at(audit, &link)], "`tools.audit.file`"),
    ] {
        let set = settings.iter().flat_map(|setting| ["--set", setting]);
        let set: Vec<&str> = set.collect();
        for command in [&["config", "check"][..], &["call", "read", "path=a.txt"]] {
            let ran = product.run(&[&set[..], command].concat());
            assert_eq!(ran.code, Some(3), "{settings:?} {command:?} {}", ran.stderr);
        }
        let ran = product.run(&[&set[..], &["config", "check"]].concat());
        assert!(ran.stderr.contains(told), "{settings:?} {}", ran.stderr);
        assert!(!ran.stderr.contains("all right"), "{}", ran.stderr);
    }
}

#[test]
fn config_check_reports_to_programs_what_it_tells_people() {
    let product = Product::new();
    product.file("bad.toml", "[tools]\nenabeld = true\n");
    product.file(
        "idle.toml",
        "[tools.scheduler]\ntime_zone = \"Europe/Berlin\"\n",
    );
    let nowhere = "store.path=/proc/x/zeph.db";
    let none = |report: &Value| report["problems"][0].is_null();
    for (args, code, place, told) in [
        (&["--config", "bad.toml"][..], 3, "/problems/0/line", "2"),
        (
            &["--config", "bad.toml"],
            3,
            "/problems/0/message",
            "tools.enabeld",
        ),
        (
            &["--set", nowhere],
            3,
            "/problems/0/message",
            "/proc/x/zeph.db",
        ),
        (
            &["--config", "idle.toml"],
            0,
            "/warnings/0",
            "tools.scheduler.enabled",
        ),
    ] {
        let ran = product.run(&[args, &["config", "check", "--json"]].concat());
        assert_eq!(ran.code, Some(code), "{args:?} {}", ran.stderr);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["ok"], code == 0, "{report}");
        assert_eq!(none(&report), code == 0, "{report}");
        let said = report.pointer(place).unwrap().to_string();
        assert!(said.contains(told), "{args:?} {report}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn config_check_reports_a_directory_that_tools_cannot_name() {
    use std::os::unix::ffi::OsStrExt as _;

    let product = Product::new();
    let place = product.work.join(std::ffi::OsStr::from_bytes(b"d\xff"));
    std::fs::create_dir(&place).unwrap();
    for args in [&["config", "check"][..], &["call", "list_runs"]] {
        let ran = product.command(args).current_dir(&place).output().unwrap();
        let told = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(3), "{args:?} {told}");
        assert!(told.contains("is not an absolute UTF-8 path"), "{told}");
    }
}

#[test]
fn config_check_reads_the_keys_and_certificates_that_a_start_needs() {
    let product = Product::new();
    product.file("none.pem", "no certificate\n");
    let file = product.work.join("none.pem").display().to_string();
    let check = |settings: &[(&str, &str)]| {
        let settings = settings.iter().map(|(key, value)| format!("{key}={value}"));
        let settings: Vec<String> = settings.collect();
        let set = settings.iter().flat_map(|setting| ["--set", setting]);
        let args: Vec<&str> = set.chain(["config", "check"]).collect();
        product.run(&args)
    };
    let seals = [("mcp.serve.replica", "a"), ("mcp.serve.seal_keys", &*file)];
    let ran = check(&seals);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("mcp.serve.seal_keys"), "{}", ran.stderr);
    for (key, told) in [
        (
            "tools.egress.ca_file",
            "`tools.egress.ca_file` cannot be used",
        ),
        (
            "engine.cache_dir",
            "is not a directory: every start compiles",
        ),
    ] {
        let ran = check(&[(key, file.as_str())]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(ran.stderr.matches(told).count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn a_right_that_no_tool_has_is_named_with_its_key() {
    let product = Product::new();
    product.file("a.txt", "one\n");
    let write = json!({"path": "a.txt", "content": "two"});
    let edit = json!({"path": "a.txt", "old_string": "one", "new_string": "two"});
    let delete = json!({"path": "a.txt"});
    for (rights, tool, params, missing) in [
        ("read,write", "write", write, "create"),
        ("read,write", "edit", edit, "create"),
        ("read,write,create", "delete_path", delete, "delete"),
    ] {
        let rights = format!("tools.file.rights={rights}");
        let line = json!({"id": 1, "tool": tool, "params": params}).to_string() + "\n";
        let answers = product.answers(&["--allow", "*", "--set", &rights], line);
        let text = answers[0]["text"].as_str().unwrap();
        let is_told = text.contains(missing) && text.contains("`tools.file.rights`");
        assert!(is_told, "{tool}: {text}");
    }
    assert_eq!(product.read("a.txt"), "one\n");
}

#[test]
fn config_check_notes_what_a_start_notes() {
    let product = Product::new();
    product.user_config(
        "[tools.scoped]\nenabled = true\ndenied_tools = [\"delete_pth\"]\n\
         [[tools.permissions.bsah]]\npattern = \"*\"\naction = \"deny\"\n\
         [tools.compression]\nstrategies.nosuch = \"moderate\"\n\
         [tools.filters]\nfilters_path = \"/nonexistent.toml\"\n\
         [tools.egress]\nca_file = \"/nonexistent.pem\"\n",
    );
    let ran = product.run(&["config", "check"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for told in [
        "`tools.scoped.denied_tools`: no tool is named `delete_pth`",
        "`tools.permissions.bsah`: no tool is named `bsah`",
        "`tools.compression.strategies.nosuch`: no tool is named `nosuch`",
        "/nonexistent.toml",
        "`tools.egress.ca_file`: /nonexistent.pem cannot be read",
    ] {
        assert_eq!(ran.stderr.matches(told).count(), 1, "{told} {}", ran.stderr);
    }
    // Strategies of the program itself are for tools that may be off.
    let ran = product.run(&["--set", "plugins.enabled=false", "config", "check"]);
    assert!(
        !ran.stderr.contains("`tools.compression.strategies.fetch`"),
        "{}",
        ran.stderr
    );
}

#[test]
#[cfg(target_os = "linux")]
fn commands_run_however_the_files_of_the_operator_are_named() {
    let product = Product::new();
    let base = product.work.parent().unwrap();
    for folder in ["cfg", "pl", "xc"] {
        fs::create_dir(base.join(folder)).unwrap();
    }
    fs::write(base.join("cfg/e.toml"), "[run]\njobs = 3\n").unwrap();
    let beside = |name: &str| product.work.join("..").join(name).display().to_string();
    let call = ["call", "bash", "command=echo hi"];
    for (flags, variable) in [
        (&["--config", "../cfg/e.toml"][..], None),
        (&["--plugins", "../pl"], None),
        (&[], Some(("ZEPH_HOST_CONFIG", "../cfg/e.toml".to_owned()))),
        (&[], Some(("XDG_CONFIG_HOME", beside("xc")))),
        (&[], Some(("HOME", beside("home")))),
    ] {
        let mut command = product.command(&[flags, &call].concat());
        command.envs(variable.clone());
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{flags:?} {variable:?} {told}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("hi"), "{flags:?} {variable:?} {text}");
    }
}
