//! Several servers over HTTP that share one store: what one of them began, every other goes on with, and nothing counts twice.

mod away;
mod balancer;
mod conversations;
mod ending;
mod load;
mod plugins;
mod suspended;
mod tasks;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::mcp_client::modern_meta;
use crate::mcp_http_client::{HttpServer, Reply, modern_call};
use crate::postgres::{Schema, Server};
use crate::product::Product;

/// The key of a handle in `_meta`.
pub(crate) const HANDLE: &str = "zeph.host/conversation";

/// A key as `openssl rand -hex 32` prints it.
const KEY: &str = "2f6a1c0e9b7d4835a1e2c3d4f5061728394a5b6c7d8e9f00112233445566778a";

/// A store, and the keys that its replicas seal with.
pub(crate) struct Place {
    pub(crate) product: Product,
    /// The schema of its store on a server, where it is on one.
    schema: Option<Schema>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let product = Product::new();
        let keys = product.home.join("seal-keys");
        fs::write(&keys, KEY).unwrap();
        fs::set_permissions(&keys, Permissions::from_mode(0o600)).unwrap();
        Self {
            product,
            schema: None,
        }
    }

    /// The same with its store on the server of this run; none, with a printed reason, where there is no server.
    pub(crate) fn on_server() -> Option<Self> {
        let schema = Server::of_run()?.schema();
        Some(Self::new().with_store(schema))
    }

    /// The same with its store in `schema`.
    pub(crate) fn with_store(self, schema: Schema) -> Self {
        let folder = self.product.home.join(".config/zeph-host");
        fs::create_dir_all(&folder).unwrap();
        let store = format!("[store]\nurl = \"{}\"\n", schema.url());
        fs::write(folder.join("config.toml"), store).unwrap();
        Self {
            schema: Some(schema),
            ..self
        }
    }

    /// The setting that has a server seal with the keys.
    fn keys(&self) -> String {
        let keys = self.product.home.join("seal-keys");
        format!("mcp.serve.seal_keys=\"{}\"", keys.display())
    }

    /// Starts the replica of this name.
    pub(crate) fn replica(&self, name: &str, args: &[&str]) -> HttpServer {
        self.replica_at(name, 0, args)
    }

    /// Starts it at a port.
    pub(crate) fn replica_at(&self, name: &str, port: u16, args: &[&str]) -> HttpServer {
        let replica = format!("mcp.serve.replica=\"{name}\"");
        let keys = self.keys();
        let mut all = vec!["--set", &replica, "--set", &keys];
        all.extend(args);
        let mut command = HttpServer::command(&self.product, port, &all);
        if self.schema.is_some() {
            // As on a machine of its own: its audit log and its keys are nobody else's.
            let home = self.product.home.join(name);
            command.env("XDG_DATA_HOME", home.join("data"));
            command.env("XDG_STATE_HOME", home.join("state"));
        }
        HttpServer::of(command)
    }
}

/// The arguments of replicas that have the same files.
pub(crate) const SHARED: [&str; 2] = ["--set", "mcp.serve.workspace=\"shared\""];

/// A request to call `tool` in the conversation of `handle`, with `more` among its parameters.
pub(crate) fn request(
    server: &HttpServer,
    token: &str,
    (handle, more): (&Value, &Value),
    (tool, arguments): (&str, &Value),
) -> Reply {
    let mut meta = modern_meta(&json!({"elicitation": {}}));
    if !handle.is_null() {
        meta[HANDLE] = handle.clone();
    }
    let mut params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    for (key, value) in more.as_object().into_iter().flatten() {
        params[key] = value.clone();
    }
    let (headers, _) = modern_call(tool, arguments, &json!({}));
    let body = crate::mcp_http_client::message("tools/call", &params);
    server.request("POST /mcp", &format!("{token}{headers}"), &body)
}

/// The result of such a call.
pub(crate) fn call(
    server: &HttpServer,
    token: &str,
    handle: &Value,
    tool: &str,
    arguments: &Value,
) -> Value {
    request(server, token, (handle, &Value::Null), (tool, arguments)).result()
}

/// The category of the error of a result.
pub(crate) fn category(result: &Value) -> &Value {
    &result["structuredContent"]["error"]["category"]
}
