//! TLS to the server, with the library and the provider that everything here uses.

use std::fmt;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_rustls::{TlsConnector, client};

use super::url::{CertificateCheck, Security};
use crate::error::StoreError;

/// Makes connections as the URL says.
#[derive(Clone)]
pub(super) struct Connector(Arc<ClientConfig>);

/// A connection that is encrypted.
pub(super) struct SecureStream<S>(client::TlsStream<S>);

/// Agrees on TLS for one connection.
pub(super) struct Handshake {
    connector: TlsConnector,
    name: Result<ServerName<'static>, io::Error>,
}

type Shaken<S> = Pin<Box<dyn Future<Output = io::Result<SecureStream<S>>> + Send>>;

impl Connector {
    /// The certificates are read now.
    ///
    /// Errors: [`StoreError::BadUrl`] when `sslrootcert` cannot be read or holds no certificate.
    pub(super) fn new(security: &Security) -> Result<Self, StoreError> {
        let config = client_config(security).map_err(|problem| StoreError::BadUrl { problem })?;
        Ok(Self(Arc::new(config)))
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

fn client_config(security: &Security) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let (check, roots) = match security {
        // Never asked for a connection.
        Security::Plain => (CertificateCheck::Full, RootCertStore::empty()),
        Security::Tls { check, roots } => (*check, root_certificates(*check, roots.as_deref())?),
    };
    if check == CertificateCheck::Full {
        return Ok(builder.with_root_certificates(roots).with_no_client_auth());
    }
    let chain = match check {
        CertificateCheck::None => None,
        _ => {
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            Some(verifier.build().map_err(|error| error.to_string())?)
        }
    };
    let verifier = Arc::new(LenientVerifier { chain, provider });
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    Ok(builder.with_no_client_auth())
}

fn root_certificates(
    check: CertificateCheck,
    file: Option<&Path>,
) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if check == CertificateCheck::None {
        return Ok(roots);
    }
    let Some(file) = file else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    let problem = |problem: String| format!("`sslrootcert` `{}`: {problem}", file.display());
    let certificates = CertificateDer::pem_file_iter(file);
    let certificates = certificates.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(|error| problem(error.to_string()))?;
    if certificates.is_empty() {
        return Err(problem("there is no certificate in it".to_owned()));
    }
    for certificate in certificates {
        let added = roots.add(certificate);
        added.map_err(|error| problem(error.to_string()))?;
    }
    Ok(roots)
}

impl<S> MakeTlsConnect<S> for Connector
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = SecureStream<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, io::Error> {
        // Asked for servers without TLS, too, which may have no name.
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| io::Error::other("no certificate can be for that name"));
        let connector = TlsConnector::from(Arc::clone(&self.0));
        Ok(Handshake { connector, name })
    }
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = SecureStream<S>;
    type Error = io::Error;
    type Future = Shaken<S>;

    fn connect(self, stream: S) -> Shaken<S> {
        Box::pin(async move {
            let stream = self.connector.connect(self.name?, stream).await?;
            Ok(SecureStream(stream))
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for SecureStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for SecureStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for SecureStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Believes certificates for another name or, without a chain to look at, any.
#[derive(Debug)]
struct LenientVerifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for LenientVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        match chain.verify_server_cert(certificate, others, name, ocsp, now) {
            // The name is looked at last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
