//! What a start opens for what outlives a call: the store, and the audit with its keys.

use std::path::Path;
use std::time::Duration;

use tokio::task::JoinSet;
use zeph_config::{Config, StoreLocation, StoreServer};
use zeph_egress::Egress;
use zeph_store::{
    AuditKeyFolder, AuditKeySource, BegunChain, Keyring, Location, OpenedStore, Retention,
    ServerUrl, Store, StoreError, StoreOpening, StoreOptions, WhenDamaged, host_id,
};

use super::{begin_checkpoints, user_of_tools};
use crate::audit::{Audit, AuditPlace};
use crate::clock::now_ms;
use crate::heartbeat;
use crate::host::{StartError, StartOptions};
use crate::known_secrets;

/// How long an operation waits for another process that holds the store.
const STORE_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens the audit, says that this host runs, and begins to take checkpoints; with what the operator should know.
pub(crate) async fn begin_records(
    config: &Config,
    options: &StartOptions,
    (store, egress): (&Store, &Egress),
    tasks: &mut JoinSet<()>,
) -> Result<(Audit, Vec<String>), StartError> {
    // First: until it is heard, another host may take it for gone and remove its records.
    if !options.only_explains {
        let begun = heartbeat::begin(config, store, tasks).await;
        begun.map_err(StartError::Store)?;
    }
    let (audit, begun) = begin_to_record(config, store, options.only_explains).await?;
    let (keys, notices) = begun.map(|begun| (begun.keys, begun.notices)).unzip();
    let records = (&audit, keys);
    let checkpoints = begin_checkpoints(config, records, egress, (tasks, options.is_part));
    let notices = notices.into_iter().flatten();
    Ok((audit, notices.chain(checkpoints).collect()))
}

/// Opens the audit and lets the store sweep itself; for a host that only explains neither.
async fn begin_to_record(
    config: &Config,
    store: &Store,
    only_explains: bool,
) -> Result<(Audit, Option<BegunChain>), StartError> {
    if only_explains {
        return Ok((Audit::off(store.clone()), None));
    }
    let begun = match config.audit.enabled {
        true => {
            let begun = store.begin_chain(&audit_keys(config), now_ms()).await;
            Some(begun.map_err(StartError::Store)?)
        }
        false => {
            begin_to_forget(config, store).await;
            None
        }
    };
    let retained = store.retain(retention(config), now_ms).await;
    retained.map_err(StartError::Store)?;
    let scope = config.rules.policy.scope.as_ref();
    let run_as_user = scope.and_then(|scope| scope.run_as_user.clone());
    let place = AuditPlace {
        awaits_ends: config.serve.replica.is_some(),
        directory: config.file.roots.first().map(|root| root.path.clone()),
        scope: run_as_user
            .as_ref()
            .map(|user| format!("run_as_user={user}")),
        user: config
            .audit
            .enabled
            .then(|| user_of_tools(config))
            .flatten(),
    };
    let keys = begun.as_ref().map(|begun| &begun.keys);
    let audit = Audit::open(&config.audit, (store.clone(), keys), place);
    Ok((audit.map_err(StartError::Store)?, begun))
}

/// Has what was recorded while calls were still recorded go in its time: a chained row goes only where the chain can say so.
async fn begin_to_forget(config: &Config, store: &Store) {
    let begun = match store.chain_key().await {
        Ok(Some(_)) => store
            .begin_chain(&audit_keys(config), now_ms())
            .await
            .map(drop),
        Ok(None) => return,
        Err(error) => Err(error),
    };
    // No call depends on it.
    if let Err(error) = begun {
        let error: &dyn std::error::Error = &error;
        tracing::warn!(error, "earlier records of calls are kept beyond their time");
    }
}

/// Where the keys of the audit are.
fn audit_keys(config: &Config) -> AuditKeySource {
    match audit_key_folder(config) {
        Some(folder) => AuditKeySource::Folder(folder),
        None => AuditKeySource::Process,
    }
}

/// The folder with the keys of the audit; none when nothing is kept.
pub(crate) fn audit_key_folder(config: &Config) -> Option<AuditKeyFolder> {
    let folder = AuditKeyFolder::new(config.audit.keys.as_ref()?);
    Some(match config.uses_keyring {
        true => folder.with_keyring(Keyring::at(zeph_config::session_bus())),
        false => folder,
    })
}

/// What the store keeps, and for how long.
fn retention(config: &Config) -> Retention {
    Retention {
        outputs: config.overflow.retention,
        conversations: config.agent.retention,
        audit: config.audit.retention,
        audit_rows_max: config.audit.rows_max,
    }
}

/// Opens the store where the configuration says, to look at it or to change a few rows: a damaged one stays as it is.
pub(crate) fn open_store(config: &Config) -> Result<OpenedStore, StartError> {
    let (location, options) = place_of_store(config)?;
    Store::open(location, options).map_err(StartError::Store)
}

/// Opens it for who only looks at what is in it: where nothing can be written, it is only read.
pub(crate) fn open_store_to_look(config: &Config) -> Result<OpenedStore, StartError> {
    let (location, options) = place_of_store(config)?;
    Store::open_to_look(location, options).map_err(StartError::Store)
}

/// Begins to open it for a host. Only for one that makes calls a damaged file is set aside: who only looks must not rename anything.
pub(crate) fn begin_to_open_store(
    config: &Config,
    start: &StartOptions,
) -> Result<StoreOpening, StartError> {
    let (location, options) = place_of_store(config)?;
    // A call is recorded, also one that only looks.
    let makes_no_call = start.only_looks && start.expected_tool.is_none();
    let opening = match start.only_explains || makes_no_call {
        true => Store::begin_to_look(location, options),
        false => {
            let when_damaged = match start.only_looks {
                true => WhenDamaged::Refuse,
                false => WhenDamaged::SetAside,
            };
            Store::begin_to_open(location, options, when_damaged)
        }
    };
    opening.map_err(StartError::Store)
}

/// Checks every page of the store, where it is a file.
pub(crate) fn check_store(config: &Config) -> Result<(), StartError> {
    let (location, options) = place_of_store(config)?;
    Store::check(&location, &options).map_err(StartError::Store)
}

/// Where the store is, and how it is opened.
///
/// Errors: the URL of a server cannot be used, or its password cannot be had.
pub(crate) fn place_of_store(config: &Config) -> Result<(Location, StoreOptions), StartError> {
    let location = match &config.store {
        StoreLocation::File(path) => Location::File(path.clone()),
        StoreLocation::Memory => Location::Memory,
        StoreLocation::Server(server) => Location::Server(Box::new(server_url(config, server)?)),
    };
    let options = StoreOptions {
        at_ms: now_ms(),
        busy_timeout: STORE_BUSY_TIMEOUT,
    };
    Ok((location, options))
}

/// The URL of the server, with its password and the identity of this host.
fn server_url(config: &Config, server: &StoreServer) -> Result<ServerUrl, StartError> {
    let mut url: ServerUrl = server.url.text().parse().map_err(StartError::Store)?;
    if let Some(name) = &server.password_secret {
        let password = known_secrets::stored(config, name)
            .map_err(|problem| StartError::Store(StoreError::BadUrl { problem }))?;
        url = url.with_password(&password);
    }
    Ok(url.of_host(host_of(server.folder.as_deref())?))
}

/// The identity of the host whose own things are in `folder`. Without a place for it, a host is another with every start.
pub(crate) fn host_of(folder: Option<&Path>) -> Result<String, StartError> {
    match folder {
        Some(folder) => host_id(folder).map_err(StartError::Store),
        None => Ok(uuid::Uuid::new_v4().to_string()),
    }
}
