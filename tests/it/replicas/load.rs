//! Two replicas behind the balancer, with many callers, while one after the other is killed and started again.
//!
//! Every call has a mark in its arguments, by which its records are found: what was answered is recorded, nothing ran twice, and no
//! approval, rate or quota was exceeded.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::balancer::Balancer;
use super::{Place, SHARED};
use crate::mcp_client::modern_meta;
use crate::mcp_http_client::{HttpServer, Reply, add_token, message, modern_call};
use crate::toolchain::slow_tests;

/// Callers at one time.
const N_CALLERS: usize = 64;

/// Callers that share a token.
const N_OF_TOKEN: usize = 8;

/// Calls a minute of the one token that has a rate.
const RATE: usize = 60;

/// More records than any test makes.
const RECORDS_MAX: &str = "1000000";

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The call succeeded.
    Done,
    /// The call was answered otherwise: nothing ran.
    Refused,
    /// The answer is an error of the balancer or of a replica that ends, or there is none: anything may have happened.
    Lost,
}

/// A request, by the mark of its call.
type Ended = (String, End);

/// What the callers share.
struct Load<'a> {
    balancer: &'a Balancer,
    tokens: &'a [String],
    rated: &'a str,
    until: Instant,
}

impl Load<'_> {
    fn send(
        &self,
        token: &str,
        (tool, arguments): (&str, &Value),
        more: &Value,
    ) -> Result<Reply, String> {
        let meta = modern_meta(&json!({"elicitation": {}}));
        let mut params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        let (headers, _) = modern_call(tool, arguments, &json!({}));
        let body = message("tools/call", &params);
        self.balancer
            .send("POST /mcp", &format!("{token}{headers}"), &body)
    }

    fn end(&self, token: &str, call: (&str, &Value), more: &Value) -> End {
        match self.send(token, call, more) {
            Ok(reply) if reply.body.contains("\"isError\":false") => End::Done,
            Ok(reply) if reply.status == 200 => End::Refused,
            Ok(_) | Err(_) => End::Lost,
        }
    }

    /// A call that only reads.
    fn search(&self, token: &str, mark: String) -> Vec<Ended> {
        let arguments = json!({"pattern": mark, "path": "."});
        let end = self.end(token, ("grep", &arguments), &Value::Null);
        vec![(mark, end)]
    }

    /// A call that asks, and two answers that come in at once.
    fn approval(&self, token: &str, mark: String) -> Vec<Ended> {
        let arguments = json!({"path": format!("made-{mark}"), "content": "x"});
        let call = ("write", &arguments);
        let asked = self.send(token, call, &Value::Null);
        let asked = asked
            .ok()
            .filter(|reply| reply.body.contains("requestState"));
        let Some(asked) = asked else {
            return vec![(mark, End::Lost)];
        };
        let more = json!({
            "requestState": asked.result()["requestState"],
            "inputResponses": {"approval": {"action": "accept", "content": {"scope": "once"}}},
        });
        std::thread::scope(|scope| {
            let answer = || scope.spawn(|| self.end(token, call, &more));
            let both = [answer(), answer()];
            both.map(|end| (mark.clone(), end.join().unwrap())).into()
        })
    }

    fn caller(&self, number: usize) -> Vec<Ended> {
        let token = &self.tokens[number / N_OF_TOKEN];
        let mut ended = Vec::new();
        for n in 0.. {
            if Instant::now() >= self.until {
                break;
            }
            let mark = format!("c{number}n{n}x");
            ended.extend(match n % 4 {
                0 => self.approval(token, mark),
                1 if number.is_multiple_of(N_OF_TOKEN) => {
                    self.search(self.rated, format!("r{mark}"))
                }
                _ => self.search(token, mark),
            });
        }
        ended
    }

    /// All callers, until the time is over.
    fn all(&self) -> Vec<Ended> {
        std::thread::scope(|scope| {
            let callers = (0..N_CALLERS).map(|number| scope.spawn(move || self.caller(number)));
            let callers: Vec<_> = callers.collect();
            let ended = callers.into_iter().map(|caller| caller.join().unwrap());
            ended.flatten().collect()
        })
    }
}

/// How often each mark was recorded, and how often with success.
fn recorded(place: &Place, args: &[&str]) -> BTreeMap<String, (usize, usize)> {
    let all = [&["audit", "query", "--json", "--limit", RECORDS_MAX], args].concat();
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for record in place.product.run(&all).json_lines() {
        let command = record["command"].as_str().unwrap_or_default();
        let marks = command.split(|letter: char| !letter.is_ascii_alphanumeric());
        let is_mark = |word: &&str| {
            let word = word.strip_prefix('r').unwrap_or(word);
            word.starts_with('c') && word.ends_with('x') && word.contains('n')
        };
        let Some(mark) = marks.into_iter().find(is_mark) else {
            continue;
        };
        let count = counts.entry(mark.to_owned()).or_default();
        count.0 += 1;
        count.1 += usize::from(record["result"]["type"] == "success");
    }
    counts
}

