//! Why nothing was fetched or published, and what to do about it.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use zeph_core::failure::one_line;
use zeph_core::id::Digest;
use zeph_core::network::Destination;
use zeph_egress::{
    CertificateFault, DialError, EgressError, ForbiddenAddress, OwnAnswer, OwnError,
};

use crate::credentials::BadCredentials;
use crate::manifest::BadManifest;
use crate::reference::{BadReference, RegistryHost};

/// Bytes of an error of a registry that are read.
const ERROR_BYTES_MAX: usize = 8 * 1024;

/// Nothing was fetched or published.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The operator did not allow the registry.
    #[error("`{0}` is not one of the registries that plugins may come from")]
    NotAllowed(RegistryHost),
    /// A file with credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] BadCredentials),
    /// The registry refuses.
    #[error("`{registry}` does not permit it{}", credentials.told())]
    Denied {
        /// The registry.
        registry: RegistryHost,
        /// What it was told.
        credentials: CredentialState,
        /// What it says.
        said: String,
    },
    /// It asks for credentials in a way that is not supported.
    #[error("`{0}` asks for credentials, and not in a way that is supported (Bearer, Basic)")]
    Challenge(RegistryHost),
    /// Its tokens come from elsewhere.
    #[error(
        "`{registry}` has its access tokens issued by `{realm}`, which is not one of the registries that plugins may come from"
    )]
    Realm {
        /// The registry.
        registry: RegistryHost,
        /// Who issues its tokens.
        realm: String,
        /// The host of that, where it could be allowed.
        host: Option<Destination>,
    },
    /// A redirect that is not followed.
    #[error("`{from}` redirects to where plugins are not fetched: {why}")]
    Redirect {
        /// Who redirects.
        from: String,
        /// What is wrong with it.
        why: String,
    },
    /// A private address.
    #[error("`{destination}` is at {why}")]
    Forbidden {
        /// What was to be reached.
        destination: Destination,
        /// What its address is.
        why: ForbiddenAddress,
    },
    /// There is no such thing.
    #[error("there is no {0}")]
    NotFound(String),
    /// The server answers something else.
    #[error("{what}: the answer has status {status}{}", after_colon(said))]
    Status {
        /// What was asked for.
        what: String,
        /// The status.
        status: StatusCode,
        /// What the server says, in one line.
        said: String,
    },
    /// The connection.
    #[error(transparent)]
    Connection(OwnError),
    /// All of it took too long.
    #[error("it took longer than {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The manifest is not one of a plugin.
    #[error("{what} is not a plugin: {why}")]
    Manifest {
        /// Which.
        what: String,
        /// Why.
        why: BadManifest,
    },
    /// Other bytes than those that were asked for or declared.
    #[error("{what} has the digest {found}, not {expected}; nothing of it is used")]
    Digest {
        /// Which bytes.
        what: &'static str,
        /// What was asked for.
        expected: Digest,
        /// What arrived.
        found: Digest,
    },
    /// More or fewer bytes than declared.
    #[error("{what} has {found} bytes, not the declared {declared}; nothing of it is used")]
    Size {
        /// Which bytes.
        what: &'static str,
        /// What was declared.
        declared: u64,
        /// What arrived or was announced.
        found: u64,
    },
    /// The connection ended too early.
    #[error("{what} ended after {found} bytes{}; nothing of it is used", of_declared(*declared))]
    Truncated {
        /// Which bytes.
        what: &'static str,
        /// What was declared.
        declared: Option<u64>,
        /// What arrived.
        found: u64,
    },
    /// Too many bytes.
    #[error("{what} has more than {limit} bytes")]
    TooLarge {
        /// Which bytes.
        what: String,
        /// Most of them.
        limit: u64,
        /// The key of the configuration that allows more.
        key: Option<&'static str>,
    },
    /// The server says something that cannot be.
    #[error("{0}")]
    Protocol(String),
    /// A URL without a digest.
    #[error("a plugin from a URL needs the digest that it has to have")]
    NoDigest,
    /// A reference without a tag.
    #[error("a plugin is published under a tag")]
    NoTag,
    /// A reference that cannot be made.
    #[error(transparent)]
    Reference(#[from] BadReference),
    /// The temporary file.
    #[error("the temporary file cannot be written")]
    File(#[from] io::Error),
}

/// What a registry was told about the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialState {
    /// Nothing is known.
    None,
    /// Credentials, which it refused.
    Refused,
    /// Nothing, since they are kept by a program of this name.
    Helper(String),
}

impl CredentialState {
    fn told(&self) -> String {
        match self {
            Self::None => " without credentials, and there are none for it".to_owned(),
            Self::Refused => " with the credentials there are for it".to_owned(),
            Self::Helper(helper) => format!(
                " without credentials; those for it are kept by the credential helper `docker-credential-{}`, which zeph-host does not run",
                one_line(helper, 60)
            ),
        }
    }
}

fn after_colon(said: &str) -> String {
    match said.is_empty() {
        true => String::new(),
        false => format!(": {said}"),
    }
}

fn of_declared(declared: Option<u64>) -> String {
    declared
        .map(|declared| format!(" of {declared}"))
        .unwrap_or_default()
}

