//! What the operator says about the way out (`[tools.egress]`).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Destination, PrivateHost};

/// The way out of every tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressSettings {
    /// Single private hosts that are opened (`tools.egress.private`).
    pub private: Arc<[PrivateHost]>,
    /// The HTTP proxy that every connection goes through (`tools.egress.proxy`).
    pub proxy: Option<Destination>,
    /// Certificates in PEM that are trusted besides those of the machine (`tools.egress.ca_file`).
    pub ca_file: Option<PathBuf>,
    /// The bounds of requests.
    pub limits: EgressLimits,
}

/// The bounds of the requests of one call, and of each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EgressLimits {
    /// Resolving, and connecting with its handshake (`tools.egress.connect_timeout_secs`).
    pub connect: Duration,
    /// From the request to the end of the response's header (`tools.egress.header_timeout_secs`).
    pub header: Duration,
    /// Between two pieces of a body (`tools.egress.idle_timeout_secs`).
    pub idle: Duration,
    /// A request from its beginning to the end of its body, redirects included (`tools.egress.timeout_secs`).
    pub total: Duration,
    /// Bytes of the header of a request, and of that of a response (`tools.egress.max_header_bytes`).
    pub header_bytes: usize,
    /// Bytes of a body after it was decompressed, and of the body of a request (`tools.egress.max_body_bytes`).
    pub body_bytes: u64,
    /// Redirects that a request follows (`tools.egress.max_redirects`).
    pub redirects: u32,
    /// Requests of one call, redirects included (`tools.egress.max_requests`).
    pub requests: u32,
    /// Requests of one call at one time (`tools.egress.max_connections`).
    pub connections: u32,
}