/// Compares what callers were told with what is recorded; the number of calls that succeeded.
fn check(ended: &[Ended], recorded: &BTreeMap<String, (usize, usize)>, took: Duration) -> usize {
    let mut told: BTreeMap<&str, Vec<End>> = BTreeMap::new();
    for (mark, end) in ended {
        told.entry(mark).or_default().push(*end);
    }
    let (mut n_done, mut n_rated) = (0, 0);
    for (mark, ends) in &told {
        let n_told = ends.iter().filter(|end| **end == End::Done).count();
        let (n_rows, n_succeeded) = recorded.get(*mark).copied().unwrap_or_default();
        assert!(n_told <= 1, "{mark} was answered twice: {ends:?}");
        assert!(n_told <= n_succeeded, "{mark} has no record: {ends:?}");
        assert!(n_succeeded <= 1, "{mark} ran {n_succeeded} times");
        if ends.len() == 1 {
            assert!(n_rows <= 1, "{mark} was made {n_rows} times");
        }
        n_done += n_told;
        n_rated += usize::from(mark.starts_with('r')) * n_succeeded;
    }
    let rate_max = RATE + RATE * (usize::try_from(took.as_secs()).unwrap() + 1) / 60 + 1;
    assert!(n_rated <= rate_max, "{n_rated} calls in {took:?}");
    n_done
}

/// Callers for `time`, while a replica is killed and started again every `pause`.
fn survives(place: &Place, args: &[&str], time: Duration, pause: Duration) {
    let all = [&SHARED, args].concat();
    let names = ["one", "two"];
    let start = |idx: usize, port: u16| place.replica_at(names[idx], port, &all);
    let mut replicas = [start(0, 0), start(1, 0)];
    let addresses: [SocketAddr; 2] = [replicas[0].address, replicas[1].address];
    let Some(balancer) = Balancer::start(&place.product.home, addresses) else {
        return;
    };
    place.product.file("words.txt", "nothing to be found\n");
    let tokens: Vec<String> = (0..N_CALLERS / N_OF_TOKEN)
        .map(|n| add_token(&place.product, &[&format!("t{n}")]))
        .collect();
    let rated = add_token(&place.product, &["rated", "--rate", &RATE.to_string()]);
    let begun = Instant::now();
    let load = Load {
        balancer: &balancer,
        tokens: &tokens,
        rated: &rated,
        until: begun + time,
    };
    let mut n_killed = 0;
    let ended = std::thread::scope(|scope| {
        let callers = scope.spawn(|| load.all());
        let mut next = begun + pause;
        while next < load.until {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            let idx = n_killed % 2;
            replicas[idx].signal(rustix::process::Signal::KILL);
            // Its port is free once it is gone.
            replicas[idx].wait();
            replicas[idx] = start(idx, addresses[idx].port());
            n_killed += 1;
            next = Instant::now() + pause;
        }
        callers.join().unwrap()
    });
    let took = begun.elapsed();
    let n_done = check(&ended, &recorded(place, &[]), took);
    let n_lost = ended.iter().filter(|(_, end)| *end == End::Lost).count();
    drop(writeln!(
        std::io::stderr(),
        "{} requests of {N_CALLERS} callers in {took:?}: {n_done} calls done, {n_lost} lost by {n_killed} killed replicas",
        ended.len()
    ));
    assert!(n_killed > 0 && n_done > 0, "{n_done} of {}", ended.len());
    // What a killed replica began stands there, and nothing else: everything that was answered is complete.
    let unfinished = recorded(place, &["--unfinished"]);
    let is_lost = |mark: &String| {
        ended
            .iter()
            .any(|(other, end)| other == mark && *end == End::Lost)
    };
    for mark in unfinished.keys() {
        assert!(is_lost(mark), "{mark} was answered and is not complete");
    }
    let [one, two] = replicas;
    for server in [one, two] {
        server.signal(rustix::process::Signal::TERM);
        assert_eq!(server.ended().code(), Some(143));
    }
}

#[test]
fn a_killed_replica_loses_no_record_and_nothing_counts_twice() {
    let place = Place::new();
    survives(&place, &[], Duration::from_secs(8), Duration::from_secs(3));
}

