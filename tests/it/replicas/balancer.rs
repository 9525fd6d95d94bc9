//! The load balancer, with the configuration that the guide gives operators.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::mcp_client::PATIENCE;
use crate::mcp_ends::waits_until;
use crate::mcp_http_client::Reply;
use crate::postgres::free_port;

const GUIDE: &str = include_str!("../../../host/REPLICAS.md");

/// HAProxy before the replicas `one` and `two`. It is ended when this is dropped.
pub(crate) struct Balancer {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Balancer {
    /// Starts it; none, with a printed reason, where it is not installed.
    #[expect(clippy::disallowed_methods, reason = "the tests start what they need")]
    pub(crate) fn start(folder: &Path, replicas: [SocketAddr; 2]) -> Option<Self> {
        let program = [
            "/usr/sbin/haproxy",
            "/usr/local/sbin/haproxy",
            "/usr/bin/haproxy",
        ];
        let Some(program) = program.into_iter().find(|path| Path::new(path).exists()) else {
            drop(writeln!(
                std::io::stderr(),
                "skipped: HAProxy is not installed"
            ));
            return None;
        };
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let file = folder.join("haproxy.cfg");
        fs::write(&file, configuration(address, replicas)).unwrap();
        let child = Command::new(program)
            .arg("-db")
            .arg("-f")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let balancer = Self { child, address };
        waits_until("the balancer has a replica", || {
            let ready = balancer.send("GET /readyz", "", "");
            ready.is_ok_and(|reply| reply.status == 200)
        });
        Some(balancer)
    }

    /// Sends a request and reads the answer, if there is one.
    pub(crate) fn send(&self, method: &str, headers: &str, body: &str) -> Result<Reply, String> {
        let sent = TcpStream::connect(self.address).and_then(|mut stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            let head = format!(
                "{method} HTTP/1.1\r\nhost: {}\r\naccept: application/json, text/event-stream\r\n\
                 content-type: application/json\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
                self.address,
                body.len()
            );
            stream.write_all(head.as_bytes())?;
            Ok(stream)
        });
        Reply::try_read(sent.map_err(|error| error.to_string())?)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The configuration of the guide, with other addresses.
fn configuration(address: SocketAddr, [one, two]: [SocketAddr; 2]) -> String {
    let (_, block) = GUIDE.split_once("```haproxy\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let mut text = block.to_owned();
    for (example, real) in [
        ("127.0.0.1:8000", address),
        ("127.0.0.1:8081", one),
        ("127.0.0.1:8082", two),
    ] {
        assert_eq!(text.matches(example).count(), 1, "{example}");
        text = text.replace(example, &real.to_string());
    }
    text
}
