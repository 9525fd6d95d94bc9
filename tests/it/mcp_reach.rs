//! What a server reaches: through the names by which it was allowed, and with an account of its own.

use std::fs;

use serde_json::{Value, json};

use crate::mcp_client::{McpClient, result, text};
use crate::mcp_http_client::{HttpServer, add_token};
use crate::mcp_wrap::{audit, product, store_secret, wrapped};
use crate::product::Product;

#[test]
fn a_name_that_leads_through_a_link_is_allowed_as_it_is_written() {
    let product = product();
    let real = product.home.join("real");
    fs::create_dir_all(&real).unwrap();
    fs::write(real.join("page.txt"), "a page\n").unwrap();
    let folder = product.home.join("folder");
    std::os::unix::fs::symlink(&real, &folder).unwrap();
    let file = product.home.join("page");
    std::os::unix::fs::symlink(real.join("page.txt"), &file).unwrap();
    for (link, read) in [(&folder, folder.join("page.txt")), (&file, file.clone())] {
        let options = ["--allow-read", link.to_str().unwrap()];
        let mut client = wrapped(&product, &options, &json!({}));
        let done = client.call("read", json!({"path": read}));
        assert_eq!(text(&done), "a page\n", "{link:?}: {done}");
        client.close();
        client.ended();
    }
}

#[test]
fn each_remote_server_has_an_account_of_its_own() {
    let far = product();
    let header = add_token(&far, &["two"]);
    let login = header.trim_end().strip_prefix("authorization: ").unwrap();
    let servers = [HttpServer::start(&far, &[]), HttpServer::start(&far, &[])];
    let product = Product::new();
    assert_eq!(store_secret(&product, "far", login).code, Some(0));
    let tables = ["one", "two"].iter().zip(&servers).map(|(name, server)| {
        format!(
            "[mcp.servers.{name}]\nurl = \"http://{}/mcp\"\nheaders = {{ authorization = {{ secret = \"far\" }} }}\n",
            server.address
        )
    });
    product.user_config(tables.collect::<String>());
    let options = [
        "serve",
        "--allow",
        "mcp_one_read",
        "--allow",
        "mcp_two_read",
    ];
    let mut client = McpClient::shaken(&product, &options, &json!({}));
    client.tools();
    let calls = ["mcp_one_read", "mcp_two_read"]
        .map(|tool| client.begin_call(tool, json!({"path": "notes.txt"})));
    for call in calls {
        let done = result(client.answer(call));
        assert!(text(&done).contains("one"), "{done}");
    }
    client.close();
    client.ended();
    let rows = audit(&product);
    for (name, server) in ["one", "two"].iter().zip(&servers) {
        let tool = format!("mcp_{name}_read");
        let row = rows.iter().find(|row| row["tool"] == tool.as_str());
        let hosts = row.unwrap()["hosts"].as_array().unwrap().clone();
        let hosts: Vec<&Value> = hosts.iter().map(|host| &host["host"]).collect();
        assert_eq!(hosts, [&json!(server.address.to_string())], "{rows:#?}");
    }
}
