//! TLS with the certificates of the machine and of the operator.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};
use zeph_core::network::{Destination, Host};

use crate::error::EgressError;

/// Whom TLS trusts. The certificates are read when the first connection is made. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Tls(Arc<Trust>);

#[derive(Debug, Default)]
struct Trust {
    ca_file: Option<PathBuf>,
    config: OnceCell<Arc<ClientConfig>>,
}

impl Tls {
    /// The certificates of the machine, and those in `ca_file` (PEM).
    pub fn new(ca_file: Option<PathBuf>) -> Self {
        let config = OnceCell::new();
        Self(Arc::new(Trust { ca_file, config }))
    }

    /// The configuration of a client: HTTP/1.1, and nobody trusted but the certificates above.
    ///
    /// Errors: `Roots` when `ca_file` cannot be read or holds no certificate.
    pub async fn config(&self) -> Result<Arc<ClientConfig>, EgressError> {
        let made = self.0.config.get_or_try_init(|| async {
            let ca_file = self.0.ca_file.clone();
            let made = tokio::task::spawn_blocking(move || client_config(ca_file.as_deref())).await;
            made.unwrap_or_else(|_| Err("its reader failed".to_owned()))
        });
        made.await.map(Arc::clone).map_err(EgressError::Roots)
    }

    /// Agrees on TLS with exactly that host.
    ///
    /// Errors: `Roots`, `Tls`.
    pub(crate) async fn handshake<S>(
        &self,
        destination: &Destination,
        stream: S,
    ) -> Result<TlsStream<S>, EgressError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let connector = TlsConnector::from(self.config().await?);
        let failed = |source| EgressError::Tls {
            destination: destination.clone(),
            source,
        };
        let name = server_name(&destination.host).map_err(failed)?;
        connector.connect(name, stream).await.map_err(failed)
    }
}

/// Whether the certificates of `ca_file` can be used: what a first connection would find out.
///
/// Errors: in words, why not.
pub fn check_ca_file(ca_file: &Path) -> Result<(), String> {
    add_file(&mut RootCertStore::empty(), ca_file)
}

/// The name a certificate has to be for.
fn server_name(host: &Host) -> io::Result<ServerName<'static>> {
    if let Some(address) = host.address() {
        return Ok(ServerName::IpAddress(address.into()));
    }
    let name = host.name().unwrap_or_default().to_owned();
    ServerName::try_from(name).map_err(|_| io::Error::other("no certificate can be for that name"))
}

fn client_config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!(
            error = error as &dyn std::error::Error,
            "a certificate of the machine cannot be read"
        );
    }
    let (_, ignored) = roots.add_parsable_certificates(native.certs);
    if ignored > 0 {
        tracing::debug!("{ignored} certificates of the machine cannot be used");
    }
    if let Some(ca_file) = ca_file {
        add_file(&mut roots, ca_file)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let certificates = CertificateDer::pem_file_iter(path);
    let certificates = certificates.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    for certificate in certificates {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(())
}
