//! Plugins of replicas: what one machine adds, every replica offers.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::Place;
use crate::guest::HOSTILE;
use crate::mcp_client::{MODERN, modern_meta};
use crate::mcp_ends::waits_until;
use crate::mcp_http_client::{HttpServer, Reply, message};

/// How often a list is asked for that nobody answers in time: with an empty cache, it waits for the compiler.
const TRIES: usize = 4;

fn offers(server: &HttpServer, tool: &str) -> bool {
    let headers = format!("mcp-protocol-version: {MODERN}\r\nmcp-method: tools/list\r\n");
    let body = message("tools/list", &json!({"_meta": modern_meta(&json!({}))}));
    let ask = |_| Reply::try_read(server.begin("POST /mcp", &headers, &body)).ok();
    let listed = (0..TRIES).find_map(ask).expect("an answer");
    assert_eq!(listed.status, 200, "{listed:?}");
    listed.body.contains(&format!("\"name\":\"{tool}\""))
}

fn add_and_remove(place: &Place) {
    let folder = place.product.home.join("volume/plugins");
    std::fs::create_dir_all(&folder).unwrap();
    let folder = ["--plugins", folder.to_str().unwrap()];
    // As on a volume of the network, no change is reported by the system.
    let unwatched = [&folder[..], &["--set", "plugins.watch=false"]].concat();
    let replicas = [
        place.replica("one", &unwatched),
        place.replica("two", &unwatched),
    ];
    place.product.file("hostile.wasm", HOSTILE);
    assert!(!replicas.iter().any(|replica| offers(replica, "echo")));
    let name = ["--set", "mcp.serve.replica=\"cli\""];
    let run = |args: &[&str]| {
        let ran = place.product.run(&[args, &name, &folder].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    };
    run(&["plugin", "add", "hostile.wasm"]);
    for replica in &replicas {
        waits_until("it is offered", || offers(replica, "echo"));
    }
    run(&["plugin", "disable", "hostile"]);
    for replica in &replicas {
        waits_until("it is offered no more", || !offers(replica, "echo"));
    }
    // What is missing is put in its place again, without a change of the lock.
    std::fs::remove_file(Path::new(folder[1]).join("hostile.wasm")).unwrap();
    run(&["plugin", "enable", "hostile"]);
    run(&["plugin", "sync"]);
    for replica in &replicas {
        waits_until("it is offered again", || offers(replica, "echo"));
    }
}

#[test]
fn a_plugin_that_one_machine_adds_is_offered_by_every_replica() {
    add_and_remove(&Place::new());
}

#[test]
fn a_plugin_is_announced_by_the_server_of_the_store() {
    if let Some(place) = Place::on_server() {
        add_and_remove(&place);
    }
}

/// The file of the plugin among compiled components.
fn compiled(folder: &Path, extension: &str) -> PathBuf {
    let digest = zeph_engine::digest(HOSTILE).hex();
    let files = std::fs::read_dir(folder).unwrap();
    let mut files = files.map(|entry| entry.unwrap().path());
    let is_its = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(&digest) && name.ends_with(extension)
    };
    files.find(is_its).unwrap()
}

#[test]
fn a_replica_takes_what_another_one_compiled() {
    let place = Place::new();
    let [shared, volume, one, two] = ["compiled", "plugins", "one", "two"].map(|name| {
        let folder = place.product.home.join("volume").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        folder
    });
    std::fs::write(volume.join("hostile.wasm"), HOSTILE).unwrap();
    let set = |key: &str, path: &Path| format!("engine.{key}={:?}", path.display().to_string());
    let keys = set("shared_cache_keys", &place.product.home.join("seal-keys"));
    let directory = set("shared_cache_dir", &shared);
    let made_by = |name: &str, own: &Path| {
        let cache = set("cache_dir", own);
        let volume = volume.to_str().unwrap();
        let args = [
            "--plugins",
            volume,
            "--set",
            &cache,
            "--set",
            &directory,
            "--set",
            &keys,
        ];
        let replica = place.replica(name, &args);
        if !offers(&replica, "echo") {
            waits_until("it is offered", || offers(&replica, "echo"));
        }
        compiled(own, ".cwasm");
        std::fs::metadata(compiled(&shared, ".sealed"))
            .unwrap()
            .ino()
    };
    let first = made_by("one", &one);
    assert_eq!(made_by("two", &two), first, "it was compiled again");
}
