//! `plugin search`, `outdated` and `update`: indexes with real signatures, and the registry of Debian.

use std::fs;

use serde_json::{Value, json};
use zeph_artifact::signature::secret::SecretKey;

use super::registry::docker_registry::DockerRegistry;
use super::{WANTS, WANTS_MORE, wanting, with_section};
use crate::product::Product;

/// A publisher of indexes in files of the workspace.
pub(super) struct Publisher {
    key: SecretKey,
}

impl Publisher {
    pub(super) fn new() -> Self {
        Self {
            key: SecretKey::generate().unwrap(),
        }
    }

    fn line(&self) -> String {
        self.key.public().to_text()
    }

    /// Writes an index and its signature.
    fn publish(&self, product: &Product, number: i64, change: impl FnOnce(&mut Value)) {
        self.publish_as(product, ("index.json", number), change);
    }

    /// Writes an index of this name and number.
    pub(super) fn publish_as(
        &self,
        product: &Product,
        (name, number): (&str, i64),
        change: impl FnOnce(&mut Value),
    ) {
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
        product.file(name, &document);
        product.file(&format!("{name}.minisig"), signature);
    }

    /// What an operator writes to use the index.
    fn trusted(&self, product: &Product) -> String {
        self.trusted_with(product, &["index.json"])
    }

