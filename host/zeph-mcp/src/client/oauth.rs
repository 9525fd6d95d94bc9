//! Login to remote servers: OAuth 2.1 as MCP profiles it.
//!
//! In reading order: which hosts a login may reach (`hosts`), what the server asks for (`challenge`), how requests are sent
//! (`transport`), the trip through the browser (`login`, with the `redirect` that ends it and the `callback` that waits for it), what remains of it (`tokens`), and the token of
//! each request, which is renewed before it expires (`access`). Discovery, PKCE, registration and the token requests are rmcp's; every
//! request goes through `zeph-egress`.

mod access;
mod callback;
mod challenge;
mod error;
mod hosts;
mod login;
mod redirect;
mod tokens;
mod transport;

pub use self::access::{Access, LoginStore};
pub use self::callback::CallbackListener;
pub use self::challenge::challenge;
pub use self::error::LoginError;
pub use self::hosts::RemoteServer;
pub use self::login::{ClientIdentity, PendingLogin};
pub use self::redirect::Redirect;
pub use self::tokens::{Bearer, LoginTokens};

#[cfg(test)]
mod tests;
