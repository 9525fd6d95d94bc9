//! How long deciding about a request takes: from the text of its URL over a hundred grants to the check of its address.
//!
//! `cargo bench -p zeph-egress`. The bound to keep is 5 µs; the numbers of other profiles say nothing.

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use zeph_core::network::{Destination, HTTPS_PORT, HostAccess};
use zeph_egress::forbidden;

const N_ROUNDS: usize = 20_000;

/// The hosts and addresses that are decided about, in turns.
const HOSTS: [(&str, &str); 4] = [
    ("api.example.org", "93.184.216.34"),
    ("a.b.c.services.example.co.uk:8443", "2606:4700:4700::1111"),
    ("bücher.example", "10.0.0.1"),
    ("0x7f.1", "127.0.0.1"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let grants = (0..100).map(|n| format!("*.{n}.services.example.co.uk:8443:GET").parse());
    let grants: Vec<HostAccess> = grants.collect::<Result<_, _>>()?;
    let mut times = Vec::with_capacity(N_ROUNDS);
    for round in 0..N_ROUNDS {
        let (host, address) = HOSTS[round % HOSTS.len()];
        let started = Instant::now();
        let destination = Destination::parse(black_box(host), HTTPS_PORT)?;
        let is_granted = grants
            .iter()
            .any(|access| access.name.matches(&destination));
        let address: IpAddr = address.parse()?;
        black_box((is_granted, forbidden(address)));
        times.push(started.elapsed());
    }
    report(times)
}

fn report(mut times: Vec<Duration>) -> Result<(), Box<dyn Error>> {
    times.sort_unstable();
    let median = times[times.len() / 2];
    let micros = median.as_secs_f64() * 1e6;
    let reach = Duration::from_micros(5);
    let ratio = median.as_secs_f64() / reach.as_secs_f64();
    writeln!(
        io::stdout(),
        "| URL and address decision, 100 grants | {micros:.2} µs | ≤ 5 µs | {ratio:.2} |"
    )?;
    Ok(())
}
