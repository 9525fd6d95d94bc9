//! The variables of a command that has a way out to some hosts: the proxy it is reached by, and the certificates to trust.

/// The variables that name a proxy, as the tools that know one look them up. Those of Yarn are its own; what else has a name of its own
/// (Cargo, npm, pip) looks at these too.
const PROXIES: [&str; 8] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "YARN_HTTPS_PROXY",
    "YARN_HTTP_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
];

/// What else is set for a way out: servers of the command's own are reached without it, and Node.js is to use it too.
const WITH_OUTLET: [(&str, &str); 3] = [
    ("NODE_USE_ENV_PROXY", "1"),
    ("NO_PROXY", NOT_PROXIED),
    ("no_proxy", NOT_PROXIED),
];

const NOT_PROXIED: &str = "localhost,127.0.0.1,::1";

/// The variables by which tools find the certificates they trust.
#[cfg(target_os = "linux")]
const OF_CERTIFICATES: [&str; 13] = [
    "AWS_CA_BUNDLE",
    "BUNDLE_SSL_CA_CERT",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "DENO_CERT",
    "GIT_SSL_CAINFO",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "YARN_HTTPS_CA_FILE_PATH",
    "npm_config_cafile",
];

/// What is set whatever the port and the password are.
pub(super) fn settings() -> impl Iterator<Item = (String, String)> {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    WITH_OUTLET.map(owned).into_iter()
}

/// The variables by which tools trust the certificates in `file`.
#[cfg(target_os = "linux")]
pub(crate) fn of_certificates(file: &str) -> impl Iterator<Item = (String, String)> {
    OF_CERTIFICATES
        .map(|name| (name.to_owned(), file.to_owned()))
        .into_iter()
}

/// The variables that name the way out of a command, whose password is `token`: what stands before the number of its port, and what
/// stands behind it.
///
/// All name an HTTP proxy, which every tool with proxies knows. The same port speaks SOCKS 5 too.
pub(crate) fn of_outlet(token: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let line = |name: &&str| {
        let before = format!("{name}=http://zeph:{token}@127.0.0.1:");
        (before.into_bytes(), Vec::new())
    };
    PROXIES.iter().map(line).collect()
}
