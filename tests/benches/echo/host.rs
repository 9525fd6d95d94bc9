//! A host whose one plugin gives back what it is given, shared by the benches of the line.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

use serde_json::json;
use zeph_config::{Config, Flags, Surroundings};
use zeph_core::call::ToolRequest;
use zeph_core::output::Outcome;
use zeph_core::principal::Principal;
use zeph_host::{CallControl, Host, Session, StartOptions};
use zeph_plugins::component::Component;

pub(super) static HOSTILE: &[u8] = include_bytes!(env!("GUEST_HOSTILE"));

/// A host with its store and audit file in `dir`.
pub(super) async fn start(dir: &Path) -> Host {
    let surroundings = Surroundings {
        env: BTreeMap::new(),
        working_directory: dir.canonicalize().expect("the directory exists"),
        typed_directory: None,
        home: None,
        config_home: Some(dir.join("config")),
        data_home: Some(dir.join("data")),
        state_home: Some(dir.join("state")),
        cache_home: Some(dir.join("cache")),
        cores: NonZeroUsize::MIN,
    };
    let config = Config::load(&surroundings, &Flags::default())
        .expect("the defaults are valid")
        .config;
    let options = StartOptions {
        is_server: true,
        components: vec![Component {
            name: "hostile",
            bytes: || HOSTILE,
            digest: None,
            manifest: "",
        }],
        ..StartOptions::default()
    };
    let (host, _notices) = Host::start(config, options).await.expect("the host starts");
    host.settled().await;
    host
}

/// A session of a program.
pub(super) async fn session(host: &Host) -> Session {
    let session = host.open_session(None, Principal::PROGRAM).await;
    session.expect("a session")
}

/// One trivial call, which succeeds.
pub(super) async fn call(host: &Host, session: &Session) {
    let request = ToolRequest {
        answers: None,
        tool: "echo".to_owned(),
        arguments: json!({"text": "0123456789".repeat(10)}),
    };
    let report = host.call(session, request, CallControl::default()).await;
    assert_eq!(
        report.output.outcome,
        Outcome::Done,
        "{}",
        report.output.text
    );
}
