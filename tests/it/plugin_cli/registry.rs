//! `plugin publish` and `plugin add` with a registry, the one of Debian, and with a server.

#[path = "../../../host/zeph-artifact/src/registry/tests/docker_registry.rs"]
#[expect(dead_code, reason = "the tests of the client break it, too")]
pub(super) mod docker_registry;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::Value;

use self::docker_registry::DockerRegistry;
use super::{WANTS, WANTS_MORE, wanting, with_section};
use crate::product::{Product, Ran};

/// What the operator writes to allow a registry of this machine.
fn allowing(port: u16) -> String {
    format!(
        "[[plugins.registries]]\nhost = \"127.0.0.1:{port}\"\nplain_http = true\nprivate = true\n"
    )
}

/// A product whose operator allowed the registry.
fn product(port: u16) -> Product {
    let product = Product::new();
    product.user_config(allowing(port));
    product
}

/// A plugin that says who made it.
fn described(manifest: &str) -> Vec<u8> {
    let plugin = with_section(&wanting(manifest), "version", b"1.2.0");
    with_section(&plugin, "licenses", b"MIT")
}

fn reference(port: u16, selector: &str) -> String {
    format!("127.0.0.1:{port}/org/weather{selector}")
}

#[test]
fn what_was_published_is_added_by_its_tag_and_by_its_digest() {
    let Some(registry) = DockerRegistry::start(false) else {
        return;
    };
    let product = product(registry.port);
    product.file("w.wasm", described(WANTS));
    let tagged = reference(registry.port, ":1.2");
    let published = product.plugin_json(&["publish", "w.wasm", &tagged]);
    // The same bytes give the same artifact, from another machine and at another time, too.
    let another = self::product(registry.port);
    another.file("other.wasm", described(WANTS));
    let again = another.plugin_json(&["publish", "other.wasm", &tagged]);
    assert_eq!(again, published);

    let added = product.plugin_json(&["add", &tagged]);
    assert_eq!(added["name"], "weather", "{added}");
    assert_eq!(added["source"], tagged, "{added}");
    assert_eq!(added["manifest_digest"], published["manifest_digest"]);
    assert_eq!(added["pin"]["wasm"], published["digest"], "{added}");
    assert_eq!(added["status"], "active", "{added}");
    assert_eq!(added["wants"][0]["path"], ".", "{added}");
    let file = product.plugins().join("weather.wasm");
    assert_eq!(fs::read(&file).unwrap(), described(WANTS));

    let by_digest = published["reference"].as_str().unwrap();
    let digest = published["manifest_digest"].as_str().unwrap();
    assert_eq!(by_digest, format!("{tagged}@{digest}"));
    let added = product.plugin_json(&["add", by_digest]);
    assert_eq!(added["added"], "already_there", "{added}");
}

#[test]
fn another_version_takes_the_way_of_every_change() {
    let Some(registry) = DockerRegistry::start(false) else {
        return;
    };
    let product = product(registry.port);
    product
        .file("w.wasm", described(WANTS))
        .file("v.wasm", described(WANTS_MORE));
    let (old, new) = (
        reference(registry.port, ":1"),
        reference(registry.port, ":2"),
    );
    product.plugin_json(&["publish", "w.wasm", &old]);
    product.plugin_json(&["publish", "v.wasm", &new]);
    product.plugin_json(&["add", &old]);
    product.refuses(&["add", &new], 1, &["another file", "--replace"]);
    let replaced = product.plugin_json(&["add", &new, "--replace"]);
    assert_eq!(replaced["status"], "changed", "{replaced}");
    let named = product.plugin_json(&["add", &new, "--name", "other"]);
    assert_eq!(named["name"], "other", "{named}");
}

#[test]
fn what_is_no_plugin_is_neither_published_nor_added() {
    let Some(registry) = DockerRegistry::start(false) else {
        return;
    };
    let product = product(registry.port);
    product
        .file("module.wasm", b"\0asm\x01\0\0\0")
        .file("w.wasm", described(WANTS));
    let tagged = reference(registry.port, ":1.2");
    product.refuses(
        &["publish", "module.wasm", &tagged],
        1,
        &["was not published"],
    );
    product.refuses(&["add", &tagged], 1, &["there is no"]);
    let untagged = reference(registry.port, "");
    product.refuses(&["publish", "w.wasm", &untagged], 2, &["neither a tag"]);
    let upper = tagged.replace("org", "Org");
    product.refuses(&["publish", "w.wasm", &upper], 2, &["small letters"]);
    product.plugin_json(&["publish", "w.wasm", &tagged]);
    let other = format!("{tagged}@sha256:{}", "0".repeat(64));
    product.refuses(&["add", &other], 1, &["there is no"]);
    let wrong = ["add", &tagged, "--sha256", &"0".repeat(64)];
    product.refuses(
        &wrong,
        1,
        &["the component has the digest", "nothing of it is used"],
    );
    assert!(!product.plugins().exists(), "nothing was copied");
}

