//! The budget of a call's log, whatever the lines are like.

use bytes::Bytes;
use wasmtime_wasi::p2::OutputStream as _;
use zeph_core::id::PluginId;

use super::GuestLog;

/// A hundred of the shortest lines, fifty of twice their length.
const BYTES: u64 = 3_200;

/// How many lines use the budget up.
fn lines(mut write: impl FnMut(&mut GuestLog)) -> u64 {
    let mut log = GuestLog::new(PluginId("guest".to_owned()), BYTES);
    let mut n = 0;
    while log.lock().bytes_left > 0 && n < BYTES {
        write(&mut log);
        n += 1;
    }
    n
}

#[test]
fn short_lines_cost_no_less_than_the_host_adds_to_them() {
    let told = |text: &str| lines(|log| log.line(tracing::Level::INFO, text));
    let written =
        |text: &'static [u8]| lines(|log| log.write(Bytes::from_static(text)).expect("taken"));
    let long = [b'x'; 63];
    assert_eq!(told(""), 100);
    assert_eq!(told(str::from_utf8(&long).expect("text")), 50);
    assert_eq!(written(b"x\n"), 100);
    assert_eq!(
        written(&[[b'x'; 63].as_slice(), b"\n"].concat().leak()[..]),
        50
    );
}
