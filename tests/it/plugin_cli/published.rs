//! What is signed of a published plugin, and the tag that its registry gives it.

use std::fs;

use serde_json::{Value, json};

use super::registry::docker_registry::DockerRegistry;
use super::signatures::{trust, with_keys};
use super::{WANTS, WANTS_MORE, wanting, with_section};
use crate::product::Product;

/// A registry, and a product that trusts `acme` with what it has.
struct World {
    product: Product,
    repository: String,
    _registry: DockerRegistry,
}

impl World {
    fn start() -> Option<Self> {
        let registry = DockerRegistry::start(false)?;
        let host = format!("127.0.0.1:{}", registry.port);
        let product = with_keys(&["acme", "other"]);
        let offers = format!("offers = [\"{host}/org/*\"]");
        trust(&product, "refuse", &[("acme", &offers)]);
        let config = product.home.join(".config/zeph-host/config.toml");
        let text = fs::read_to_string(&config).unwrap();
        let allowed = format!(
            "[[plugins.registries]]\nhost = \"{host}\"\nplain_http = true\nprivate = true\n"
        );
        fs::write(&config, text + &allowed).unwrap();
        Some(Self {
            product,
            repository: format!("{host}/org/weather"),
            _registry: registry,
        })
    }

    fn at(&self, tag: &str) -> String {
        format!("{}:{tag}", self.repository)
    }

    /// Signs a component of this version, and has the registry call it `tag`: the same artifact, whose signature counts.
    fn tagged(&self, (manifest, version): (&str, &str), tag: &str) {
        let plugin = with_section(&wanting(manifest), "version", version.as_bytes());
        self.product.file("w.wasm", plugin);
        let signed = self.at(&format!("signed-{tag}"));
        self.product
            .plugin_json(&["publish", "w.wasm", &signed, "--sign", "acme.key"]);
        self.product
            .plugin_json(&["publish", "w.wasm", &self.at(tag)]);
    }
}

#[test]
fn a_tag_is_not_believed_before_what_was_signed() {
    let Some(world) = World::start() else {
        return;
    };
    let product = &world.product;
    world.tagged((WANTS_MORE, "2.0.0"), "2.0.0");
    product.plugin_json(&["add", &world.at("2.0.0")]);
    world.tagged((WANTS, "1.0.0"), "9.9.9");
    let verified = product.plugin_json(&["verify", &world.at("9.9.9")]);
    let told = verified["mistagged"].as_str().unwrap();
    assert!(told.contains("9.9.9") && told.contains("1.0.0"), "{told}");
    let verified = product.plugin_json(&["verify", &world.at("2.0.0")]);
    assert_eq!(verified["mistagged"], Value::Null, "{verified}");
    product.refuses(
        &["update", "weather", "--yes"],
        5,
        &[
            "its tag is of version 9.9.9",
            "the later version 2.0.0",
            "--accept downgrade",
        ],
    );
    let other = ["add", &world.at("9.9.9"), "--name", "other"];
    product.refuses(&other, 0, &["what was signed is version 1.0.0"]);
}

#[test]
fn builds_of_one_version_are_told_apart_by_their_tags() {
    let Some(world) = World::start() else {
        return;
    };
    let product = &world.product;
    world.tagged((WANTS, "0.1.0"), "1.0.0");
    world.tagged((WANTS_MORE, "0.1.0"), "1.2.0");
    product.plugin_json(&["add", &world.at("1.0.0")]);
    let outdated = product.plugin_json(&["outdated"]);
    assert_eq!(outdated[0]["newest"], "1.2.0", "{outdated}");
    let updated = product.plugin_json(&["update", "weather", "--yes"]);
    assert_eq!(updated["updated"], true, "{updated}");
    let outdated = product.plugin_json(&["outdated"]);
    assert_eq!(outdated[0]["newest"], Value::Null, "{outdated}");
    let back = ["update", "weather", "--yes", "--to", "1.0.0"];
    product.refuses(&back, 5, &["the later version 1.2.0", "--accept downgrade"]);
}

#[test]
fn what_is_signed_is_tagged_with_its_own_version() {
    let Some(world) = World::start() else {
        return;
    };
    let product = &world.product;
    product.file("w.wasm", with_section(&wanting(WANTS), "version", b"1.0.0"));
    let publish = |tag: &str| {
        let reference = world.at(tag);
        product.plugin(&["publish", "w.wasm", &reference, "--sign", "acme.key"])
    };
    let refused = publish("1.2.0");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for words in ["the tag is of version 1.2.0", "it is version 1.0.0"] {
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
    product.refuses(&["verify", &world.at("1.2.0")], 1, &["there is no"]);
    for tag in ["1.0.0", "v1.0.0", "1.0", "latest"] {
        assert_eq!(publish(tag).code, Some(0), "{tag}");
    }
}

#[test]
fn a_signature_is_published_with_its_expiry_and_one_beside_the_file_as_it_is() {
    let Some(world) = World::start() else {
        return;
    };
    let product = &world.product;
    let plugin = with_section(&wanting(WANTS), "version", b"1.0.0");
    product.file("weather.wasm", plugin);
    let sign = ["sign", "weather.wasm", "--expires", "2999-12-31", "--key"];
    product.plugin_json(&[&sign[..], &["acme.key"]].concat());
    let publish = |tag: &str, more: &[&str]| {
        let reference = world.at(tag);
        product.plugin_json(&[&["publish", "weather.wasm", &reference][..], more].concat())
    };
    let end = json!("3000-01-01T00:00:00Z");
    let published = publish("beside", &[]);
    assert_eq!(published["signature_expires"], end, "{published}");
    let verified = product.plugin_json(&["verify", &world.at("beside")]);
    assert_eq!(verified["expires_at"], end, "{verified}");
    let published = publish("1.0.0", &["--sign", "acme.key"]);
    assert_eq!(published["signature_expires"], end, "{published}");
    let shorter = ["--sign", "acme.key", "--expires", "2998-12-31"];
    let published = publish("1.0.0", &shorter);
    assert_eq!(published["signature_expires"], "2999-01-01T00:00:00Z");
    let wrong = product.plugin(&["publish", "weather.wasm", &world.at("9.9.9")]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(
        wrong.stderr.contains("the tag is of version 9.9.9"),
        "{wrong:?}"
    );
    // A new build, with the signature of the old one beside it.
    product.file(
        "weather.wasm",
        with_section(&wanting(WANTS), "version", b"1.0.1"),
    );
    let published = publish("1.0.1", &["--sign", "acme.key"]);
    assert_eq!(published["signature_expires"], end, "{published}");
    // Nobody who uses this configuration would accept that one.
    product.plugin_json(&[&sign[..], &["other.key"]].concat());
    let reference = world.at("other");
    let left = product.plugin(&["publish", "weather.wasm", &reference]);
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(left.stderr.contains("was not published"), "{left:?}");
}