    /// What an operator writes to use these indexes, in this order.
    pub(super) fn trusted_with(&self, product: &Product, names: &[&str]) -> String {
        let paths = names.iter().map(|name| product.work.join(name));
        let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        let offers: Vec<String> = paths.iter().map(|path| format!("file:{path}")).collect();
        let line = self.line();
        format!(
            "[plugins]\nindex = {paths:?}\n[[plugins.trust.signers]]\nname = \"publisher\"\nkey = \"{line}\"\noffers = {offers:?}\n"
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

/// Neither time nor what becomes of another signer undoes what the publisher of an index revoked.
#[test]
fn a_key_that_an_index_revoked_stays_revoked_when_another_signer_goes() {
    let product = Product::new();
    let (old, new, other) = (Publisher::new(), Publisher::new(), Publisher::new());
    let configure = |more: &str| {
        let other = format!(
            "[[plugins.trust.signers]]\nname = \"other\"\nkey = \"{}\"\noffers = [\"*\"]\n{more}\n",
            other.line()
        );
        product.configure(&format!("{}{other}", old.trusted(&product)));
    };
    configure("expires = \"2099-01-01\"");
    let search = ["search", "weather"];
    old.publish(&product, 1, |index| index["keys"] = json!([new.line()]));
    product.plugin_json(&search);
    // The same index is looked at again.
    product.plugin_json(&search);
    old.publish(&product, 2, |_| {});
    for more in [
        "expires = \"2099-01-01\"",
        "expires = \"2020-01-01\"",
        "revoked = true",
    ] {
        configure(more);
        product.refuses(&search, 1, &["none of the known keys"]);
    }
    product.configure(&old.trusted(&product));
    product.refuses(&search, 1, &["none of the known keys"]);
    new.publish(&product, 3, |_| {});
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
    let moving = ["add", &reference("latest"), "--name", "moving"];
    product.refuses(
        &moving,
        5,
        &["withdrew this version: rains", "--accept yanked"],
    );
    product.plugin_json(&[&moving[..], &["--yes", "--accept", "yanked"]].concat());
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

/// A registry with `weather`, versions 1.0.0, 1.1.0 and 2.0.0; what the operator writes to allow it, and its repository.
fn published(product: &Product) -> Option<(DockerRegistry, String, String)> {
    let registry = DockerRegistry::start(false)?;
    let host = format!("127.0.0.1:{}", registry.port);
    let allowed =
        format!("[[plugins.registries]]\nhost = \"{host}\"\nplain_http = true\nprivate = true\n");
    product.configure(&allowed);
    let repository = format!("{host}/org/weather");
    for (manifest, version) in [(WANTS, "1.0.0"), (WANTS_MORE, "1.1.0"), (WANTS, "2.0.0")] {
        product.file("w.wasm", versioned(manifest, version));
        product.plugin_json(&["publish", "w.wasm", &format!("{repository}:{version}")]);
    }
    Some((registry, allowed, repository))
}

/// What was withdrawn is withdrawn whichever index says so, and whatever a registry calls it.
#[test]
fn a_withdrawn_version_needs_agreement_by_name_wherever_it_is_accepted() {
    let product = Product::new();
    let Some((_registry, allowed, repository)) = published(&product) else {
        return;
    };
    let at = |version: &str| format!("{repository}:{version}");
    let withdrawn = zeph_engine::digest(&versioned(WANTS, "2.0.0"));
    let publisher = Publisher::new();
    publisher.publish_as(&product, ("silent.json", 1), |index| {
        index["plugins"][0]["source"] = json!(repository);
        index["plugins"][0]["versions"] = json!([{ "version": "1.0.0" }]);
    });
    publisher.publish_as(&product, ("index.json", 1), |index| {
        index["plugins"][0]["source"] = json!(repository);
        index["plugins"][0]["versions"] =
            json!([{ "version": "2.0.0", "component": withdrawn, "yanked": "steals keys" }]);
    });
    // The same bytes under a tag that no index knows.
    product.file("w.wasm", versioned(WANTS, "2.0.0"));
    product.plugin_json(&["publish", "w.wasm", &at("three")]);
    for names in [["silent.json", "index.json"], ["index.json", "silent.json"]] {
        product.configure(&format!(
            "{}{allowed}",
            publisher.trusted_with(&product, &names)
        ));
        let told = &["withdrew this version: steals keys", "--accept yanked"];
        for tag in ["2.0.0", "three"] {
            for more in [&[][..], &["--yes"]] {
                product.refuses(&[&["add", &at(tag)], more].concat(), 5, told);
            }
        }
        product.plugin_json(&["add", &at("1.0.0")]);
        let outdated = product.plugin_json(&["outdated"]);
        assert_eq!(outdated[0]["newest"], "1.1.0", "{outdated}");
        let to = |tag| ["update", "weather", "--yes", "--to", tag];
        product.refuses(&to("2.0.0"), 5, told);
        product.refuses(&to("three"), 5, told);
        let by_name = ["--yes", "--accept", "yanked"];
        product.plugin_json(&[&["add", &at("three"), "--replace"], &by_name[..]].concat());
        product.refuses(&["approve", "weather", "--yes"], 5, told);
        product.plugin_json(&[&["approve", "weather"], &by_name[..]].concat());
        let outdated = product.plugin_json(&["outdated"]);
        assert_eq!(outdated[0]["yanked"], "steals keys", "{outdated}");
        // The lock was accepted: what it pins is fetched, and it is said.
        fs::remove_file(product.plugins().join("weather.wasm")).unwrap();
        product.refuses(&["sync"], 0, &told[..1]);
        product.plugin_json(&["remove", "weather", "--yes"]);
    }
}

/// A registry chooses its tags: one that stands for what was withdrawn, or for what is installed, is no news and hides none.
#[test]
fn a_tag_for_what_was_withdrawn_or_is_there_is_no_newer_version() {
    let product = Product::new();
    let Some((_registry, allowed, repository)) = published(&product) else {
        return;
    };
    let at = |version: &str| format!("{repository}:{version}");
    product.file("w.wasm", versioned(WANTS, "2.0.0"));
    product.plugin_json(&["publish", "w.wasm", &at("3.0.0")]);
    product.file("w.wasm", versioned(WANTS, "1.0.0"));
    product.plugin_json(&["publish", "w.wasm", &at("4.0.0")]);
    let publisher = Publisher::new();
    let component = zeph_engine::digest(&versioned(WANTS, "2.0.0"));
    publisher.publish(&product, 1, |index| {
        index["plugins"][0]["source"] = json!(repository);
        index["plugins"][0]["versions"] =
            json!([{ "version": "2.0.0", "component": component, "yanked": "steals keys" }]);
    });
    product.configure(&format!("{}{allowed}", publisher.trusted(&product)));
    product.plugin_json(&["add", &at("1.0.0")]);
    let outdated = product.plugin_json(&["outdated"]);
    assert_eq!(outdated[0]["newest"], "1.1.0", "{outdated}");
    let updated = product.plugin_json(&["update", "weather", "--yes"]);
    assert_eq!(updated["version"], "1.1.0", "{updated}");
}

/// A plugin is updated where it is, and none is forgotten.
#[test]
fn plugins_of_every_folder_are_outdated_and_updated() {
    let product = Product::new();
    let Some((_registry, allowed, repository)) = published(&product) else {
        return;
    };
    let folders = ["one", "two"].map(|name| product.work.join(name));
    product.configure(&format!("[plugins]\nfolders = {folders:?}\n{allowed}"));
    for (folder, name) in folders.iter().zip(["one", "two"]) {
        let folder = folder.to_str().unwrap();
        let reference = format!("{repository}:1.0.0");
        product.plugin_json(&["add", &reference, "--name", name, "--plugins", folder]);
    }
    let outdated = product.plugin_json(&["outdated"]);
    let names: Vec<_> = outdated.as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 2, "{outdated}");
    for (row, name) in names.iter().zip(["one", "two"]) {
        assert_eq!(
            (&row["name"], &row["newest"]),
            (&json!(name), &json!("2.0.0"))
        );
        let updated = product.plugin_json(&["update", name, "--yes"]);
        assert_eq!(updated["version"], "2.0.0", "{updated}");
        let file = product.work.join(format!("{name}/{name}.wasm"));
        assert_eq!(fs::read(file).unwrap(), versioned(WANTS, "2.0.0"));
    }
}
