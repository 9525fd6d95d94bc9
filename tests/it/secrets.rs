//! Secrets of the operator: set and listed without showing them, granted to plugins, and found nowhere but in their own file.

#[path = "../../host/zeph-store/src/secrets/keyring/tests/desktop.rs"]
#[expect(dead_code, reason = "not all of it is needed here")]
mod desktop;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use self::desktop::Desktop;
use crate::egress;
use crate::plugin_cli::wanting;
use crate::product::{Product, Ran, answer};
use crate::site::Site;

const VALUE: &str = "Bearer k9-s3cr3t/value+42";

/// The part of it that must not be anywhere: forms of it hold none of its letters in another order.
const CREDENTIAL: &str = "k9-s3cr3t/value+42";

const WANTS_SECRET: &str = r#"
[[host]]
name = "api.example.com"
reason = "It asks for the weather."

[[secret]]
name = "WEATHER"
host = "api.example.com"
header = "Authorization"
methods = ["GET", "POST"]
reason = "The weather has its price."
"#;

impl Product {
    pub(crate) fn set_secret(&self, name: &str, value: &str) -> Ran {
        let mut command = self.command(&["secret", "set", name]);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A name that is refused is not followed by a value.
        drop(stdin.write_all(value.as_bytes()));
        drop(stdin);
        Ran::from(child.wait_with_output().unwrap())
    }

