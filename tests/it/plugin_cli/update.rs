//! `plugin search`, `outdated` and `update`: indexes with real signatures, and the registry of Debian.

use std::fs;

use serde_json::{Value, json};
use zeph_artifact::signature::secret::SecretKey;

use super::registry::docker_registry::DockerRegistry;
use super::{WANTS, WANTS_MORE, wanting, with_section};
use crate::product::Product;

/// A publisher of an index in a file of the workspace.
struct Publisher {
    key: SecretKey,
}

impl Publisher {
    fn new() -> Self {
        Self {
            key: SecretKey::generate().unwrap(),
        }
    }

    fn line(&self) -> String {
        self.key.public().to_text()
    }

    /// Writes an index and its signature.
    fn publish(&self, product: &Product, number: i64, change: impl FnOnce(&mut Value)) {
        let mut index = json!({
            "format": 1,
            "number": number,
            "expires": "2099-01-01T00:00:00Z",
            "plugins": [{
                "name": "weather",
                "description": "Says what the weather will be",
                "source": "registry.example.org/org/weather",
                "keywords": ["forecast"],
                "versions": [
                    { "version": "1.0.0" },
                    { "version": "1.2.0", "yanked": "rains" },
                    { "version": "1.1.0" },
                ],
            }],
        });
        change(&mut index);
        let document = index.to_string();
        let signature = self.key.sign(document.as_bytes(), "", "").to_text();
        product.file("index.json", &document);
        product.file("index.json.minisig", signature);
    }

    /// What an operator writes to use the index.
    fn trusted(&self, product: &Product) -> String {
        let index = product.work.join("index.json");
        let index = index.display();
        let line = self.line();
        format!(
            "[plugins]\nindex = [\"{index}\"]\n[[plugins.trust.signers]]\nname = \"publisher\"\nkey = \"{line}\"\noffers = [\"file:{index}\"]\n"
        )
    }
}

