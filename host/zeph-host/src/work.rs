//! What runs a call: one variant for each kind of backend, each with all that the backend works with.

use zeph_core::policy::{AuthorizedCall, Routed, Seal};
use zeph_engine::GuestWork;
use zeph_shell::shell::ShellWork;

use crate::builtin::BuiltinWork;
use crate::executor::backend::DelegatedWork;
use crate::servers::ServerWork;

/// What a call is done with. It is made when the call is resolved, and sealed with it when the call is authorised.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// A component and what it may touch.
    Guest(GuestWork),
    /// The options of a command.
    Shell(ShellWork),
    /// The arguments of a tool of the host.
    Builtin(BuiltinWork),
    /// A tool of an MCP server and its arguments.
    Mcp(ServerWork),
    /// A tool of an executor that is part of the program, and its arguments.
    Delegated(DelegatedWork),
}

/// An authorised call on its way to the backend that runs it.
#[derive(Debug)]
pub(crate) enum BackendCall {
    Guest(AuthorizedCall<GuestWork>),
    Shell(AuthorizedCall<ShellWork>),
    Builtin(AuthorizedCall<BuiltinWork>),
    Mcp(AuthorizedCall<ServerWork>),
    Delegated(AuthorizedCall<DelegatedWork>),
}

impl Routed for Work {
    type Calls = BackendCall;

    fn route(self, seal: Box<Seal>) -> BackendCall {
        match self {
            Self::Guest(work) => BackendCall::Guest(seal.over(work)),
            Self::Shell(work) => BackendCall::Shell(seal.over(work)),
            Self::Builtin(work) => BackendCall::Builtin(seal.over(work)),
            Self::Mcp(work) => BackendCall::Mcp(seal.over(work)),
            Self::Delegated(work) => BackendCall::Delegated(seal.over(work)),
        }
    }
}
