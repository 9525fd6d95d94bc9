//! Plugins of replicas: what one machine adds, every replica offers.

use serde_json::json;

use super::Place;
use crate::guest::HOSTILE;
use crate::mcp_client::{MODERN, modern_meta};
use crate::mcp_ends::waits_until;
use crate::mcp_http_client::{HttpServer, message};

fn offers(server: &HttpServer, tool: &str) -> bool {
    let headers = format!("mcp-protocol-version: {MODERN}\r\nmcp-method: tools/list\r\n");
    let body = message("tools/list", &json!({"_meta": modern_meta(&json!({}))}));
    let listed = server.request("POST /mcp", &headers, &body);
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