#[test]
fn plugins_are_found_in_signed_indexes() {
    let product = Product::new();
    product.refuses(&["search", "weather"], 2, &["plugins.index"]);
    let publisher = Publisher::new();
    publisher.publish(&product, 1, |_| {});
    product.configure(&publisher.trusted(&product));
    let found = product.plugin_json(&["search", "FORECAST"]);
    let plugin = &found["plugins"][0];
    assert_eq!(plugin["name"], "weather", "{found}");
    assert_eq!(plugin["newest"], "1.1.0", "{found}");
    let command = "zeph-host plugin add registry.example.org/org/weather:1.1.0";
    assert_eq!(plugin["add_command"], command, "{found}");
    // The digest that its publisher signed goes with it.
    let digest = format!("sha256:{}", "b".repeat(64));
    publisher.publish(&product, 2, |index| {
        index["plugins"][0]["versions"][2]["manifest"] = json!(digest);
    });
    let found = product.plugin_json(&["search", "FORECAST"]);
    assert_eq!(
        found["plugins"][0]["add_command"],
        format!("{command}@{digest}"),
        "{found}"
    );
    let ran = product.plugin(&["search", "weather", "nothing"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("no plugin fits"), "{ran:?}");
}

#[test]
fn a_mirror_that_is_frozen_or_rolled_back_shows() {
    let product = Product::new();
    let publisher = Publisher::new();
    product.configure(&publisher.trusted(&product));
    let search = ["search", "weather"];
    publisher.publish(&product, 7, |_| {});
    product.plugin_json(&search);
    publisher.publish(&product, 6, |_| {});
    product.refuses(&search, 1, &["number 6", "number 7 was seen"]);
    publisher.publish(&product, 7, |index| index["plugins"] = json!([]));
    product.refuses(&search, 1, &["another index with that number"]);
    publisher.publish(&product, 8, |index| {
        index["expires"] = json!("2026-01-01T00:00:00Z");
    });
    product.refuses(&search, 1, &["it expired at 2026-01-01"]);
    publisher.publish(&product, 8, |_| {});
    product.plugin_json(&search);
}

#[test]
fn keys_of_an_index_rotate_and_are_revoked() {
    let product = Product::new();
    let (old, new) = (Publisher::new(), Publisher::new());
    product.configure(&old.trusted(&product));
    let search = ["search", "weather"];
    old.publish(&product, 1, |index| index["keys"] = json!([new.line()]));
    product.plugin_json(&search);
    old.publish(&product, 2, |_| {});
    product.refuses(&search, 1, &["none of the known keys"]);
    new.publish(&product, 2, |_| {});
    product.plugin_json(&search);
    // Nobody who is in no configuration.
    let eve = Publisher::new();
    eve.publish(&product, 3, |_| {});
    product.refuses(
        &search,
        1,
        &["none of the known keys", "plugins.trust.signers"],
    );
    product.file("index.json.minisig", "nothing");
    product.refuses(&search, 1, &["four lines"]);
    fs::remove_file(product.work.join("index.json.minisig")).unwrap();
    product.refuses(&search, 1, &["index.json.minisig"]);
    // The operator has the last word.
    product.configure(&eve.trusted(&product));
    eve.publish(&product, 3, |_| {});
    product.plugin_json(&search);
}

#[test]
fn a_project_names_no_index() {
    let product = Product::new();
    product.file(
        ".zeph/config.toml",
        "[plugins]\nindex = [\"https://example.org/index.json\"]\n",
    );
    product.refuses(
        &["search", "weather"],
        3,
        &["a project file may not set this"],
    );
}

/// The plugin of this version.
fn versioned(manifest: &str, version: &str) -> Vec<u8> {
    with_section(&wanting(manifest), "version", version.as_bytes())
}

#[test]
fn a_newer_version_is_shown_agreed_to_and_installed() {
    let Some(registry) = DockerRegistry::start(false) else {
        return;
    };
    let host = format!("127.0.0.1:{}", registry.port);
    let allowed =
        format!("[[plugins.registries]]\nhost = \"{host}\"\nplain_http = true\nprivate = true\n");
    let product = Product::new();
    product.configure(&allowed);
    let reference = |tag: &str| format!("{host}/org/weather:{tag}");
    for (file, manifest, version) in [
        ("a.wasm", WANTS, "1.0.0"),
        ("b.wasm", WANTS_MORE, "1.1.0"),
        ("c.wasm", WANTS, "1.2.0"),
    ] {
        product.file(file, versioned(manifest, version));
        product.plugin_json(&["publish", file, &reference(version)]);
    }
    product.plugin_json(&["publish", "c.wasm", &reference("latest")]);
    product.plugin_json(&["add", &reference("1.0.0")]);
    let text = product.lock_text();
    let expect = format!(
        "source = {{ reference = \"{}\", manifest = \"sha256:",
        reference("1.0.0")
    );
    assert!(
        text.contains(&expect) && text.contains("version = \"1.0.0\""),
        "{text}"
    );
    product.plugin_json(&["grant", "weather", "--host", "api.example.com"]);

    // An index of the same repository says that the newest was withdrawn.
    let publisher = Publisher::new();
    publisher.publish(&product, 1, |index| {
        index["plugins"][0]["source"] = json!(format!("{host}/org/weather"));
    });
    product.configure(&format!("{}{allowed}", publisher.trusted(&product)));
    let outdated = product.plugin_json(&["outdated"]);
    assert_eq!(outdated[0]["version"], "1.0.0", "{outdated}");
    assert_eq!(outdated[0]["newest"], "1.1.0", "{outdated}");

    let told = &[
        "version",
        "1.1.0",
        "requests",
        "plugin update weather --yes",
    ];
    product.refuses(&["update", "weather"], 5, told);
    assert_eq!(product.lock_text(), text);
    let updated = product.plugin_json(&["update", "weather", "--yes"]);
    assert_eq!(
        (&updated["updated"], &updated["version"]),
        (&json!(true), &json!("1.1.0"))
    );
    let file = product.plugins().join("weather.wasm");
    assert_eq!(fs::read(&file).unwrap(), versioned(WANTS_MORE, "1.1.0"));
    let info = product.plugin_json(&["info", "weather"]);
    assert_eq!(info["status"], "active", "{info}");
    assert_eq!(info["wants"][1]["is_granted"], true, "{info}");
    let again = product.plugin_json(&["update", "weather", "--yes"]);
    assert_eq!(again["changed"], false, "{again}");

    // What was withdrawn, and what is older, has to be named.
    let to = |version: &'static str| ["update", "weather", "--yes", "--to", version];
    product.refuses(
        &to("1.2.0"),
        5,
        &["withdrew this version: rains", "--accept yanked"],
    );
    product.refuses(&to("1.0.0"), 5, &["--accept downgrade"]);
    product.refuses(&to("9.0.0"), 2, &["no version `9.0.0`"]);
    product.plugin_json(&[&to("1.0.0")[..], &["--accept", "downgrade"]].concat());
    assert_eq!(fs::read(&file).unwrap(), versioned(WANTS, "1.0.0"));

    // What the lock says comes from the registry again, by its digest.
    fs::remove_file(&file).unwrap();
    product.plugin_json(&["sync"]);
    assert_eq!(fs::read(&file).unwrap(), versioned(WANTS, "1.0.0"));
    // A tag that is no version may move.
    product.plugin_json(&["add", &reference("latest"), "--name", "moving"]);
    assert_eq!(product.plugin_json(&["outdated"])[1]["moved"], false);
    product.plugin_json(&["publish", "b.wasm", &reference("latest")]);
    assert_eq!(product.plugin_json(&["outdated"])[1]["moved"], true);
    // A bundle takes what is not in the folder from there.
    fs::remove_file(&file).unwrap();
    product.plugin_json(&["bundle", "b"]);
    let there = Product::new();
    there.file("b", fs::read(product.work.join("b")).unwrap());
    there.plugin_json(&["sync", "--from", "b", "--yes"]);
    let installed = there.plugins().join("weather.wasm");
    assert_eq!(fs::read(installed).unwrap(), versioned(WANTS, "1.0.0"));
}