    fn secrets(&self) -> Value {
        let ran = self.run(&["secret", "list", "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!ran.stdout.contains("s3cr3t"), "{}", ran.stdout);
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

fn file_of(product: &Product) -> PathBuf {
    product
        .home
        .join(".local/share/zeph-host/secrets/secrets.json")
}

/// Every file below `folder` but the one where the values are kept, that holds `bytes`.
fn holding(folder: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, bytes));
        } else if path.file_name().unwrap() != "secrets.json" {
            let content = fs::read(&path).unwrap();
            if content.windows(bytes.len()).any(|window| window == bytes) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn a_secret_is_set_from_standard_input_and_never_shown() {
    let product = Product::new();
    for (name, value, words) in [
        ("BAD NAME", VALUE, "cannot name a secret"),
        ("T", "short\n", "at least"),
        ("T", "", "no value was given"),
        ("T", "\n", "no value was given"),
        ("T", "line one\nline two\n", "more than one line"),
        ("T", "übergröße-1234\n", "printable ASCII"),
    ] {
        let ran = product.set_secret(name, value);
        let is_refused = matches!(ran.code, Some(2)) && ran.stdout.is_empty();
        assert!(is_refused, "{name} {value:?}: {ran:?}");
        if words != "at least" {
            assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
        }
        assert!(!ran.stderr.contains("line one"), "{}", ran.stderr);
    }
    assert_eq!(product.secrets(), json!([]));
    let as_argument = product.run(&["secret", "set", "T", VALUE]);
    assert_eq!(as_argument.code, Some(2), "{}", as_argument.stderr);
    for (value, words) in [
        (format!("{VALUE}\r\n"), "is set"),
        (format!("{VALUE}2"), "is replaced"),
    ] {
        let ran = product.set_secret("T", &value);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(
            ran.stderr.contains(words) && !ran.stderr.contains("s3cr3t"),
            "{}",
            ran.stderr
        );
    }
    let file = file_of(&product);
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .contains("k9-s3cr3t/value+422")
    );
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let listed = product.secrets();
    assert_eq!(listed[0]["name"], "T");
    assert_eq!(listed[0]["kept_in"], "file");
    assert_eq!(listed[0]["plugins"], json!([]));
    assert!(listed[0]["created"].is_string());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).unwrap();
    let exposed = product.run(&["secret"]);
    assert_eq!(exposed.code, Some(1));
    assert!(exposed.stderr.contains("chmod"), "{}", exposed.stderr);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(product.run(&["secret", "rm", "T"]).code, Some(0));
    assert_eq!(product.run(&["secret", "rm", "T"]).code, Some(2));
    assert_eq!(product.secrets(), json!([]));
}

#[test]
fn a_secret_is_granted_where_its_manifest_wants_it_and_nowhere_else() {
    let product = Product::new();
    product.drop_in("x", &wanting(WANTS_SECRET));
    for typed in [
        "OTHER=api.example.com:authorization",
        "WEATHER=example.com:authorization",
        "WEATHER=api.example.com:8443:authorization",
        "WEATHER=api.example.com:x-api-key",
        "WEATHER=api.example.com:authorization:DELETE",
        "WEATHER=api.example.com:authorization:GET+DELETE",
    ] {
        let wanted = "secret WEATHER=api.example.com:authorization:GET+POST";
        product.refuses(&["grant", "x", "--secret", typed], 2, &[wanted]);
    }
    product.refuses(
        &["grant", "x", "--secret", "OTHER"],
        2,
        &["no secret `OTHER`"],
    );
    let granted = product.run(&[
        "plugin",
        "grant",
        "x",
        "--secret",
        "WEATHER=api.example.com:authorization:GET",
    ]);
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    assert!(
        granted.stderr.contains("zeph-host secret set WEATHER"),
        "{}",
        granted.stderr
    );
    product.set_secret("WEATHER", VALUE);
    let bound = product.secrets()[0]["plugins"][0].clone();
    assert_eq!(
        (
            &bound["plugin"],
            &bound["host"],
            &bound["header"],
            &bound["methods"]
        ),
        (
            &json!("x"),
            &json!("api.example.com"),
            &json!("authorization"),
            &json!(["GET"])
        )
    );
    let info = product.plugin_json(&["info", "x"]);
    let wants = info["wants"].as_array().unwrap();
    let secret = wants.iter().find(|want| want["kind"] == "secret").unwrap();
    assert_eq!(
        secret["effective"][0]["methods"],
        json!(["GET"]),
        "{secret}"
    );
    assert_eq!(secret["is_granted"], false);
    let removed = product.run(&["secret", "rm", "WEATHER"]);
    assert!(
        removed.stderr.contains("plugin `x` can no longer send it"),
        "{}",
        removed.stderr
    );
    let revoked = product.run(&["plugin", "revoke", "x", "--secret", "WEATHER"]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    let all = product.run(&["plugin", "grant", "x", "--secret", "WEATHER"]);
    assert!(
        all.stdout.contains("authorization:GET+POST"),
        "{}",
        all.stdout
    );
}

#[test]
fn a_known_secret_is_in_no_answer_no_record_and_no_log() {
    let product = Product::new();
    assert_eq!(product.set_secret("T", VALUE).code, Some(0));
    let encoded = STANDARD.encode(format!("x:{CREDENTIAL}"));
    let long = format!(
        "{CREDENTIAL} {encoded} {}\n",
        CREDENTIAL.replace('/', "%2f")
    )
    .repeat(2_000);
    product.file("leak.txt", format!("{VALUE}\n{encoded}\n"));
    product.file("long.txt", &long);
    let calls = [
        json!({"id": 1, "tool": "read", "params": {"path": "leak.txt"}}),
        json!({"id": 2, "tool": "grep", "params": {"pattern": "k9", "max_results": 5_000}}),
        json!({"id": 3, "tool": "bash", "params": {"command": format!("cat leak.txt; echo '{CREDENTIAL}' | base64; cat long.txt")}}),
        json!({"id": 4, "tool": "bash", "params": {"command": format!("echo {CREDENTIAL} >&2; exit 3")}}),
        json!({"id": 5, "tool": "read", "params": {"path": format!("{CREDENTIAL}.txt")}}),
        json!({"id": 6, "tool": CREDENTIAL, "params": {CREDENTIAL: [CREDENTIAL, {"deep": CREDENTIAL}]}}),
        json!({"id": 7, "tool": "write", "params": {"path": "w.txt", "content": long}}),
        json!({"id": 8, "tool": "bash", "params": {"command": "sleep 0.1; cat leak.txt", "background": true}}),
    ];
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let audit = product.home.join("audit.jsonl");
    let args = [
        "--allow",
        "*",
        "-vvv",
        "--set",
        &format!("tools.audit.file={}", audit.display()),
    ];
    let ran = product.feed(&args, &lines);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answers = ran.json_lines();
    assert_eq!(
        answer(&answers, 1)["text"]
            .as_str()
            .unwrap()
            .matches("[redacted: T]")
            .count(),
        2
    );
    assert!(
        answer(&answers, 3)["overflow"].is_string(),
        "{}",
        answer(&answers, 3)
    );
    // What is asked for is recorded as pending, which is what a person reads later.
    let asks = json!({"id": 1, "tool": "bash", "params": {"command": format!("rm {CREDENTIAL}")}});
    let asked = product.feed(&["-vvv"], format!("{asks}\n"));
    let pending = product.run(&["approve", "--list", "--json"]);
    assert!(pending.stdout.contains("rm ***"), "{}", pending.stdout);
    let shown = product.run(&["audit", "query", "--json"]);
    assert!(shown.stdout.contains("[redacted: T]"), "{}", shown.stdout);
    let inner = STANDARD.encode(CREDENTIAL);
    for form in [
        CREDENTIAL,
        &inner[..20],
        &encoded[4..20],
        "k9-s3cr3t%2f",
        "azktczNjcj",
    ] {
        for text in [
            &ran.stdout,
            &ran.stderr,
            &asked.stdout,
            &asked.stderr,
            &pending.stdout,
            &shown.stdout,
        ] {
            assert!(!text.contains(form), "{form}: {text}");
        }
        let found = holding(&product.home, form.as_bytes());
        assert!(found.is_empty(), "{form}: {found:?}");
    }
    assert_eq!(product.read("w.txt"), long, "what was asked for is done");
}

#[test]
fn a_secret_that_was_sent_to_its_host_shows_up_nowhere_else() {
    let encoded = STANDARD.encode(format!("x:{CREDENTIAL}"));
    let forms = format!(
        "{VALUE}\n{encoded}\n{}\n{}\n",
        CREDENTIAL.replace('/', "%2f"),
        json!(CREDENTIAL.replace('/', "\\/"))
    );
    let echo = forms.repeat(1_000).into_bytes();
    let site = Site::start(move |_| (format!("200 OK\r\nx-echo: {VALUE}"), echo.clone()));
    let product = egress::product(&site);
    let host = format!("localhost:{}", site.port);
    let secret = format!("T={host}:authorization:GET");
    let granted = product.run(&[
        "plugin",
        "grant",
        "web",
        "--host",
        &format!("{host}:GET"),
        "--secret",
        &secret,
    ]);
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    let url = site.url("/a");
    let get = egress::visit("GET", &url, "");
    let without = product.answers(&[], format!("{get}\n")).remove(0);
    let told = without["error"].to_string();
    assert!(told.contains("zeph-host secret set T"), "{without}");
    product.set_secret("T", VALUE);
    let mut in_url = egress::visit("GET", &format!("{url}?t={CREDENTIAL}"), "");
    in_url["id"] = json!(2);
    let audit = product.home.join("audit.jsonl");
    let audit = format!("tools.audit.file={}", audit.display());
    let ran = product.feed(&["-vvv", "--set", &audit], format!("{get}\n{in_url}\n"));
    let answers = ran.json_lines();
    assert_eq!(site.requests().len(), 1, "{answers:?}");
    assert!(site.requests()[0].contains(&format!("authorization: {VALUE}\r\n")));
    // Calls may end in any order.
    let (sent, refused) = (answer(&answers, 1), answer(&answers, 2));
    assert!(sent["overflow"].is_string(), "{sent}");
    assert!(
        refused["error"].to_string().contains("the secret `T`"),
        "{refused}"
    );
    let shown = product.run(&["audit", "query", "--json"]);
    let inner = STANDARD.encode(CREDENTIAL);
    for form in [CREDENTIAL, "s3cr3t", &inner[..20], &encoded[4..20]] {
        for text in [&ran.stdout, &ran.stderr, &shown.stdout] {
            assert!(!text.contains(form), "{form}: {text}");
        }
        let found = holding(&product.home, form.as_bytes());
        assert!(found.is_empty(), "{form}: {found:?}");
    }
    let revoked = product.run(&["plugin", "revoke", "web", "--secret", "T"]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    product.answers(&[], format!("{get}\n"));
    assert!(!site.requests()[1].contains("authorization"));
}

#[test]
fn no_tool_and_no_command_reads_the_values() {
    let product = Product::new();
    product.set_secret("T", VALUE);
    let file = file_of(&product);
    let root = product.home.display().to_string();
    let read = json!({"id": 1, "tool": "read", "params": {"path": file}});
    let bash = json!({"id": 2, "tool": "bash", "params": {"command": format!("cat '{}'; ls -la '{}'", file.display(), file.parent().unwrap().display())}});
    let answers = product.answers(
        &["--allow", "*", "--root", &root],
        format!("{read}\n{bash}\n"),
    );
    for answer in &answers {
        let text = answer.to_string();
        assert!(!text.contains("created_at_ms"), "{text}");
        assert_eq!(answer["status"], "failed", "{text}");
    }
}

#[test]
fn a_keyring_keeps_the_value_where_there_is_one() {
    let Some(desktop) = Desktop::with_keyring() else {
        return;
    };
    let product = Product::new();
    let with_bus = |args: &[&str], typed: &str| {
        let mut command = product.command(args);
        command.env("DBUS_SESSION_BUS_ADDRESS", &desktop.address);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(typed.as_bytes()).unwrap();
        drop(stdin);
        Ran::from(child.wait_with_output().unwrap())
    };
    let set = with_bus(&["secret", "set", "T"], VALUE);
    assert_eq!(set.code, Some(0), "{}", set.stderr);
    assert!(set.stderr.contains("keyring"), "{}", set.stderr);
    let off = ["--set", "store.keyring=false", "secret", "set", "F"];
    assert_eq!(with_bus(&off, "another-value-0").code, Some(0));
    let file = fs::read_to_string(file_of(&product)).unwrap();
    assert!(!file.contains("s3cr3t") && file.contains("\"T\""), "{file}");
    // The list needs no keyring.
    let listed = product.secrets();
    let kept = |idx: usize| listed[idx]["kept_in"].as_str().unwrap().to_owned();
    assert_eq!((kept(0), kept(1)), ("file".into(), "keyring".into()));
    // What the keyring has is known to the host, which removes it from what tools give.
    product.file("notes", format!("{VALUE}\n"));
    let read = with_bus(&["call", "read", "path=notes"], "");
    assert!(read.stdout.contains("[redacted: T]"), "{}", read.stdout);
    let gone = product.run(&["secret", "rm", "T"]);
    assert_eq!(gone.code, Some(1), "{}", gone.stderr);
    assert!(gone.stderr.contains("store.keyring"), "{}", gone.stderr);
    assert_eq!(with_bus(&["secret", "rm", "T"], "").code, Some(0));
    assert_eq!(product.secrets().as_array().unwrap().len(), 1);
}
