//! Signatures that Sigstore's own library made and put beside an artifact of a registry. The library is downloaded: `ZEPH_SLOW_TESTS=1`.

use std::fs;

use super::registry::docker_registry::DockerRegistry;
use super::{WANTS, wanting, with_section};
use crate::peers::{Peers, Wanted};
use crate::product::Product;

const LIBRARY: Wanted = Wanted {
    folder: "sigstore",
    what: "the bundles of Sigstore's own library",
    packages: &[
        ("@sigstore/sign", "5.1.0"),
        ("@sigstore/bundle", "5.0.1"),
        ("@sigstore/oci", "0.7.2"),
    ],
    python: "",
};

/// What `cosign sign` states, and what says how something was built.
const SIGNS: &str = "https://sigstore.dev/cosign/sign/v1";
const BUILT: &str = "https://slsa.dev/provenance/v1";

/// Signs `repository` at `tag` with a new key, which is returned.
fn signed(peers: &Peers, product: &Product, [repository, tag, statement]: [&str; 3]) -> String {
    product.file("sign.js", include_str!("sigstore.js"));
    let script = product.work.join("sign.js");
    let mut node = peers.node(script.to_str().unwrap());
    node.args([repository, tag, statement]);
    node.env("NODE_PATH", peers.folder.join("node_modules"));
    let ran = node.output().unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{told}");
    String::from_utf8(ran.stdout).unwrap()
}

/// Allows the registry, and trusts what `key` signed, if one is given.
fn configure(product: &Product, port: u16, key: Option<&str>) {
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    let mut text = format!(
        "[[plugins.registries]]\nhost = \"127.0.0.1:{port}\"\nplain_http = true\nprivate = true\n"
    );
    if let Some(key) = key {
        text.push_str(&format!(
            "[plugins.trust]\nunsigned = \"refuse\"\n[[plugins.trust.signers]]\nname = \"acme\"\n\
             offers = [\"127.0.0.1:*/org/*\"]\nkey = \"\"\"\n{key}\"\"\"\n"
        ));
    }
    fs::write(folder.join("config.toml"), text).unwrap();
}

#[test]
fn a_bundle_of_its_own_library_counts_for_its_key_alone() {
    let Some(peers) = Peers::install(&LIBRARY) else {
        return;
    };
    let Some(registry) = DockerRegistry::start(false) else {
        return;
    };
    let port = registry.port;
    let product = Product::new();
    let repository = format!("127.0.0.1:{port}/org/weather");
    let tagged = format!("{repository}:1.2.0");
    product.file("w.wasm", with_section(&wanting(WANTS), "version", b"1.2.0"));
    configure(&product, port, None);
    product.plugin_json(&["publish", "w.wasm", &tagged]);
    // A statement that is no signature, then one that is: the key of the first counts for neither.
    let other = signed(&peers, &product, [&repository, "1.2.0", BUILT]);
    configure(&product, port, Some(&other));
    product.refuses(&["add", &tagged, "--yes"], 1, &["is no signature"]);
    let key = signed(&peers, &product, [&repository, "1.2.0", SIGNS]);
    product.refuses(&["add", &tagged, "--yes"], 1, &["no known"]);
    configure(&product, port, Some(&key));
    let verified = product.plugin_json(&["verify", &tagged]);
    assert_eq!(verified["signer"], "acme", "{verified}");
    let added = product.plugin_json(&["add", &tagged]);
    assert_eq!(added["status"], "active", "{added}");
    // It is checked again with what was kept of it, without the registry.
    drop(registry);
    let info = product.plugin_json(&["info", "weather"]);
    assert_eq!(info["signature"]["signer"], "acme", "{info}");
    configure(&product, port, Some(&other));
    let info = product.plugin_json(&["info", "weather"]);
    assert_eq!(info["status"], "quarantined", "{info}");
}
