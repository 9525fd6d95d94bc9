//! A replica that is suspended for longer than its leases, as a virtual machine is, and goes on then as if nothing had happened: others took over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::tasks::{ask, begun, configure, ended, slow_site};
use super::{Place, SHARED};
use crate::mcp_client::PATIENCE;
use crate::mcp_ends::Sleep;

/// It takes the ten seconds after which a call becomes a task, and the twenty for which a silent replica holds its own.
#[test]
fn what_others_took_over_is_theirs() {
    let place = Place::on_server().unwrap_or_else(Place::new);
    let may_answer = Arc::new(AtomicBool::new(false));
    let site = slow_site(&may_answer);
    configure(&place, &site);
    let args = [&SHARED[..], &["--allow", "bash", "--allow", "fetch"]].concat();
    let (one, two) = (place.replica("one", &args), place.replica("two", &args));
    let command = Sleep::new();
    let fetch = json!({"url": site.url("/"), "whole": true});
    let calls = [("fetch", fetch), ("bash", command.command())];
    let [fetched, unknown] = begun(&one, calls);
    one.signal(Signal::STOP);
    let patience = PATIENCE + Duration::from_secs(60);
    let (done, lost) = (
        ended(&two, &fetched, patience),
        ended(&two, &unknown, patience),
    );
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(lost["status"], "failed", "{lost}");
    assert!(command.is_there(), "its replica could not end it");
    // What it was doing has an end now that is not of it: it stops, and says what the other said.
    one.signal(Signal::CONT);
    command.ends();
    may_answer.store(true, Ordering::Relaxed);
    for server in [&one, &two] {
        assert_eq!(ask(server, "tasks/get", &fetched), done);
        assert_eq!(ask(server, "tasks/get", &unknown), lost);
    }
    // Each of its calls has one begin and one end, and the other made one of them again.
    let recorded = |args: &[&str]| {
        let ran = place.product.run(&[&["audit", "query"], args].concat());
        ran.json_lines().len()
    };
    assert_eq!(recorded(&["--tool", "fetch", "--json"]), 2);
    assert_eq!(recorded(&["--tool", "bash", "--json"]), 1);
    crate::mcp_ends::waits_until("all calls have an end", || {
        recorded(&["--unfinished", "--json"]) == 0
    });
}
