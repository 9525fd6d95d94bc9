//! Signatures of plugins: made, checked, and decided about when a plugin is added and when it is loaded.

use std::fs;
use std::io::ErrorKind;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::registry::docker_registry::DockerRegistry;
use super::{WANTS, WANTS_MORE, wanting, with_section};
use crate::product::Product;
use crate::terminal::Prompt;

/// The public key of the file that `plugin keygen` wrote.
fn public(product: &Product, name: &str) -> String {
    let text = product.read(&format!("{name}.pub"));
    text.lines().nth(1).unwrap().to_owned()
}

/// A product with a key pair for each of these names.
pub(super) fn with_keys(names: &[&str]) -> Product {
    let product = Product::new();
    for name in names {
        let file = format!("{name}.key");
        let made = product.plugin(&["keygen", &file, "--no-password"]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
    }
    product
}

/// Writes what the operator decided: the rule, and signers with what else stands in their tables.
pub(super) fn trust(product: &Product, unsigned: &str, signers: &[(&str, &str)]) {
    let mut text = format!("[plugins.trust]\nunsigned = \"{unsigned}\"\n");
    for (name, more) in signers {
        let key = public(product, name);
        text.push_str(&format!(
            "[[plugins.trust.signers]]\nname = \"{name}\"\nkey = \"{key}\"\n{more}\n"
        ));
    }
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

const LOCAL: &str = "offers = [\"file:*\"]";

/// Signs the plugin as `weather.wasm` with more words, and puts both files into the folder.
fn signed(product: &Product, plugin: &[u8], words: &[&str]) {
    product.file("weather.wasm", plugin);
    let mut all = vec!["sign", "weather.wasm"];
    all.extend(words);
    let made = product.plugin(&all);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    product.drop_in("weather", plugin);
    sidecar(product, product.read("weather.wasm.minisig").as_bytes());
}

fn sidecar(product: &Product, text: &[u8]) {
    fs::write(product.plugins().join("weather.wasm.minisig"), text).unwrap();
}

fn plugin() -> Vec<u8> {
    with_section(&wanting(WANTS), "version", b"1.2.0")
}

/// How the plugin stands.
fn weather(product: &Product) -> Value {
    product.plugin_json(&["info", "weather"])
}

fn refused(product: &Product, words: &[&str]) {
    let info = weather(product);
    assert_eq!(info["status"], "quarantined", "{info}");
    let reason = info["reason"].as_str().unwrap();
    for word in words {
        assert!(reason.contains(word), "no {word:?} in {reason}");
    }
    let answer = product.call("weather__echo", json!({"text": "x"}));
    assert!(answer.to_string().contains("is off"), "{answer}");
}

#[test]
fn a_key_pair_is_private_and_never_overwritten() {
    let product = with_keys(&["acme"]);
    for file in ["acme.key", "acme.pub"] {
        let meta = fs::metadata(product.work.join(file)).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o600, "{file}");
    }
    let before = product.read("acme.key");
    product.refuses(
        &["keygen", "acme.key", "--no-password"],
        2,
        &["never overwritten"],
    );
    fs::remove_file(product.work.join("acme.key")).unwrap();
    // The public one is in the way, too, and nothing is left behind.
    product.refuses(
        &["keygen", "acme.key", "--no-password"],
        2,
        &["acme.pub", "never overwritten"],
    );
    assert!(!product.work.join("acme.key").exists());
    product.file("acme.key", before);
    product.refuses(
        &["keygen", "other.key"],
        2,
        &["no terminal", "--no-password"],
    );
    product.refuses(
        &["keygen", "x.pub", "--no-password"],
        2,
        &["does not end in `.pub`"],
    );
    // Not through a link either.
    std::os::unix::fs::symlink("elsewhere", product.work.join("link.key")).unwrap();
    product.refuses(
        &["keygen", "link.key", "--no-password"],
        2,
        &["never overwritten"],
    );
    assert!(!product.work.join("elsewhere").exists());
}

#[test]
fn a_signed_plugin_is_used_and_says_who_signed_it() {
    let product = with_keys(&["acme"]);
    trust(&product, "refuse", &[("acme", LOCAL)]);
    signed(&product, &plugin(), &["--key", "acme.key"]);
    let info = weather(&product);
    assert_eq!(info["status"], "active", "{info}");
    assert_eq!(info["signature"]["state"], "signed", "{info}");
    assert_eq!(info["signature"]["signer"], "acme", "{info}");
    assert_eq!(info["signature"]["version"], "1.2.0", "{info}");
    let list = product.plugin_json(&["list"]);
    assert_eq!(list[0]["signer"], "acme", "{list}");
    let table = product.plugin(&["list"]).stdout;
    assert!(
        table.contains("SIGNED BY") && table.contains("acme"),
        "{table}"
    );
    let verified = product.plugin_json(&["verify", "weather.wasm"]);
    assert_eq!(verified["reference"], "file:weather", "{verified}");
    let answer = product.call("weather__echo", json!({"text": "x"}));
    assert!(!answer.to_string().contains("is off"), "{answer}");
}

#[test]
fn an_installed_plugin_is_verified_by_its_name() {
    let product = with_keys(&["acme"]);
    trust(&product, "refuse", &[("acme", LOCAL)]);
    product.drop_in("weather", &plugin());
    product.refuses(
        &["verify", "weather"],
        1,
        &["nobody", "`zeph-host plugin sign`"],
    );
    signed(&product, &plugin(), &["--key", "acme.key"]);
    let verified = product.plugin_json(&["verify", "weather"]);
    assert_eq!(verified["reference"], "file:weather", "{verified}");
    assert_eq!(verified["signer"], "acme", "{verified}");
    product.refuses(&["verify", "wether"], 2, &["`weather`", "lists the names"]);
    // A file of that name goes first, and is no component.
    product.file("weather", b"sunny");
    product.refuses(&["verify", "weather"], 1, &["plugin check"]);
}

#[test]
fn what_the_policy_does_not_accept_is_refused_at_load_with_the_reason() {
    let product = with_keys(&["acme", "other"]);
    trust(&product, "refuse", &[("acme", LOCAL)]);
    product.drop_in("weather", &plugin());
    refused(&product, &["it is not signed", "plugins.trust.signers"]);
    product.refuses(
        &["approve", "weather", "--yes"],
        1,
        &["cannot be approved", "not signed"],
    );

    // By a key nobody knows.
    signed(&product, &plugin(), &["--key", "other.key"]);
    refused(&product, &["no known signer", "which is no known key"]);

    // Of another version, whose bytes differ.
    signed(&product, &plugin(), &["--key", "acme.key"]);
    let good = product.read("weather.wasm.minisig");
    product.drop_in(
        "weather",
        &with_section(&wanting(WANTS_MORE), "version", b"1.2.0"),
    );
    refused(&product, &["`acme`", "does not match"]);

    product.drop_in("weather", &plugin());
    sidecar(&product, &good.as_bytes()[..good.len() - 30]);
    refused(&product, &["signature file cannot be read"]);
    sidecar(&product, good.as_bytes());
    assert_eq!(weather(&product)["status"], "active");

    // The operator decides about signers at any time: what was accepted before is looked at again.
    trust(
        &product,
        "refuse",
        &[("acme", "offers = [\"ghcr.io/acme/*\"]")],
    );
    refused(&product, &["may not offer `file:weather`", "`offers`"]);
    trust(
        &product,
        "allow",
        &[("acme", &format!("{LOCAL}\nrevoked = true"))],
    );
    refused(&product, &["with a revoked key"]);
    trust(
        &product,
        "allow",
        &[("acme", &format!("{LOCAL}\nexpires = \"2026-01-01\""))],
    );
    refused(
        &product,
        &["the key of `acme`", "expired on 2026-01-02T00:00:00Z"],
    );
    // A second signer with another key for the same.
    trust(&product, "refuse", &[("other", LOCAL)]);
    refused(&product, &["no known key"]);
    product.file("weather.wasm", plugin());
    let both = product.plugin_json(&["sign", "weather.wasm", "--key", "other.key", "--add"]);
    assert_eq!(both["version"], "1.2.0", "{both}");
    sidecar(&product, product.read("weather.wasm.minisig").as_bytes());
    assert_eq!(weather(&product)["signature"]["signer"], "other");
    // A plugin under the name of another.
    product.file("danger.wasm", plugin());
    product.plugin_json(&["sign", "danger.wasm", "--key", "other.key"]);
    sidecar(&product, product.read("danger.wasm.minisig").as_bytes());
    refused(&product, &["as the plugin `danger`"]);
}

#[test]
fn unsigned_plugins_wait_for_their_operator_where_that_was_decided() {
    let product = with_keys(&["acme"]);
    trust(&product, "ask", &[("acme", LOCAL)]);
    product.drop_in("weather", &plugin());
    refused(
        &product,
        &["it is not signed", "`zeph-host plugin approve weather`"],
    );
    product.refuses(&["approve", "weather"], 5, &["was never accepted", "--yes"]);
    refused(&product, &["it is not signed"]);
    product.refuses(&["approve", "weather", "--yes"], 0, &["is approved"]);
    assert_eq!(weather(&product)["status"], "active");
    // What was agreed to was this one.
    product.drop_in("weather", &wanting(WANTS_MORE));
    assert_eq!(weather(&product)["status"], "changed");
    // One that a signer vouches for waits for nobody.
    let signed_one = with_keys(&["acme"]);
    trust(&signed_one, "ask", &[("acme", LOCAL)]);
    signed(&signed_one, &plugin(), &["--key", "acme.key"]);
    assert_eq!(weather(&signed_one)["status"], "active");
    // And without any decision everything is as it ever was.
    let free = Product::new();
    free.drop_in("weather", &plugin());
    let info = weather(&free);
    assert_eq!(
        (&info["status"], &info["signature"]),
        (&json!("active"), &Value::Null)
    );
}

/// The pin of a signed plugin is no agreement to an unsigned one, and the lock of a repository is nobody's.
#[test]
fn a_pin_alone_agrees_to_no_unsigned_plugin() {
    let product = with_keys(&["acme"]);
    trust(&product, "ask", &[("acme", LOCAL)]);
    signed(&product, &plugin(), &["--key", "acme.key"]);
    assert_eq!(weather(&product)["status"], "active");
    fs::remove_file(product.plugins().join("weather.wasm.minisig")).unwrap();
    assert_eq!(weather(&product)["status"], "changed");
    let approve = ["approve", "weather", "--yes"];
    product.refuses(&approve, 5, &["it is not signed", "--accept signer"]);
    product.refuses(
        &[&approve[..], &["--accept", "signer"]].concat(),
        0,
        &["is approved"],
    );
    assert_eq!(weather(&product)["status"], "active");

    let product = Product::new();
    product.file("repo/plugins/weather.wasm", plugin());
    let info = [
        "plugin",
        "info",
        "weather",
        "--json",
        "--plugins",
        "repo/plugins",
    ];
    assert_eq!(product.run(&info).json()["status"], "active");
    trust(&product, "ask", &[]);
    let info = product.run(&info).json();
    assert_eq!(info["status"], "quarantined", "{info}");
    let reason = info["reason"].as_str().unwrap();
    assert!(reason.contains("`zeph-host plugin add`"), "{reason}");
}

#[test]
fn adding_decides_before_anything_is_copied() {
    let product = with_keys(&["acme", "other"]);
    product.file("weather.wasm", plugin());
    trust(&product, "refuse", &[("acme", LOCAL)]);
    product.refuses(
        &["add", "weather.wasm", "--yes"],
        1,
        &["is refused: it is not signed"],
    );
    product.plugin_json(&["sign", "weather.wasm", "--key", "other.key"]);
    product.refuses(&["add", "weather.wasm", "--yes"], 1, &["no known signer"]);
    assert!(!product.plugins().join("weather.wasm").exists());
    product.plugin_json(&["sign", "weather.wasm", "--key", "acme.key"]);
    let added = product.plugin_json(&["add", "weather.wasm"]);
    assert_eq!(added["status"], "active", "{added}");
    assert_eq!(weather(&product)["signature"]["signer"], "acme");
    let lock = fs::read_to_string(product.home.join(".local/share/zeph-host/zeph.lock")).unwrap();
    assert!(lock.contains("acme"), "{lock}");
    product.refuses(&["remove", "weather", "--yes"], 0, &[]);
    let left = fs::read_dir(product.plugins()).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = left.filter(|name| name.starts_with("weather")).collect();
    assert!(left.is_empty(), "{left:?}");

    let asking = with_keys(&["acme"]);
    asking.file("weather.wasm", plugin());
    trust(&asking, "ask", &[("acme", LOCAL)]);
    asking.refuses(
        &["add", "weather.wasm"],
        5,
        &["no known signer signed it", "--yes"],
    );
    asking.refuses(&["add", "weather.wasm", "--yes"], 0, &["is added"]);
    assert_eq!(weather(&asking)["status"], "active");
}

#[test]
fn a_signature_comes_from_the_registry_and_stays_without_it() {
    let Some(registry) = DockerRegistry::start(false) else {
        return;
    };
    let port = registry.port;
    let product = with_keys(&["acme", "other"]);
    let decide = |rule: &str, signers: &[(&str, &str)]| {
        trust(&product, rule, signers);
        let file = product.home.join(".config/zeph-host/config.toml");
        let text = fs::read_to_string(&file).unwrap();
        let registry = format!(
            "[[plugins.registries]]\nhost = \"127.0.0.1:{port}\"\nplain_http = true\nprivate = true\n"
        );
        fs::write(file, text + &registry).unwrap();
    };
    let org = "offers = [\"127.0.0.1:*/org/*\"]";
    decide("refuse", &[("acme", org)]);
    product.file("w.wasm", plugin());
    let tagged = format!("127.0.0.1:{port}/org/weather:1.2.0");
    product.plugin_json(&["publish", "w.wasm", &tagged]);
    product.refuses(&["verify", &tagged], 1, &["nobody"]);
    product.refuses(&["add", &tagged, "--yes"], 1, &["it is not signed"]);
    product.plugin_json(&["publish", "w.wasm", &tagged, "--sign", "other.key"]);
    product.refuses(&["add", &tagged, "--yes"], 1, &["no known signer"]);
    let published = product.plugin_json(&["publish", "w.wasm", &tagged, "--sign", "acme.key"]);
    assert!(
        published["signed_with"]
            .as_str()
            .unwrap()
            .starts_with("minisign "),
        "{published}"
    );
    let verified = product.plugin_json(&["verify", &tagged]);
    assert_eq!(
        (&verified["state"], &verified["signer"]),
        (&json!("signed"), &json!("acme"))
    );
    // Under the name it has there, whatever it is called here.
    let added = product.plugin_json(&["add", &tagged, "--name", "rain"]);
    assert_eq!(added["status"], "active", "{added}");
    drop(registry);
    let info = product.plugin_json(&["info", "rain"]);
    assert_eq!(info["signature"]["signer"], "acme", "{info}");
    decide("refuse", &[("acme", LOCAL)]);
    let info = product.plugin_json(&["info", "rain"]);
    assert_eq!(info["status"], "quarantined", "{info}");
    assert!(
        info["reason"].as_str().unwrap().contains("/org/weather`"),
        "{info}"
    );
}

#[test]
fn signing_says_what_it_signs_and_refuses_what_it_cannot() {
    let product = with_keys(&["acme"]);
    product
        .file("weather.wasm", plugin())
        .file("module.wasm", b"\0asm\x01\0\0\0");
    let document = product
        .plugin(&["sign", "weather.wasm", "--print-document"])
        .stdout;
    let value: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(
        value["type"], "application/vnd.zeph-host.digests.v1+json",
        "{value}"
    );
    assert!(!product.work.join("weather.wasm.minisig").exists());
    product.refuses(&["sign", "weather.wasm"], 2, &["--key"]);
    product.refuses(
        &["sign", "weather.wasm", "--key", "gone.key"],
        2,
        &["cannot be read"],
    );
    product.refuses(
        &["sign", "weather.wasm", "--key", "acme.pub"],
        2,
        &["no secret key of minisign"],
    );
    let version = [
        "sign",
        "weather.wasm",
        "--key",
        "acme.key",
        "--version",
        "9.9.9",
    ];
    product.refuses(&version, 2, &["says it is version 1.2.0"]);
    let late = [
        "sign",
        "weather.wasm",
        "--key",
        "acme.key",
        "--expires",
        "2020-01-01",
    ];
    product.refuses(&late, 2, &["is past"]);
    product.refuses(
        &["sign", "module.wasm", "--key", "acme.key"],
        1,
        &["cannot be used"],
    );
    let until = [
        "sign",
        "weather.wasm",
        "--key",
        "acme.key",
        "--expires",
        "2999-12-31",
    ];
    let made = product.plugin_json(&until);
    assert_eq!(made["expires"], "3000-01-01T00:00:00Z", "{made}");
    assert_eq!(made["document"], document, "{made}");
    let typed = product.plugin_json(&["verify", "weather.wasm", "--key", "acme.pub"]);
    assert_eq!(typed["state"], "signed", "{typed}");
    product.refuses(&["verify", "weather.wasm"], 1, &["nobody who is known"]);
}

/// The program minisign and this one read each other's files.
#[test]
fn the_program_minisign_signs_plugins_too() {
    let product = Product::new();
    product.file("weather.wasm", plugin());
    let document = product
        .plugin(&["sign", "weather.wasm", "--print-document"])
        .stdout;
    product.file("document", &document);
    let Some(generated) = minisign(&product.work, &["-GW", "-p", "ci.pub", "-s", "ci.key"]) else {
        return;
    };
    assert!(generated);
    let sign = [
        "-SW",
        "-m",
        "document",
        "-s",
        "ci.key",
        "-x",
        "weather.wasm.minisig",
        "-t",
        "name:weather",
    ];
    assert_eq!(minisign(&product.work, &sign), Some(true));
    trust(&product, "refuse", &[("ci", LOCAL)]);
    let verified = product.plugin_json(&["verify", "weather.wasm"]);
    assert_eq!(verified["signer"], "ci", "{verified}");
    product.plugin_json(&["sign", "weather.wasm", "--key", "ci.key"]);
    let verify = [
        "-V",
        "-m",
        "document",
        "-p",
        "ci.pub",
        "-x",
        "weather.wasm.minisig",
    ];
    assert_eq!(minisign(&product.work, &verify), Some(true));
}

#[expect(clippy::disallowed_methods, reason = "it ends with the test")]
fn minisign(folder: &Path, words: &[&str]) -> Option<bool> {
    let mut command = std::process::Command::new("minisign");
    match command.args(words).current_dir(folder).output() {
        Ok(ran) => Some(ran.status.success()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            drop(writeln!(
                std::io::stderr(),
                "skipped: the program minisign is not installed"
            ));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_password_of_a_key_is_typed_twice_and_asked_for_again() {
    let product = Product::new();
    product.file("weather.wasm", plugin());
    let keygen = ["plugin", "keygen", "acme.key"];
    let type_twice = |one: &str, two: &str| {
        let mut prompt = Prompt::start_with(&product, &keygen, "Password of the new key");
        prompt.type_line(one);
        prompt.until("Once more");
        prompt.type_line(two);
        prompt.until(match one == two {
            true => "acme.key",
            false => "not the same",
        });
        assert!(!prompt.shown().contains(one), "{}", prompt.shown());
        prompt.wait()
    };
    assert_ne!(type_twice("open sesame", "open says me"), Some(0));
    assert!(!product.work.join("acme.key").exists());
    assert_eq!(type_twice("open sesame", "open sesame"), Some(0));
    let sign = ["plugin", "sign", "weather.wasm", "--key", "acme.key"];
    let typed = |password: &str| {
        let mut prompt = Prompt::start_with(&product, &sign, "assword");
        prompt.type_line(password);
        prompt.wait()
    };
    assert_ne!(typed("wrong"), Some(0));
    assert!(!product.work.join("weather.wasm.minisig").exists());
    assert_eq!(typed("open sesame"), Some(0));
    trust(&product, "refuse", &[("acme", LOCAL)]);
    let verified = product.plugin(&["verify", "weather.wasm"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
}

/// An installed plugin is checked as when it is loaded: as what its lock says it is, whatever its file is called.
#[test]
fn an_installed_file_is_verified_as_what_was_installed() {
    let Some(registry) = DockerRegistry::start(false) else {
        return;
    };
    let product = with_keys(&["acme"]);
    let reference = format!("127.0.0.1:{}/org/weather:1.2.0", registry.port);
    let offers = format!("offers = [\"127.0.0.1:{}/org/*\"]", registry.port);
    trust(&product, "refuse", &[("acme", &offers)]);
    let config = product.home.join(".config/zeph-host/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    let allowed = format!(
        "[[plugins.registries]]\nhost = \"127.0.0.1:{}\"\nplain_http = true\nprivate = true\n",
        registry.port
    );
    fs::write(&config, text + &allowed).unwrap();
    product.file("weather.wasm", plugin());
    let publish = ["publish", "weather.wasm", &reference, "--sign", "acme.key"];
    let published = product.plugin(&publish);
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    let added = product.plugin(&["add", &reference, "--name", "rain", "--yes"]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let file = product.plugins().join("rain.wasm");
    let verified = product.plugin(&["verify", file.to_str().unwrap(), "--json"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
    let reference = verified.json()["reference"].clone();
    assert_eq!(
        reference,
        format!("127.0.0.1:{}/org/weather", registry.port)
    );
}
