//! What the way out costs: a page of 1 MB from a TLS server on loopback, fetched by a guest through the program, against reqwest in this
//! process. Both keep their connection; what the start of the program costs is taken off by a run with fewer requests.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on panics")]
#![expect(dead_code, reason = "the server is that of the tests")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

#[path = "../it/site.rs"]
mod site;

use site::Site;

static WEB: &[u8] = include_bytes!(env!("GUEST_WEB"));

const FEW: u32 = 10;
const MANY: u32 = 210;
const N_ROUNDS: usize = 5;

fn main() {
    let site = Site::start(|_| ("200 OK".to_owned(), vec![b'x'; 1 << 20]));
    let dir = tempfile::tempdir().unwrap();
    install(dir.path(), &site);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (mut guest, mut native) = (Vec::new(), Vec::new());
    for _ in 0..N_ROUNDS {
        let few = by_guest(dir.path(), &site, FEW);
        guest.push((by_guest(dir.path(), &site, MANY).saturating_sub(few)) / (MANY - FEW));
        native.push(runtime.block_on(by_reqwest(&site, MANY)) / MANY);
    }
    let (guest, native) = (median(guest), median(native));
    let ratio = guest.as_secs_f64() / native.as_secs_f64();
    println!(
        "| fetch of 1 MB through guest and egress | {guest:.2?} | ≤ 2 × reqwest | {ratio:.2} × ({native:.2?}) |"
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The component as a plugin that may fetch from the site.
fn install(home: &Path, site: &Site) {
    let config = home.join(".config/zeph-host");
    fs::create_dir_all(config.join("plugins")).unwrap();
    fs::write(config.join("plugins/web.wasm"), WEB).unwrap();
    fs::write(home.join("ca.pem"), &site.certificate).unwrap();
    let settings = format!(
        "[limits]\nwall_clock_secs = 600\ncpu_secs = 600\n[tools.egress]\nca_file = \"~/ca.pem\"\nmax_requests = 100000\n\
         [[tools.egress.private]]\nhost = \"localhost\"\nports = [{}]\n",
        site.port
    );
    fs::write(config.join("config.toml"), settings).unwrap();
    let host = format!("localhost:{}:GET", site.port);
    run(home, &["plugin", "grant", "web", "--host", &host]);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the bench starts the program it measures"
)]
fn run(home: &Path, args: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zeph-host-under-test"));
    let ran = command
        .args(args)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .output();
    let ran = ran.unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

fn by_guest(home: &Path, site: &Site, times: u32) -> Duration {
    let (url, times) = (format!("url={}", site.url("/")), format!("times={times}"));
    let started = Instant::now();
    run(home, &["call", "repeat", &url, &times]);
    started.elapsed()
}

async fn by_reqwest(site: &Site, times: u32) -> Duration {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(site.certificate.as_bytes()).unwrap();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(config)
        .http1_only();
    let client = client.no_proxy().build().unwrap();
    let started = Instant::now();
    for _ in 0..times {
        let body = client
            .get(site.url("/"))
            .send()
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
        assert_eq!(body.len(), 1 << 20);
    }
    started.elapsed()
}