#[test]
fn a_killed_replica_loses_no_record_on_a_server_of_the_store() {
    let Some(place) = Place::on_server() else {
        return;
    };
    survives(&place, &[], Duration::from_secs(8), Duration::from_secs(3));
}

#[test]
fn a_minute_of_killed_replicas_loses_no_record() {
    if !slow_tests("a minute of killed replicas") {
        return;
    }
    let Some(place) = Place::on_server() else {
        return;
    };
    survives(&place, &[], Duration::from_secs(60), Duration::from_secs(8));
}

#[test]
fn requests_are_routed_by_the_handles_and_sessions_of_a_replica() {
    let place = Place::new();
    let allow = ["--allow", "bash"];
    let (one, two) = (place.replica("one", &allow), place.replica("two", &allow));
    let Some(balancer) = Balancer::start(&place.product.home, [one.address, two.address]) else {
        return;
    };
    place.product.file("a/file.txt", "");
    let call = |handle: &Value, command: &str| {
        let mut meta = modern_meta(&json!({}));
        if !handle.is_null() {
            meta[super::HANDLE] = handle.clone();
        }
        let (headers, body) = modern_call("bash", &json!({"command": command}), &meta);
        balancer
            .send("POST /mcp", &headers, &body)
            .unwrap()
            .result()
    };
    let mut homes = [0, 0];
    for _ in 0..8 {
        let first = call(&Value::Null, "cd a");
        let handle = first["_meta"][super::HANDLE].clone();
        homes[usize::from(handle.as_str().unwrap().starts_with("two."))] += 1;
        // The directory of a conversation is where it began: any other replica would refuse the command.
        for _ in 0..3 {
            let there = call(&handle, "ls");
            assert_eq!(
                there["structuredContent"]["stdout"], "file.txt\n",
                "{there}"
            );
        }
    }
    assert!(homes.iter().all(|n| *n > 0), "{homes:?}");
    for server in [&one, &two] {
        let session = server.open_session("");
        let body = message(
            "tools/call",
            &json!({"name": "list_directory", "arguments": {"path": "."}}),
        );
        for _ in 0..4 {
            let reply = balancer.send("POST /mcp", &session, &body).unwrap();
            assert_eq!(reply.status, 200, "{reply:?}");
        }
    }
}

#[test]
fn a_replica_that_ends_costs_no_call_it_took() {
    let place = Place::new();
    let mut replicas = [place.replica("one", &[]), place.replica("two", &[])];
    let addresses = [replicas[0].address, replicas[1].address];
    let Some(balancer) = Balancer::start(&place.product.home, addresses) else {
        return;
    };
    let is_over = AtomicUsize::new(0);
    let n_done = AtomicU32::new(0);
    let n_cut = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (balancer, is_over, n_done, n_cut) = (&balancer, &is_over, &n_done, &n_cut);
            scope.spawn(move || {
                for n in 0.. {
                    if is_over.load(Ordering::Relaxed) > 0 {
                        return;
                    }
                    let arguments = json!({"pattern": format!("c{number}n{n}x"), "path": "."});
                    let (headers, body) = modern_call("grep", &arguments, &modern_meta(&json!({})));
                    let reply = balancer.send("POST /mcp", &headers, &body);
                    let is_done = reply
                        .as_ref()
                        .is_ok_and(|reply| reply.body.contains("\"isError\":false"));
                    // The connection was closed as the balancer sent the request on it.
                    if reply.as_ref().is_ok_and(|reply| reply.status == 502) {
                        n_cut.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    // A thread that fails must not leave the others running.
                    if !is_done {
                        is_over.store(1, Ordering::Relaxed);
                    }
                    assert!(is_done, "{reply:?}");
                    n_done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for idx in [0, 1] {
            let before = n_done.load(Ordering::Relaxed);
            crate::mcp_ends::waits_until("calls are made", || {
                n_done.load(Ordering::Relaxed) > before + 20 || is_over.load(Ordering::Relaxed) > 0
            });
            let port = addresses[idx].port();
            replicas[idx].signal(rustix::process::Signal::TERM);
            restart(&place, &mut replicas[idx], ["one", "two"][idx], port);
        }
        is_over.store(1, Ordering::Relaxed);
    });
    let n_cut = n_cut.into_inner();
    assert!(n_cut <= 4, "{n_cut} requests were cut at two restarts");
}

/// Waits for the end of a server, and starts another in its place.
fn restart(place: &Place, server: &mut HttpServer, name: &str, port: u16) {
    server.wait();
    *server = place.replica_at(name, port, &[]);
}
