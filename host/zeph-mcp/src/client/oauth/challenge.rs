//! What a server wants, as it says when it is used without a login: many name their metadata and scopes nowhere else.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use zeph_egress::Egress;

use super::RemoteServer;
use crate::client::{Connection, ConnectionOptions, Deaf, HttpServer, McpError, ServerTransport};

/// How long the server may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The value of `WWW-Authenticate` that `server` answers with, to the first requests of a connection without a login; none where it asks
/// for no login, or does not answer.
///
/// Limits: 20 s.
pub async fn challenge(server: &RemoteServer, egress: &Egress) -> Option<String> {
    let target = HttpServer::new(egress, server.url().clone(), HeaderMap::new(), None).ok()?;
    let options = ConnectionOptions {
        start_timeout: PATIENCE,
        ..ConnectionOptions::new(env!("CARGO_PKG_VERSION"))
    };
    let transport = ServerTransport::Http(Box::new(target));
    let refusal = match Connection::open(transport, options, Arc::new(Deaf)).await {
        Ok(connection) => {
            let listed = tokio::time::timeout(PATIENCE, connection.definitions()).await;
            connection.close().await;
            listed.ok()?.err()?
        }
        Err(error) => error,
    };
    match refusal {
        McpError::Authorization { challenge } => challenge,
        _ => None,
    }
}
