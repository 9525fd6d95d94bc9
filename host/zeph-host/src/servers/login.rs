//! Logins to remote servers: where their tokens are kept, and the trip through the browser.
//!
//! Only `zeph-host mcp login` makes that trip. A call that needs a login fails, and its message names the command.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use url::Url;
use zeph_config::{Config, HttpServer};
use zeph_core::execution::SecretValue;
use zeph_core::id::ServerName;
use zeph_egress::{Egress, HostAccount, Pending};
use zeph_mcp::client::oauth::{
    Access, CallbackListener, ClientIdentity, LoginError, LoginStore, LoginTokens, PendingLogin,
    Redirect, RemoteServer, challenge,
};
use zeph_shell::plain::{self, Streams};
use zeph_store::{LoginFolder, SecretsError, StoredLogin};

use crate::clock::now_ms;
use crate::known_secrets::KnownSecrets;

/// How long a person may take in the browser.
const BROWSER_TIME_MAX: Duration = Duration::from_secs(300);

/// How long a renewal by another process is waited for: longer than its requests may take.
const RENEWAL_TIME_MAX: Duration = Duration::from_secs(150);

/// Pause between two tries for the lock on renewals.
const PAUSE: Duration = Duration::from_millis(20);

/// The tokens of all logins, in a file.
#[derive(Debug)]
pub(crate) struct Logins {
    folder: LoginFolder,
    secrets: Arc<KnownSecrets>,
}

impl Logins {
    /// The logins of this host; `None` when its store is in memory.
    pub(crate) fn new(config: &Config, secrets: &Arc<KnownSecrets>) -> Option<Self> {
        Some(Self {
            folder: LoginFolder::new(config.store.secrets()?),
            secrets: Arc::clone(secrets),
        })
    }

    /// Forgets the login to `server`, after a renewal that is being made. Returns whether there was one.
    ///
    /// Errors: `Store`.
    pub(crate) async fn forget(&self, server: &ServerName) -> Result<bool, LoginError> {
        let _only_one = self.hold(server.as_str()).await?;
        let removed = self.folder.remove(server.as_str());
        removed.map(|removed| removed.is_some()).map_err(failed)
    }

    fn learn(&self, values: impl IntoIterator<Item = String>) {
        let secrets = values.into_iter().filter(|value| !value.is_empty());
        let secrets = secrets.map(|value| SecretValue {
            name: "login".to_owned(),
            value,
        });
        self.secrets.learn(secrets.collect());
    }
}

impl LoginStore for Logins {
    fn load(&self, name: &str) -> Result<Option<LoginTokens>, LoginError> {
        let mut logins = self.folder.read().map_err(failed)?;
        let Some(login) = logins.remove(name) else {
            return Ok(None);
        };
        // What the parser says may quote the content.
        let tokens = serde_json::from_str(&login.record).map_err(|_| {
            LoginError::Store(format!(
                "the login of `{name}` makes no sense; log in again"
            ))
        });
        tokens.map(Some)
    }

    fn save(&self, name: &str, tokens: &LoginTokens) -> Result<(), LoginError> {
        let secrets: Vec<String> = tokens.secrets().into_iter().map(str::to_owned).collect();
        self.learn(secrets.clone());
        let record = serde_json::to_string(tokens);
        let record = record.map_err(|error| LoginError::Store(error.to_string()))?;
        let login = StoredLogin { record, secrets };
        self.folder.set(name, login).map_err(failed)
    }

