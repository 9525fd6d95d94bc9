//! The bill of materials: what is in the program, in CycloneDX 1.6 (<https://cyclonedx.org/docs/1.6/json/>).

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::licences::compiler_version;
use crate::parts::Part;
use crate::release::{self, Release};

/// The version of musl that comes with the compiler's target.
const MUSL: &str = "1.2.5";

/// Writes `zeph-host-VERSION-sbom.cdx.json`.
pub(crate) fn write(release: &Release, parts: &[Part], folder: &Path) -> Result<()> {
    let bill = bill(release, parts, &compiler_version()?);
    release::write(folder, &release.file("sbom.cdx.json"), bill.as_bytes())
}

/// The text of the bill.
pub(crate) fn bill(release: &Release, parts: &[Part], compiler: &str) -> String {
    let mut components: Vec<Value> = parts
        .iter()
        .filter(|part| part.name != "zeph-host")
        .map(component)
        .collect();
    components.push(library("rust-std", compiler, "MIT OR Apache-2.0"));
    components.push(library("musl", MUSL, "MIT"));
    let root = reference("zeph-host", &release.version);
    let mut bill = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": release.time.to_string(),
            "tools": {"components": [{"type": "application", "name": "zeph-dist", "version": release.version}]},
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": "zeph-host",
                "version": release.version,
                "purl": root,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            },
        },
        "components": components,
        "dependencies": parts.iter().map(dependencies).collect::<Vec<_>>(),
    });
    let serial = serial(&bill.to_string());
    bill["serialNumber"] = json!(serial);
    format!("{bill:#}\n")
}

fn component(part: &Part) -> Value {
    let mut component = library(&part.name, &part.version, &part.licence);
    let reference = reference(&part.name, &part.version);
    component["bom-ref"] = json!(reference);
    component["purl"] = json!(reference);
    if let Some(checksum) = &part.checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

fn library(name: &str, version: &str, licence: &str) -> Value {
    let mut library = json!({
        "type": "library",
        "bom-ref": format!("{name}@{version}"),
        "name": name,
        "version": version,
    });
    if !licence.is_empty() {
        library["licenses"] = json!([{"expression": licence}]);
    }
    library
}

fn dependencies(part: &Part) -> Value {
    let uses = part.uses.iter();
    json!({
        "ref": reference(&part.name, &part.version),
        "dependsOn": uses.map(|(name, version)| reference(name, version)).collect::<Vec<_>>(),
    })
}

/// The address of a crate: <https://github.com/package-url/purl-spec>.
fn reference(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

/// A number that belongs to this text alone, as a UUID of version 8 (RFC 9562).
fn serial(text: &str) -> String {
    let digest = Sha256::digest(text);
    let mut number: [u8; 16] = std::array::from_fn(|at| digest[at]);
    number[6] = number[6] & 0x0f | 0x80;
    number[8] = number[8] & 0x3f | 0x80;
    let hex: String = number.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    format!("urn:uuid:{}", parts.join("-"))
}
