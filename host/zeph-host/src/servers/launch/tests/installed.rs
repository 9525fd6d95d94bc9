//! Servers of npm and PyPI, installed and started in the sandbox. They come from the registries, so these tests run when
//! `ZEPH_SLOW_TESTS=1`.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::*;

/// How long an installation and a start may take here.
const LONG: Duration = Duration::from_mins(10);

/// Registries may have addresses of a mirror in a private network.
const REGISTRIES: &str = r#"
[[tools.egress.private]]
host = "registry.npmjs.org"
ports = [443]
plain_http = false
[[tools.egress.private]]
host = "pypi.org"
ports = [443]
plain_http = false
[[tools.egress.private]]
host = "files.pythonhosted.org"
ports = [443]
plain_http = false
"#;

#[expect(
    clippy::disallowed_methods,
    reason = "asks the person who runs the tests"
)]
fn is_slow() -> bool {
    std::env::var("ZEPH_SLOW_TESTS").is_ok_and(|value| value == "1")
}

/// The first request to a server, as a line.
fn request() -> String {
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        },
    });
    format!("{request}\n")
}

/// The first answer of a server, and what it was installed as.
async fn initialized(lab: &Lab, config: &Config, name: &str) -> (Value, LaunchPin) {
    let name = ServerName::new(name).unwrap();
    let ServerTransport::Command(server) = &config.mcp_servers[&name].transport else {
        panic!("it is a program");
    };
    let launcher = lab.launcher(config);
    let prepared = tokio::time::timeout(LONG, launcher.prepare(&name, server, None)).await;
    let prepared = prepared.unwrap().unwrap_or_else(|error| panic!("{error}"));
    let mut launched = launcher.start(&prepared).await.unwrap();
    let pipes = launched.pipes.take().unwrap();
    let ServicePipes { mut stdin, stdout } = pipes;
    stdin.write_all(request().as_bytes()).await.unwrap();
    let mut lines = BufReader::new(stdout).lines();
    let line = tokio::time::timeout(LONG, lines.next_line()).await.unwrap();
    let Some(line) = line.unwrap() else {
        let end = launched.service.ended().await;
        panic!("{end:?}: {:?}", launched.complaints());
    };
    (serde_json::from_str(&line).unwrap(), prepared.pin().clone())
}

/// Installs, starts and asks a server twice: the second time nothing is installed.
async fn check(tool: &str, arguments: &str, package: &str) {
    if !is_slow() {
        return;
    }
    let lab = Lab::new();
    let text = format!(
        "{REGISTRIES}\n[mcp.servers.tried]\ncommand = \"{tool}\"\nargs = [{arguments}]\nallow_read = [\"$LAB/work\"]\n"
    );
    let config = lab.config(&text);
    let (answer, pin) = initialized(&lab, &config, "tried").await;
    assert!(
        answer["result"]["serverInfo"]["name"].is_string(),
        "{answer}"
    );
    let installed = pin.installed.clone().unwrap();
    assert_eq!(installed.package, package);
    assert!(!installed.version.is_empty() && installed.integrity.starts_with("sha256:"));
    // Without a way to any registry.
    let closed = text.replace("ports = [443]", "ports = [1]");
    let (again, same) = initialized(&lab, &lab.config(&closed), "tried").await;
    assert_eq!(
        again["result"]["serverInfo"],
        answer["result"]["serverInfo"]
    );
    assert_eq!(same, pin);
}

#[tokio::test]
async fn server_filesystem_of_npm() {
    let package = "@modelcontextprotocol/server-filesystem";
    check("npx", &format!("\"-y\", \"{package}\", \".\""), package).await;
}

#[tokio::test]
async fn server_memory_of_npm() {
    let package = "@modelcontextprotocol/server-memory";
    check("npx", &format!("\"-y\", \"{package}\""), package).await;
}

#[tokio::test]
async fn server_everything_of_npm() {
    let package = "@modelcontextprotocol/server-everything";
    check(
        "npx",
        &format!("\"-p\", \"{package}\", \"mcp-server-everything\""),
        package,
    )
    .await;
}

#[tokio::test]
async fn mcp_server_git_of_pypi() {
    check("pipx", "\"run\", \"mcp-server-git\"", "mcp-server-git").await;
}

#[tokio::test]
async fn mcp_server_fetch_of_pypi() {
    check(
        "pipx",
        "\"run\", \"--spec\", \"mcp-server-fetch\", \"mcp-server-fetch\"",
        "mcp-server-fetch",
    )
    .await;
}

/// A uv that lies apart: made by pip, beside the home.
#[tokio::test]
async fn mcp_server_git_by_a_uv_that_lies_apart() {
    if !is_slow() {
        return;
    }
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let venv = place.path().canonicalize().unwrap().join("uv");
    for arguments in [
        vec!["python3", "-m", "venv", venv.to_str().unwrap()],
        vec![
            venv.join("bin/pip").to_str().unwrap(),
            "install",
            "--quiet",
            "uv",
        ],
    ] {
        #[expect(clippy::disallowed_methods, reason = "gets what the test needs")]
        let done = std::process::Command::new(arguments[0])
            .args(&arguments[1..])
            .status();
        assert!(done.unwrap().success());
    }
    let uvx = venv.join("bin/uvx");
    check(
        uvx.to_str().unwrap(),
        "\"mcp-server-git\"",
        "mcp-server-git",
    )
    .await;
}

/// Other bytes than those that are pinned are another pin, and a version that is pinned is installed again.
#[tokio::test]
async fn the_pinned_version_is_installed_again() {
    if !is_slow() {
        return;
    }
    let lab = Lab::new();
    let text = format!(
        "{REGISTRIES}\n[mcp.servers.tried]\ncommand = \"npx\"\nargs = [\"-y\", \"left-pad\"]\n"
    );
    let config = lab.config(&text);
    let name = ServerName::new("tried").unwrap();
    let ServerTransport::Command(server) = &config.mcp_servers[&name].transport else {
        panic!("it is a program");
    };
    let launcher = lab.launcher(&config);
    let none = launcher.prepare(&name, server, None).await.unwrap_err();
    assert!(none.to_string().contains("has no program to run"), "{none}");
    let left = fs::read_dir(lab.root.join("home/cache/zeph-host/servers")).unwrap();
    let left = left.flatten().filter(|entry| entry.path().is_dir());
    assert_eq!(left.count(), 0, "nothing is left of what failed");
}
