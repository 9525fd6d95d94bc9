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

/// What is installed with signatures that do not count gets those that its source has by now, or it is said that this does not help.
#[test]
fn signatures_that_do_not_count_are_fetched_again() {
    let Some(world) = World::start() else {
        return;
    };
    let product = &world.product;
    world.tagged((WANTS, "1.0.0"), "1.0.0");
    product.plugin_json(&["add", &world.at("1.0.0")]);
    let signature = product.plugins().join("weather.wasm.minisig");
    let other = product.plugin(&["publish", "w.wasm", &world.at("x"), "--sign", "other.key"]);
    assert_eq!(other.code, Some(0), "{other:?}");
    let breakages: [&dyn Fn(); 3] = [
        &|| fs::remove_file(&signature).unwrap(),
        &|| fs::write(&signature, "nothing").unwrap(),
        &|| {
            product.file(
                "weather.wasm",
                with_section(&wanting(WANTS_MORE), "version", b"9"),
            );
            product.plugin_json(&["sign", "weather.wasm", "--key", "acme.key"]);
            fs::write(&signature, product.read("weather.wasm.minisig")).unwrap();
        },
    ];
    for breaks in breakages {
        breaks();
        product.refuses(&["list"], 0, &["zeph-host plugin sync"]);
        let outdated = product.plugin_json(&["outdated"]);
        assert_ne!(outdated[0]["signature_problem"], Value::Null, "{outdated}");
        let planned = product.plugin_json(&["sync", "--dry-run"]);
        assert_eq!(planned["plugins"][0]["action"], "renew", "{planned}");
        let synced = product.plugin_json(&["sync"]);
        assert_eq!(synced["plugins"][0]["done"], true, "{synced}");
        assert_eq!(
            product.plugin_json(&["info", "weather"])["status"],
            "active"
        );
        let synced = product.plugin_json(&["sync"]);
        assert_eq!(synced["plugins"][0]["action"], "keep", "{synced}");
        breaks();
        let updated = product.plugin_json(&["update", "weather", "--yes"]);
        assert_eq!(updated["updated"], true, "{updated}");
        let outdated = product.plugin_json(&["outdated"]);
        assert_eq!(outdated[0]["signature_problem"], Value::Null, "{outdated}");
    }
    let update = ["update", "weather", "--yes"];
    assert_eq!(product.plugin_json(&update)["changed"], false);
    // Another signer is another matter, and so is one that nobody can replace.
    let config = product.home.join(".config/zeph-host/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    let key = |name: &str| {
        product
            .read(&format!("{name}.pub"))
            .lines()
            .nth(1)
            .unwrap()
            .to_owned()
    };
    let renamed = text.replace("name = \"acme\"", "name = \"successor\"");
    let rotated = renamed.replace(&key("acme"), &key("other"));
    fs::write(&config, &rotated).unwrap();
    product.refuses(
        &["sync"],
        1,
        &["is signed by `successor`", "plugin update weather"],
    );
    product.refuses(&update, 5, &["--accept signer"]);
    product.plugin_json(&[&update[..], &["--accept", "signer"]].concat());
    assert_eq!(
        product.plugin_json(&["info", "weather"])["status"],
        "active"
    );
    fs::write(
        &config,
        rotated.replace("offers = [", "revoked = true\noffers = ["),
    )
    .unwrap();
    for words in [&["sync"][..], &update, &["outdated"]] {
        let code = if words == ["outdated"] { 0 } else { 1 };
        product.refuses(words, code, &["revoked key"]);
    }
}

/// What a killed update leaves is told as such, and not as a question of whose files a signer may offer.
#[test]
fn what_is_not_the_file_of_the_lock_is_brought_back_by_sync() {
    let Some(world) = World::start() else {
        return;
    };
    let product = &world.product;
    world.tagged((WANTS, "1.0.0"), "1.0.0");
    product.plugin_json(&["add", &world.at("1.0.0")]);
    let lock = product.lock_text();
    world.tagged((WANTS_MORE, "1.1.0"), "1.1.0");
    product.plugin_json(&["update", "weather", "--yes"]);
    // The files are those of the new version, the lock is that of the old one.
    fs::write(product.lock(), lock).unwrap();
    let info = product.plugin_json(&["info", "weather"]);
    let reason = info["reason"].as_str().unwrap();
    assert!(
        reason.contains("not the file that the lock pins"),
        "{reason}"
    );
    assert!(reason.contains("`zeph-host plugin sync`"), "{reason}");
    assert!(!reason.contains("a pattern in `offers`"), "{reason}");
    product.plugin_json(&["sync"]);
    assert_eq!(
        product.plugin_json(&["info", "weather"])["status"],
        "active"
    );
}
