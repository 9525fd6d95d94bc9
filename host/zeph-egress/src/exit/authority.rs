//! The authority that signs for the hosts whose requests are looked at. Its key lives as long as the process, in memory only.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};
use zeph_core::network::Host;

/// Hosts whose certificates are kept. A wildcard may stand for any number.
const KEPT_MAX: usize = 200;

/// Characters of a common name (RFC 5280, appendix A.1). A longer host has its alternative name alone.
const COMMON_NAME_MAX: usize = 64;

/// Characters of a line in a PEM file.
const PEM_LINE: usize = 64;

/// Why there is no authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A certificate cannot be made.
    #[error("a certificate for `tls = \"inspect\"` cannot be made")]
    Certificate(#[from] rcgen::Error),
    /// There are no random bytes for placeholders of secrets.
    #[error("the machine gives no random bytes for placeholders of secrets")]
    Random,
    /// The operator's file of certificates.
    #[error("the certificates of `tools.egress.ca_file` cannot be read")]
    Trust(#[source] pem::Error),
    /// TLS cannot be set up with it.
    #[error("TLS for `tls = \"inspect\"` cannot be set up")]
    Tls(#[from] rustls::Error),
}

/// Signs for hosts.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// What commands trust.
    bundle: Vec<u8>,
    /// Which servers are believed.
    trust: Arc<ClientConfig>,
    /// What was signed for. Protects the table for the moment of looking or changing.
    made: Mutex<HashMap<Host, Arc<ServerConfig>>>,
}

impl Authority {
    /// Makes one, with a new key; `trusted` is who is believed besides.
    pub(super) fn new(trusted: &[CertificateDer<'static>]) -> Result<Self, AuthorityError> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "zeph-host: commands of one session");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        // Hosts that are not inspected show their own certificates to commands.
        let mut bundle = bundle_of(trusted);
        bundle.push_str(&issuer.pem());
        Ok(Self {
            bundle: bundle.into_bytes(),
            issuer,
            trust: Arc::new(trusting(trusted)?),
            made: Mutex::default(),
        })
    }

    pub(super) fn bundle(&self) -> &[u8] {
        &self.bundle
    }

    pub(super) fn trust(&self) -> &Arc<ClientConfig> {
        &self.trust
    }

    /// Its own certificate.
    #[cfg(test)]
    pub(super) fn certificate(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// The side of a server that is `host`, for HTTP/1.1.
    pub(super) fn server(&self, host: &Host) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = made.get(host) {
            return Ok(Arc::clone(config));
        }
        if made.len() >= KEPT_MAX {
            made.clear();
        }
        let config = Arc::new(self.sign(host)?);
        made.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }

    pub(super) fn certificate_of(
        &self,
        host: &Host,
    ) -> Result<(Certificate, KeyPair), rcgen::Error> {
        let key = KeyPair::generate()?;
        let host = host.to_string();
        let mut params = CertificateParams::new(vec![host.clone()])?;
        // What strict clients demand of a certificate, Python since 3.13 for one: RFC 5280, 4.2.1.
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.distinguished_name = DistinguishedName::new();
        if host.len() <= COMMON_NAME_MAX {
            let name = &mut params.distinguished_name;
            name.push(DnType::CommonName, host);
        }
        Ok((params.signed_by(&key, &self.issuer)?, key))
    }

    fn sign(&self, host: &Host) -> Result<ServerConfig, AuthorityError> {
        let (certificate, key) = self.certificate_of(host)?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let chain = vec![certificate.der().clone(), self.issuer.der().clone()];
        let provider = ring::default_provider();
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// The certificates that this machine trusts, and those in `ca_file` (PEM).
///
/// Errors: `Trust`, when `ca_file` cannot be read.
pub fn trusted_certificates(
    ca_file: Option<&Path>,
) -> Result<Vec<CertificateDer<'static>>, AuthorityError> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "certificates of the machine cannot be read");
    }
    let mut trusted = found.certs;
    if let Some(path) = ca_file {
        let of_file = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
        let of_file: Vec<_> = of_file.map_err(AuthorityError::Trust)?;
        trusted.extend(of_file);
    }
    Ok(trusted)
}

/// The side of a client that believes servers by these certificates, for HTTP/1.1.
fn trusting(certificates: &[CertificateDer<'static>]) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    // Machines have old certificates that cannot be read; they are of no use.
    roots.add_parsable_certificates(certificates.iter().cloned());
    let provider = ring::default_provider();
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The content of a PEM file.
pub(super) fn bundle_of(certificates: &[CertificateDer<'static>]) -> String {
    certificates.iter().map(|one| as_pem(one)).collect()
}

fn as_pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in text.as_bytes().chunks(PEM_LINE) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}
