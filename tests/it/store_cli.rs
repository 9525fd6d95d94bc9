//! `zeph-host store` and `doctor` with a store on a PostgreSQL server.

use serde_json::json;

use crate::postgres::Server;
use crate::product::Product;

/// A product whose configured store is in a schema of its own; none, with a printed reason, without PostgreSQL.
fn on_a_server() -> Option<(Product, String)> {
    let url = Server::of_run()?.schema().url();
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host");
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("[store]\nurl = \"{url}\"\n");
    std::fs::write(folder.join("config.toml"), text).unwrap();
    Some((product, url))
}

fn succeeded(product: &Product, args: &[&str]) -> crate::product::Ran {
    let ran = product.run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran
}

/// The tools of the calls in the audit, oldest first.
fn calls(product: &Product, store: &[&str]) -> Vec<String> {
    let query = ["audit", "query", "--json"];
    let args: Vec<&str> = store.iter().chain(&query).copied().collect();
    let records = succeeded(product, &args).json_lines();
    let tools = records
        .iter()
        .map(|record| record["tool"].as_str().unwrap());
    tools.map(str::to_owned).collect()
}

#[test]
fn a_store_moves_to_a_server_and_back_with_what_is_in_it() {
    let Some((product, url)) = on_a_server() else {
        return;
    };
    product.file("a.txt", "words\n");
    // In the data directory, so that the keys of the audit log are where a store on a server looks for them.
    let data = product.home.join(".local/share/zeph-host");
    let file = |name: &str| format!("{}/{name}.db", data.display());
    let [one, two] = ["one", "two"].map(|name| format!("store.path=\"{}\"", file(name)));
    let in_file = ["--set", "store.url=\"\"", "--set", &one];
    let call = ["call", "read", "path=a.txt"];
    let args: Vec<&str> = in_file.iter().chain(&call).copied().collect();
    succeeded(&product, &args);
    assert_eq!(calls(&product, &in_file), ["read"]);
    let migrated = succeeded(&product, &["store", "migrate"]);
    assert!(migrated.stderr.contains("is ready"), "{}", migrated.stderr);
    let [from, to] = ["one", "two"].map(|name| format!("sqlite:{}", file(name)));
    let args = ["store", "copy", &from, "configured", "--json"];
    let copied = succeeded(&product, &args).json();
    let rows = |table: &str| {
        let tables = copied["tables"].as_array().unwrap();
        let found = tables.iter().find(|known| known["table"] == json!(table));
        found.unwrap()["rows"].clone()
    };
    assert_eq!(rows("audit"), 1);
    assert_eq!(calls(&product, &[]), ["read"]);
    // What is called now is on the server, and comes back with the rest.
    succeeded(&product, &["call", "list_directory", "path=."]);
    succeeded(&product, &["store", "copy", &url, &to]);
    let in_other = ["--set", "store.url=\"\"", "--set", &two];
    assert_eq!(calls(&product, &in_other), ["read", "list_directory"]);
    // A store that holds something is never written over.
    let again = product.run(&["store", "copy", &from, "configured"]);
    assert_ne!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(calls(&product, &[]), ["read", "list_directory"]);
}

#[test]
fn doctor_looks_at_the_server_of_the_store() {
    let Some((product, _)) = on_a_server() else {
        return;
    };
    let store = |args: &[&str]| {
        let said = product.run(args).json();
        let mut checks = said["checks"].as_array().unwrap().iter();
        let found = checks.find(|check| check["group"] == "store" && check["name"] == "database");
        found.unwrap_or_else(|| panic!("{said}")).clone()
    };
    let sound = store(&["doctor", "--json"]);
    assert_eq!(sound["state"], "ok", "{sound}");
    let port = crate::postgres::free_port();
    let nobody = format!("store.url=\"postgres://zeph:s3cr3t@127.0.0.1:{port}/zeph\"");
    let away = store(&["--set", &nobody, "doctor", "--json"]);
    assert_ne!(away["state"], "ok", "{away}");
    assert!(!away.to_string().contains("s3cr3t"), "{away}");
}
