//! A server of the store that goes away: calls fail with one error while it is, and go on when it is back.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::Place;
use crate::mcp_ends::{every_call_ends, waits_until};
use crate::mcp_http_client::{HttpServer, add_token};
use crate::postgres::{Server, programs};
use crate::toolchain::slow_tests;

/// A server of its own, in a folder that outlives the server.
fn own_server() -> Server {
    let folder = std::env::temp_dir().join(format!("zeph-away-{}", std::process::id()));
    let server = Server::start(&folder, std::process::id());
    fs::write(folder.join("keep"), "").unwrap();
    server
}

fn stop(server: &Server) {
    let file = fs::read_to_string(server.data().join("postmaster.pid")).unwrap();
    let pid = Pid::from_raw(file.lines().next().unwrap().trim().parse().unwrap()).unwrap();
    // As a power failure would.
    kill_process(pid, Signal::QUIT).unwrap();
    waits_until("the server is gone", || {
        !server.data().join("postmaster.pid").exists()
    });
}

fn lists(server: &HttpServer, token: &str) -> (u16, String) {
    let arguments = json!({"path": "."});
    let reply = super::request(
        server,
        token,
        (&Value::Null, &Value::Null),
        ("list_directory", &arguments),
    );
    (reply.status, reply.body)
}

fn away_for(time: Duration) {
    if programs().is_none() {
        return;
    }
    let server = own_server();
    let place = Place::new().with_store(server.schema());
    let replicas = [place.replica("one", &[]), place.replica("two", &[])];
    let token = add_token(&place.product, &["ann"]);
    for replica in &replicas {
        assert_eq!(lists(replica, &token).0, 200);
    }
    // A crash may undo the ends of the last calls as long as they are not on the disk.
    every_call_ends(&place.product);
    server.sql("", "CHECKPOINT");
    stop(&server);
    let gone = Instant::now();
    while gone.elapsed() < time {
        for replica in &replicas {
            let (status, body) = lists(replica, &token);
            assert_eq!(status, 503, "{body}");
            assert!(body.contains("cannot be read"), "{body}");
            let ready = replica.request("GET /readyz", "", "");
            assert_eq!(ready.status, 503);
            assert!(ready.body.contains("the store "), "{ready:?}");
            assert_eq!(replica.request("GET /healthz", "", "").status, 200);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    server.run(std::process::id());
    for replica in &replicas {
        // Each connection to the server finds out by itself that it is another one.
        waits_until("calls go on", || {
            (0..16).all(|_| lists(replica, &token).0 == 200)
        });
        let ready = || replica.request("GET /readyz", "", "").status == 200;
        waits_until("it is ready", ready);
    }
    every_call_ends(&place.product);
    fs::remove_file(server.folder.join("keep")).unwrap();
}

#[test]
fn a_store_that_goes_away_closes_the_replicas_and_opens_them_again() {
    away_for(Duration::from_secs(1));
}

#[test]
fn a_store_that_is_away_for_ten_seconds_loses_nothing() {
    if slow_tests("a store that is away for ten seconds") {
        away_for(Duration::from_secs(10));
    }
}
