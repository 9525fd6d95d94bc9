//! `zeph-host store` and `doctor` with a store on a PostgreSQL server, and commands on a file that is damaged or none of ours.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

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
fn a_store_that_another_user_copied_stays_its_owners() {
    let Some((admin, url)) = on_a_server() else {
        return;
    };
    let service = Product::new();
    let on_server = format!("store.url=\"{url}\"");
    for product in [&service, &admin] {
        product.file("a.txt", "words\n");
    }
    succeeded(&service, &["call", "read", "path=a.txt"]);
    let data = service.home.join(".local/share/zeph-host");
    let from = format!("sqlite:{}", data.join("zeph.db").display());
    let copied = succeeded(&admin, &["store", "copy", &from, "configured"]);
    let told = format!("data directory `{}`", data.display());
    assert!(copied.stderr.contains(&told), "{}", copied.stderr);
    // The user who copied is not shut out, and the service goes on with its own log.
    succeeded(&admin, &["call", "read", "path=a.txt"]);
    succeeded(
        &service,
        &["--set", &on_server, "call", "read", "path=a.txt"],
    );
    let verify = ["--set", &on_server, "audit", "verify", "--json"];
    let said = service.run(&verify);
    let of_service = std::fs::read_to_string(data.join("host-id")).unwrap();
    let report = said.json().to_string();
    assert!(report.contains(&of_service), "{report}");
    assert_eq!(calls(&admin, &[]).len(), 3);
}

#[test]
fn doctor_looks_at_the_server_of_the_store() {
    let Some((product, url)) = on_a_server() else {
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
    // As on a standby: it answers, and no host can start.
    let url = url.replace("&", "%20-cdefault_transaction_read_only%3Don&");
    let only_reads = format!("store.url=\"{url}\"");
    let standby = store(&["--set", &only_reads, "doctor", "--json"]);
    assert_eq!(standby["state"], "missing", "{standby}");
    let reason = standby["detail"].as_str().unwrap();
    assert!(reason.contains("only reads"), "{standby}");
    let port = crate::postgres::free_port();
    let nobody = format!("store.url=\"postgres://zeph:s3cr3t@127.0.0.1:{port}/zeph\"");
    let away = store(&["--set", &nobody, "doctor", "--json"]);
    assert_ne!(away["state"], "ok", "{away}");
    assert!(!away.to_string().contains("s3cr3t"), "{away}");
}

/// The names of what lies in a folder.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn a_file_that_is_no_store_is_left_to_its_owner() {
    let product = Product::new();
    let path = product.home.join("thesis.txt");
    let text = "A text of somebody.\n".repeat(1_000);
    fs::write(&path, &text).unwrap();
    let here = format!("store.path=\"{}\"", path.display());
    let commands: [&[&str]; 7] = [
        &["doctor"],
        &["stats"],
        &["store", "migrate"],
        &["audit", "verify"],
        &["grants"],
        &["explain", "read", "path=a.txt"],
        &["call", "list_directory", "path=."],
    ];
    for command in commands {
        let args: Vec<&str> = ["--set", &here].iter().chain(command).copied().collect();
        let ran = product.run(&args);
        assert_ne!(ran.code, Some(0), "{command:?}: {}", ran.stdout);
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{command:?}");
    }
    let names = names(&product.home);
    let is_aside = |name: &String| name.contains("corrupt");
    assert!(!names.iter().any(is_aside), "{names:?}");
}

#[test]
fn a_damaged_store_is_set_aside_by_who_makes_calls_alone() {
    let product = Product::new();
    product.file("a.txt", "words\n");
    succeeded(&product, &["call", "read", "path=a.txt"]);
    let folder = product.home.join(".local/share/zeph-host");
    let path = folder.join("zeph.db");
    // The log of the last commits would heal it.
    let damaged = ["zeph.db-wal", "zeph.db"].map(|name| {
        let mut bytes = fs::read(folder.join(name)).unwrap_or_default();
        let n_header = bytes.len().min(100);
        bytes[..n_header].fill(0);
        fs::write(folder.join(name), &bytes).unwrap();
        bytes
    });
    let [_, bytes] = damaged;
    let copy = format!("sqlite:{}", path.display());
    let target = folder.join("new.db");
    let to = format!("sqlite:{}", target.display());
    let commands: [(&[&str], i32); 5] = [
        (&["stats"], 3),
        (&["index", "--status"], 3),
        (&["audit", "verify"], 1),
        (&["store", "migrate"], 3),
        (&["store", "copy", &copy, &to], 1),
    ];
    for (command, code) in commands {
        let ran = product.run(command);
        assert_eq!(ran.code, Some(code), "{command:?}: {}", ran.stderr);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("is damaged"), "{command:?}: {said}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "{command:?}");
        assert!(!target.exists(), "{command:?}");
    }
    let called = succeeded(&product, &["call", "read", "path=a.txt"]);
    let told = called.stderr.matches("was set aside").count();
    assert_eq!(told, 1, "{}", called.stderr);
    let names = names(&folder);
    let is_aside = |name: &&String| name.starts_with("zeph.db.corrupt-");
    assert!(names.iter().any(|name| is_aside(&name)), "{names:?}");
}
