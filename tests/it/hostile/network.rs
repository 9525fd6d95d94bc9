//! Nothing leaves the machine, seen from where it would arrive.

use std::io::ErrorKind;
use std::net::TcpListener;

use zeph_core::id::PluginId;
use zeph_engine::Plugin;
use zeph_selftest::guests::guest;

use super::harness::{Call, PATIENT, Pool, engine, load};

/// A port of five digits, as the guests have room for, and who listens there.
fn listener() -> (TcpListener, String) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        if port.len() == 5 {
            return (listener, port);
        }
    }
}

#[track_caller]
fn nobody_called(listener: &TcpListener) {
    let error = listener.accept().expect_err("somebody connected");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_refused_and_nobody_is_called() {
    let (listener, port) = listener();
    let engine = engine(Pool::Prepared);
    let guest = load(&engine, "network", PATIENT).await.unwrap();
    let answer = Call::new(&guest, &format!("b{port}"), PATIENT).run().await;
    // The error code of `wasi:http`: request denied.
    assert_eq!(answer.unwrap().to_text(), "15");
    nobody_called(&listener);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_lies_elsewhere_is_not_fetched() {
    let (listener, port) = listener();
    let engine = engine(Pool::None);
    let mut component = guest("schema_remote").unwrap().to_vec();
    let place = b"127.0.0.1:65535";
    let at = component
        .windows(place.len())
        .position(|window| window == place)
        .unwrap();
    component[at + 10..at + 15].copy_from_slice(port.as_bytes());
    let id = PluginId("remote".to_owned());
    let error = Plugin::load(&engine, id, component, PATIENT)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("only places in itself"),
        "{error}"
    );
    nobody_called(&listener);
}
