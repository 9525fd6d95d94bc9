//! What a guest tried in vain during one call.
//!
//! The facts behind "grant it": a tool that fails may have failed because of them, and only the pipeline can tell. It decides
//! nothing, and holds little however often a guest tries.

use zeph_core::capability::{Capability, FsRights};
use zeph_core::network::HostAccess;

/// Most distinct things that are kept of one call. A manifest wants a handful; a guest that tries more is probing.
pub const REFUSED_MAX: usize = 16;

/// Most characters of an authority that are kept: the longest name of a host, and a port.
const AUTHORITY_CHARS_MAX: usize = 253 + 6;

/// An operation that was refused because a grant is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingGrant {
    /// An operation on files, in a tree that was granted without the right it needs, or wanted and not granted.
    Directory {
        /// The absolute path of that tree: the innermost one the plugin wants those rights on, else the granted one.
        path: String,
        /// The rights that were missing there, of all refused operations together.
        rights: FsRights,
    },
    /// An HTTP request to a host that was not granted, or by a method that was not.
    Host {
        /// The grant that would help.
        access: HostAccess,
        /// Why that grant alone would not do, in a clause, with what would help besides.
        closed: Option<String>,
    },
    /// An HTTP request that no grant would help.
    Request {
        /// What forbids it and what would help, in one line without advice about grants.
        reason: String,
    },
    /// A socket or the look-up of a name.
    Network,
    /// A program, with its arguments.
    Program {
        /// Its name and its arguments, as the guest gave them.
        line: Vec<String>,
    },
    /// An embedder, or a tool of an MCP server.
    Service(Capability),
    /// A change of what programs obey without asking, for which the call had no leave.
    Obeyed {
        /// The real path of the object.
        path: String,
        /// The name on the list (`zeph_core::obeyed`).
        name: &'static str,
    },
}

/// What was refused so far, merged.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Vec<MissingGrant>);

impl Refusals {
    /// Notes that `rights` were missing in the tree `path`.
    pub(crate) fn directory(&mut self, path: String, rights: FsRights) {
        let known = self.0.iter_mut().find_map(|refused| match refused {
            MissingGrant::Directory { path: at, rights } if *at == path => Some(rights),
            _ => None,
        });
        match known {
            Some(known) => *known = known.union(rights),
            None => self.add(MissingGrant::Directory { path, rights }),
        }
    }

    /// Notes a request to `authority` where no request can be made.
    pub(crate) fn no_exit(&mut self, authority: &str) {
        let kept = authority.chars().take(AUTHORITY_CHARS_MAX);
        let authority = kept.map(|letter| if is_plain(letter) { letter } else { '?' });
        let authority: String = authority.collect();
        self.noted(MissingGrant::Request {
            reason: format!("may not reach `{authority}`: no request can be made here"),
        });
    }

    /// Notes a refusal once.
    pub(crate) fn noted(&mut self, refused: MissingGrant) {
        if !self.0.contains(&refused) {
            self.add(refused);
        }
    }

    /// Notes a try to reach the network without HTTP.
    pub(crate) fn network(&mut self) {
        self.noted(MissingGrant::Network);
    }

    /// Notes a program that was to run.
    pub(crate) fn program(&mut self, line: Vec<String>) {
        let refused = MissingGrant::Program { line };
        if !self.0.contains(&refused) {
            self.add(refused);
        }
    }

    /// Notes a try to change what programs obey.
    pub(crate) fn obeyed(&mut self, path: String, name: &'static str) {
        self.noted(MissingGrant::Obeyed { path, name });
    }

    /// Everything noted.
    pub(crate) fn into_list(self) -> Vec<MissingGrant> {
        self.0
    }

    fn add(&mut self, refused: MissingGrant) {
        if self.0.len() < REFUSED_MAX {
            self.0.push(refused);
        }
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | ':' | '[' | ']' | '*')
}
