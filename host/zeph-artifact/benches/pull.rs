//! How long fetching a plugin of 20 MB takes, with every check, against `curl` of the same blob into a file.
//!
//! `cargo bench -p zeph-artifact`, with Debian's `docker-registry` on loopback. The bound to keep is 1.5 × curl; the numbers of other
//! profiles say nothing.
#![expect(clippy::unwrap_used, reason = "a bench that cannot measure ends")]

#[path = "../src/registry/tests/docker_registry.rs"]
#[expect(dead_code, reason = "the tests break it, too")]
mod docker_registry;

use std::error::Error;
use std::io::{self, Write};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeph_artifact::credentials::CredentialFiles;
use zeph_artifact::manifest::{ComponentFacts, Publication};
use zeph_artifact::reference::Reference;
use zeph_artifact::registry::{Registries, RegistrySettings};
use zeph_core::network::{Destination, EgressLimits, EgressSettings};
use zeph_egress::{Egress, OwnHost};

use self::docker_registry::DockerRegistry;

/// Bytes of the plugin.
const N_BYTES: usize = 20 * 1024 * 1024;

/// Fetches of each side, in turns.
const N_RUNS: usize = 21;

/// How much longer than curl it may take.
const RATIO_MAX: f64 = 1.5;

const LIMIT: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let Some(registry) = DockerRegistry::start(false) else {
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let registries = registries(registry.port);
    let reference: Reference = format!("127.0.0.1:{}/org/name:1", registry.port).parse()?;
    let artifact = Publication::new(component(), &ComponentFacts::default())?;
    runtime.block_on(registries.publish(&reference, &artifact))?;
    let pulled = runtime.block_on(registries.pull(&reference))?;
    let blob = format!(
        "http://127.0.0.1:{}/v2/org/name/blobs/{}",
        registry.port,
        pulled.component.digest()
    );
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("blob");
    let (mut ours, mut curls) = (Vec::new(), Vec::new());
    for _ in 0..N_RUNS {
        let started = Instant::now();
        let mut pulled = runtime.block_on(registries.pull(&reference))?;
        assert_eq!(pulled.component.read()?.len(), N_BYTES);
        ours.push(started.elapsed());
        curls.push(curl(&blob, &file)?);
    }
    report(median(ours), median(curls))
}

/// Bytes that do not compress.
fn component() -> Bytes {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let words = (0..N_BYTES / 8).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.collect::<Vec<u8>>().into()
}

fn curl(blob: &str, file: &std::path::Path) -> io::Result<Duration> {
    let started = Instant::now();
    #[expect(clippy::disallowed_methods, reason = "the peer of the bench")]
    let status = Command::new("curl")
        .args(["--silent", "--fail", "--output"])
        .arg(file)
        .arg(blob)
        .status()?;
    assert!(status.success(), "curl cannot fetch {blob}");
    Ok(started.elapsed())
}

fn registries(port: u16) -> Registries {
    let egress = Egress::new(&EgressSettings {
        private: Arc::default(),
        proxy: None,
        ca_file: None,
        limits: EgressLimits {
            connect: LIMIT,
            header: LIMIT,
            idle: LIMIT,
            total: LIMIT,
            header_bytes: 65_536,
            body_bytes: 65_536,
            redirects: 0,
            requests: 1,
            connections: 1,
        },
    });
    let settings = RegistrySettings {
        allowed: vec![OwnHost {
            destination: Destination {
                host: "127.0.0.1".parse().unwrap(),
                port,
            },
            plain_http: true,
            private: true,
        }],
        bytes_max: N_BYTES as u64,
        timeout: LIMIT,
    };
    let credentials = CredentialFiles::default();
    Registries::new(&egress, settings, credentials, Arc::new(|_| ()))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn report(ours: Duration, curl: Duration) -> Result<(), Box<dyn Error>> {
    let ratio = ours.as_secs_f64() / curl.as_secs_f64();
    let met = match ratio <= RATIO_MAX {
        true => "met",
        false => "missed",
    };
    writeln!(
        io::stdout(),
        "| fetching a plugin of 20 MB from a registry on loopback, with every check | {:.0} ms against {:.0} ms | ≤ {RATIO_MAX} × `curl` of the blob | {ratio:.2} {met} |",
        ours.as_secs_f64() * 1e3,
        curl.as_secs_f64() * 1e3,
    )?;
    Ok(())
}
