//! The packages for npm: one with the program, which npm installs on machines it fits, and one that starts it.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::archive::{Item, gzip, tar};
use crate::release::{self, Contents, Release};

/// How npm calls the one platform.
const PLATFORM: &str = "linux-x64";

/// Writes `zeph-host-VERSION.tgz` and `zeph-host-linux-x64-VERSION.tgz`, as `npm pack` names them.
pub(crate) fn write(release: &Release, contents: &Contents, folder: &Path) -> Result<()> {
    let carrier = format!("zeph-host-{PLATFORM}");
    let mut manifest = manifest(release, &carrier);
    manifest["os"] = json!(["linux"]);
    manifest["cpu"] = json!(["x64"]);
    manifest["preferUnplugged"] = json!(true);
    let program = Item::program("package/bin/zeph-host", &contents.program);
    pack(release, contents, folder, &manifest, program)?;

    let mut manifest = self::manifest(release, "zeph-host");
    manifest["bin"] = json!({"zeph-host": "bin/zeph-host.js"});
    manifest["engines"] = json!({"node": ">=18"});
    manifest["optionalDependencies"] = json!({carrier: release.version});
    let launcher = include_bytes!("../assets/launcher.js");
    let launcher = Item::program("package/bin/zeph-host.js", launcher);
    pack(release, contents, folder, &manifest, launcher)
}

/// What both manifests say. `npm publish` adds the provenance where it is run by a service that can vouch for the build, and
/// compares the repository with it.
fn manifest(release: &Release, name: &str) -> Value {
    let mut manifest = json!({
        "name": name,
        "version": release.version,
        "description": "Runs the tools of LLM agents as sandboxed WebAssembly components",
        "license": "(MIT OR Apache-2.0)",
        "keywords": ["mcp", "agent", "sandbox", "wasm"],
        "publishConfig": {"access": "public", "provenance": true},
    });
    if let Some(repository) = &release.repository {
        manifest["repository"] = json!({"type": "git", "url": format!("git+{repository}.git")});
    }
    manifest
}

fn pack(
    release: &Release,
    contents: &Contents,
    folder: &Path,
    manifest: &Value,
    program: Item,
) -> Result<()> {
    let mut items = vec![
        Item::file("package/package.json", format!("{manifest:#}\n").as_bytes()),
        Item::file("package/README.md", include_bytes!("../assets/PACKAGE.md")),
        program,
    ];
    items.extend(contents.licence_files("package/"));
    let name = manifest["name"].as_str().unwrap_or_default();
    let packed = gzip(release, &tar(release, &items)?)?;
    release::write(folder, &format!("{name}-{}.tgz", release.version), &packed)
}