#[test]
fn a_registry_that_is_not_allowed_is_not_asked() {
    let product = Product::new();
    let tagged = reference(9, ":1.2");
    let words = [
        "127.0.0.1:9",
        "[[plugins.registries]]",
        "--set 'plugins.registries=[{host=\"127.0.0.1:9\"}]'",
    ];
    product.refuses(&["add", &tagged], 2, &words);
    // Nor can a project allow it, and a file of that name is not what was meant.
    product
        .file(".zeph/config.toml", allowing(9))
        .file(&tagged, described(WANTS));
    let ran = product.plugin(&["add", &tagged]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("plugins.registries"), "{ran:?}");
    fs::remove_dir_all(product.work.join(".zeph")).unwrap();
    product.refuses(&["add", &tagged], 2, &words);
    let file = format!("./{tagged}");
    assert_eq!(product.plugin(&["add", &file, "--name", "w"]).code, Some(0));
}

#[test]
fn a_registry_with_passwords_is_told_what_docker_and_wkg_know() {
    let Some(registry) = DockerRegistry::start(true) else {
        return;
    };
    let product = product(registry.port);
    product.file("w.wasm", described(WANTS));
    let host = format!("127.0.0.1:{}", registry.port);
    let tagged = reference(registry.port, ":1.2");
    let publish = ["publish", "w.wasm", tagged.as_str()];
    product.refuses(&publish, 1, &[&format!("docker login {host}")]);
    let docker = product.home.join(".docker");
    fs::create_dir_all(&docker).unwrap();
    fs::write(docker.join("config.json"), "{\"credsStore\":\"desktop\"}").unwrap();
    product.refuses(
        &publish,
        1,
        &["docker-credential-desktop", "wasm-pkg/config.toml"],
    );

    let auths = format!("{{\"auths\":{{\"{host}\":{{\"auth\":\"b3BlbjpzZXNhbWU=\"}}}}}}");
    fs::write(docker.join("config.json"), auths).unwrap();
    product.plugin_json(&publish);
    fs::remove_file(docker.join("config.json")).unwrap();
    let wkg = product.home.join(".config/wasm-pkg");
    fs::create_dir_all(&wkg).unwrap();
    let auth = format!(
        "[registry.\"{host}\".oci]\nauth = {{ username = \"open\", password = \"sesame\" }}\n"
    );
    fs::write(wkg.join("config.toml"), auth).unwrap();
    assert_eq!(product.plugin_json(&["add", &tagged])["name"], "weather");
}

/// A server that answers every request with these bytes.
fn server(bytes: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4_096];
            let n_bytes = stream.read(&mut request).unwrap_or_default();
            let is_plugin = request[..n_bytes].starts_with(b"GET /weather.wasm ");
            let (status, body) = match is_plugin {
                true => ("200 OK", bytes.as_slice()),
                false => ("404 Not Found", &b""[..]),
            };
            let n_bytes = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {n_bytes}\r\n\r\n"
            );
            drop(stream.write_all(head.as_bytes()));
            drop(stream.write_all(body));
        }
    });
    port
}

#[test]
fn a_plugin_from_a_url_has_the_digest_that_was_typed() {
    let plugin = described(WANTS);
    let port = server(plugin.clone());
    let product = product(port);
    product.file("w.wasm", &plugin);
    let url = format!("http://127.0.0.1:{port}/weather.wasm");
    let checked: Value = product.plugin_json(&["check", "w.wasm"]);
    let digest = checked["digest"].as_str().unwrap().to_owned();
    product.refuses(&["add", &url], 2, &["--sha256 HEX"]);
    product.refuses(
        &["add", &url, "--sha256", "12"],
        2,
        &["64 hexadecimal digits"],
    );
    let wrong = "0".repeat(64);
    product.refuses(
        &["add", &url, "--sha256", &wrong],
        1,
        &["nothing of it is used"],
    );
    let elsewhere = url.replace("127.0.0.1", "localhost");
    product.refuses(
        &["add", &elsewhere, "--sha256", &wrong],
        1,
        &["a loopback address", "private = true"],
    );
    assert!(!product.plugins().exists());
    let hex = digest.strip_prefix("sha256:").unwrap();
    let added = product.plugin_json(&["add", &url, "--sha256", hex]);
    assert_eq!(
        (&added["name"], &added["source"]),
        (&"weather".into(), &url.as_str().into())
    );
    assert_eq!(added["manifest_digest"], Value::Null);
    // A file can be compared, too.
    let again: Ran = product.plugin(&["add", "w.wasm", "--sha256", &wrong]);
    assert_eq!(again.code, Some(1), "{again:?}");
}