impl RegistryError {
    /// What to do, one sentence each.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::NotAllowed(registry) => allow_hints(&registry.to_string()),
            Self::Realm {
                host: Some(host), ..
            } => allow_hints(&host.to_string()),
            Self::Denied {
                registry,
                credentials,
                said,
            } => denied_hints(registry, credentials, said),
            Self::Forbidden { destination, .. } => vec![format!(
                "if it is a host of yours, allow it: `[[plugins.registries]]` with `host = \"{destination}\"` and `private = true`"
            )],
            Self::Connection(OwnError::Protocol(error)) => tls_hints(error),
            Self::Connection(OwnError::Plain { destination, .. }) => vec![format!(
                "if `{destination}` is to be spoken with over plain HTTP, set `plain_http = true` in its entry of `plugins.registries`"
            )],
            Self::TimedOut(_) => {
                vec!["`plugins.download_timeout_secs` sets how long it may take".to_owned()]
            }
            Self::TooLarge { key: Some(key), .. } => vec![format!("`{key}` sets the limit")],
            Self::NoDigest => vec!["add `--sha256 HEX`, as its publisher states it".to_owned()],
            Self::NoTag => vec!["write it behind the repository, such as `:1.2.0`".to_owned()],
            _ => Vec::new(),
        }
    }

    /// Whether what was typed, or what the operator allows, is at fault.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NotAllowed(_) | Self::NoDigest | Self::NoTag | Self::Reference(_)
        )
    }

    /// What became of a request or of the body of its answer.
    pub(super) fn of(error: OwnError) -> Self {
        match error {
            OwnError::Dial(DialError::Forbidden { destination, why }) => {
                Self::Forbidden { destination, why }
            }
            OwnError::TooLarge(limit) => Self::TooLarge {
                what: "the answer".to_owned(),
                limit: limit as u64,
                key: Some("plugins.download_bytes_max"),
            },
            error => Self::Connection(error),
        }
    }
}

fn allow_hints(host: &str) -> Vec<String> {
    vec![
        format!(
            "to allow it, add `[[plugins.registries]]` with `host = \"{host}\"` to your configuration file"
        ),
        format!("or for this command: `--set 'plugins.registries=[{{host=\"{host}\"}}]'`"),
    ]
}

/// What to do when TLS or what is spoken over it failed. A certificate that nobody vouches for is no reason to do without TLS.
fn tls_hints(error: &EgressError) -> Vec<String> {
    let EgressError::Tls { destination, .. } = error else {
        return Vec::new();
    };
    match error.certificate_fault() {
        Some(CertificateFault::Issuer) => vec![format!(
            "if an authority of your own vouches for `{destination}`, name the file of its certificate: `[tools.egress]` with `ca_file = \"FILE\"`"
        )],
        Some(CertificateFault::Certificate) => Vec::new(),
        None => vec![format!(
            "if `{destination}` speaks plain HTTP, set `plain_http = true` in its entry of `plugins.registries`"
        )],
    }
}

fn denied_hints(registry: &RegistryHost, credentials: &CredentialState, said: &str) -> Vec<String> {
    let write = format!(
        "write a user and an access token into `wasm-pkg/config.toml` in your configuration directory, below `[registry.\"{registry}\".oci]`: `auth = {{ username = \"…\", password = \"…\" }}`"
    );
    let mut hints = match credentials {
        CredentialState::None => {
            vec![format!("run `docker login {registry}`, or {write}")]
        }
        CredentialState::Refused => vec![format!(
            "check that the reference exists and that the credentials are current; to renew them, run `docker login {registry}`"
        )],
        CredentialState::Helper(_) => vec![write],
    };
    if !said.is_empty() {
        hints.push(format!("the registry says: {said}"));
    }
    hints
}

#[derive(Deserialize)]
struct Errors {
    errors: Vec<ErrorEntry>,
}

#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// What a registry says about an error, in one line.
pub(super) async fn said(answer: OwnAnswer) -> String {
    let bytes = answer.beginning(ERROR_BYTES_MAX).await;
    let Ok(Errors { errors }) = serde_json::from_slice(&bytes) else {
        return String::new();
    };
    let texts: Vec<String> = errors
        .iter()
        .map(|error| match error.message.is_empty() {
            true => error.code.clone(),
            false => error.message.clone(),
        })
        .collect();
    one_line(&texts.join("; "), 200)
}

/// The answer, when its status says that there is what was asked for.
///
/// Errors: `NotFound`, `Status`.
pub(super) async fn success(answer: OwnAnswer, what: &str) -> Result<OwnAnswer, RegistryError> {
    let status = answer.status;
    match status {
        StatusCode::OK => Ok(answer),
        StatusCode::NOT_FOUND => Err(RegistryError::NotFound(format!(
            "`{}`",
            one_line(what, 300)
        ))),
        _ => Err(unexpected(answer, what).await),
    }
}

/// The error for an answer with a status that was not expected.
pub(super) async fn unexpected(answer: OwnAnswer, what: &str) -> RegistryError {
    RegistryError::Status {
        what: format!("`{}`", one_line(what, 300)),
        status: answer.status,
        said: said(answer).await,
    }
}

/// The whole body.
///
/// Errors: `TooLarge`, and those of the connection.
pub(super) async fn bytes(
    answer: OwnAnswer,
    what: &str,
    bytes_max: usize,
) -> Result<Bytes, RegistryError> {
    let read = answer.bytes(bytes_max).await;
    read.map_err(|error| match RegistryError::of(error) {
        RegistryError::TooLarge { .. } => RegistryError::TooLarge {
            what: format!("`{}`", one_line(what, 300)),
            limit: bytes_max as u64,
            key: None,
        },
        error => error,
    })
}