    fn hold<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Box<dyn Send>, LoginError>> {
        let holding = async move {
            loop {
                if let Some(hold) = self.folder.try_hold(name).map_err(failed)? {
                    return Ok(Box::new(hold) as Box<dyn Send>);
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        Box::pin(async move {
            let held = tokio::time::timeout(RENEWAL_TIME_MAX, holding).await;
            held.unwrap_or_else(|_| {
                let problem = "another process has been renewing the tokens for too long";
                Err(LoginError::Store(problem.to_owned()))
            })
        })
    }

    fn now_s(&self) -> u64 {
        u64::try_from(now_ms() / 1_000).unwrap_or_default()
    }
}

/// The remote server `name` as far as logins are concerned.
///
/// Errors: `Unsupported` for an address that is none; the configuration takes none.
pub(crate) fn remote(name: &ServerName, server: &HttpServer) -> Result<RemoteServer, LoginError> {
    let url = Url::parse(&server.url);
    let url = url.map_err(|error| LoginError::Unsupported(error.to_string()))?;
    Ok(RemoteServer::new(
        name.as_str(),
        url,
        server.login_hosts.clone(),
    ))
}

/// What requests to a remote server carry, if its operator sets no `authorization` header.
pub(crate) fn access(
    config: &Config,
    secrets: &Arc<KnownSecrets>,
    egress: &Egress,
    name: &ServerName,
    (server, account): (&HttpServer, &HostAccount),
) -> Option<Arc<Access>> {
    if server.headers.contains_key("authorization") {
        return None;
    }
    let logins = Arc::new(Logins::new(config, secrets)?);
    let server = remote(name, server).ok()?.counted_in(account.clone());
    Some(Arc::new(Access::new(server, egress.clone(), logins)))
}

/// How the person gets to the browser and back.
pub(crate) trait Browser {
    /// Shows the URL that is to be opened, and where it leads.
    fn show(&self, url: &Url);

    /// Has the URL that the browser was sent back to, typed by the person; `None` at the end of the input.
    ///
    /// Errors: one line about the input.
    fn typed(&self) -> Result<Option<String>, String>;
}

/// How a login goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trip {
    /// A browser of this machine is opened, and sent back to a port of this machine.
    Browser,
    /// The person opens the URL elsewhere, and types the one that the browser ends at.
    Elsewhere,
}

/// Logs in to `server`, and keeps the tokens.
///
/// Errors: [`LoginError`]. Limits: 5 minutes in the browser.
pub(crate) async fn log_in(
    logins: &Logins,
    egress: &Egress,
    server: &RemoteServer,
    identity: &ClientIdentity,
    trip: Trip,
    browser: &dyn Browser,
) -> Result<(), LoginError> {
    let listener = CallbackListener::bind().await?;
    let server = server.clone();
    let asked = challenge(&server, egress).await;
    let server = server.challenged(asked);
    let identity = ClientIdentity {
        scopes: wanted(logins, &server, &identity.scopes),
        ..identity.clone()
    };
    let login = PendingLogin::begin(&server, egress, listener.url(), &identity).await?;
    logins.learn(identity.client_secret.clone());
    browser.show(login.url());
    let redirect = match trip {
        Trip::Browser => {
            open(login.url());
            listener.wait(login.state(), BROWSER_TIME_MAX).await?
        }
        Trip::Elsewhere => typed(&login, browser)?,
    };
    // It is good for tokens until it is used, and libraries log it.
    logins.learn([redirect.secret().to_owned()]);
    let tokens = login.complete(redirect, logins.now_s()).await?;
    let _only_one = logins.hold(server.name()).await?;
    logins.save(server.name(), &tokens)
}

/// The scopes to ask for: to those that were chosen come those of the last login, which calls may need. None when none were chosen.
fn wanted(logins: &Logins, server: &RemoteServer, chosen: &[String]) -> Vec<String> {
    let mut wanted = chosen.to_vec();
    if !wanted.is_empty()
        && let Ok(Some(last)) = logins.load(server.name())
        && last.url == server.url().as_str()
    {
        wanted.extend(last.scopes.into_iter().filter(|it| !chosen.contains(it)));
    }
    wanted
}

fn typed(login: &PendingLogin, browser: &dyn Browser) -> Result<Redirect, LoginError> {
    let typed = browser.typed().map_err(LoginError::Network)?;
    let typed = typed.ok_or(LoginError::Redirect("none was given"))?;
    login.read(&typed)
}

/// The URL was checked to be one of HTTP. Where there is no browser, the person has the URL on the screen.
fn open(url: &Url) {
    let program = match cfg!(target_os = "macos") {
        true => "open",
        false => "xdg-open",
    };
    let words = [OsString::from(program), OsString::from(url.as_str())];
    if let Err(error) = plain::start(&words, Streams::Own) {
        tracing::info!(%error, "no browser was opened");
    }
}

fn failed(error: SecretsError) -> LoginError {
    let hint = error.hint().map(|hint| format!("; {hint}"));
    LoginError::Store(format!("{error}{}", hint.unwrap_or_default()))
}
