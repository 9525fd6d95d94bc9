//! A host whose one plugin gives back what it is given, shared by the benches of the line.

use std::path::Path;

use serde_json::{Value, json};
use zeph_host::{Caller, Component, Host, HostExecutor};

pub(super) static HOSTILE: &[u8] = include_bytes!(env!("GUEST_HOSTILE"));

/// A host with its store and audit file in `dir`.
pub(super) async fn start(dir: &Path) -> Host {
    let host = Host::builder()
        .directory(dir)
        .state_in(dir.join("state"))
        .set("engine.cache_dir", dir.join("cache").display())
        .without_components()
        .component(Component {
            name: "hostile",
            bytes: || HOSTILE.to_vec(),
            digest: None,
            manifest: "",
        })
        .build()
        .await
        .expect("the host starts");
    host.settled().await;
    host
}

/// A session of a program.
pub(super) async fn session(host: &Host) -> HostExecutor {
    let session = host.session(Caller::program()).await;
    session.expect("a session")
}

/// What the trivial call is made with.
pub(super) fn arguments() -> Value {
    json!({"text": "0123456789".repeat(10)})
}

/// One trivial call on the line alone, which succeeds.
pub(super) async fn call(tools: &HostExecutor) {
    let report = tools.bare_call("echo", arguments()).await;
    assert_eq!(report.failure(), None, "{}", report.output.text);
}
