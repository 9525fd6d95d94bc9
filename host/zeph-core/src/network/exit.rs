//! The hosts that commands reach, as the operator names them.

use super::{HostPattern, Methods};
use crate::secret::SecretUse;

/// One host, or one wildcard, that commands may reach (`tools.sandbox.allow_hosts`), and what may pass there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitHost {
    /// Which hosts, by name.
    pub pattern: HostPattern,
    /// What may pass.
    pub passage: Passage,
}

/// What may pass between a command and a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage {
    /// TLS to the server of that name, and plain HTTP where the port is 80.
    Tls,
    /// Anything (`raw = true`).
    Raw,
    /// Requests of HTTP, which the host reads: TLS ends there (`tls = "inspect"`). Plain requests, where the port is 80, are held to the
    /// same methods and paths.
    Inspected(Inspection),
}

/// Which requests pass where they are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// The methods; `None` is every method.
    pub methods: Option<Methods>,
    /// The paths, each exactly or as the beginning of others when it ends in `*`; `None` is every path.
    pub paths: Option<Vec<String>>,
    /// The secrets that are added to them; the command sees none.
    pub secrets: Vec<SecretUse>,
    /// The names of secrets that commands have placeholders of, which become the values in the headers of requests.
    pub placeholders: Vec<String>,
}

impl Inspection {
    /// Whether a request may pass. Where paths are named, one that a server could read in two ways may not.
    pub fn allows(&self, method: &str, path: &str) -> bool {
        let by_method = self.methods.as_ref().is_none_or(|all| all.allows(method));
        let by_path = |all: &Vec<String>| {
            is_plain(path)
                && all.iter().any(|one| match one.strip_suffix('*') {
                    Some(beginning) => path.starts_with(beginning),
                    None => path == one,
                })
        };
        by_method && self.paths.as_ref().is_none_or(by_path)
    }
}

/// Whether a path means the same to everybody: no step upwards, nothing that stands for a separator.
fn is_plain(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let hides = ["%2e", "%2f", "%5c", "%00", "\\", "//", ";"];
    let is_step = |part: &str| part == "." || part == "..";
    path.starts_with('/')
        && !hides.iter().any(|hidden| lower.contains(hidden))
        && !path.split('/').any(is_step)
}

#[cfg(test)]
mod tests {
    use super::Inspection;

    #[test]
    fn paths_are_matched_as_a_server_reads_them() {
        let inspection = Inspection {
            methods: Some("GET+POST".parse().unwrap()),
            paths: Some(vec!["/v1/*".to_owned(), "/health".to_owned()]),
            ..Inspection::default()
        };
        for (method, path, expect) in [
            ("GET", "/v1/", true),
            ("HEAD", "/v1/a/b", true),
            ("GET", "/health", true),
            ("GET", "/health/x", false),
            ("GET", "/v1", false),
            ("GET", "/v2/", false),
            ("DELETE", "/v1/a", false),
            ("GET", "/v1/../v2", false),
            ("GET", "/v1/%2e%2E/v2", false),
            ("GET", "/v1/..%2fv2", false),
            ("GET", "/v1//..", false),
            ("GET", "/v1/\\..\\v2", false),
            ("GET", "/v1/;/../v2", false),
            ("GET", "*", false),
        ] {
            assert_eq!(inspection.allows(method, path), expect, "{method} {path}");
        }
        assert!(Inspection::default().allows("PURGE", "/a/../b"));
    }
}
