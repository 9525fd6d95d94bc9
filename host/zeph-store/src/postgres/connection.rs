//! A connection that its thread owns: made when it is needed, made anew when it was lost, never waited for without a bound.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::config::{Config, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, NoTls, Notification, SimpleQueryMessage, Statement};
use uuid::Uuid;

use super::fault::{Away, Site, words_of};
use super::tls::Connector;
use super::url::{Security, ServerUrl};
use crate::error::StoreError;
use crate::open::StoreOptions;
use crate::operations::{OperationFault, Outcome};

mod statements;

/// How long making a connection to one server may take, when the URL does not say.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a statement may run that reads, or changes the schema. Reading a year of audit takes less.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a statement that writes may run, as a multiple of how long it may wait for others.
const WRITE_TIMEOUTS: u32 = 3;

/// How much longer the answer is waited for: the server may be gone without a word.
const ANSWER_GRACE: Duration = Duration::from_secs(2);

/// How long the server keeps what a host holds in a transaction that it does not go on with.
const IDLE_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(60);

/// What a server calls the encoding of a database, when a connection begins.
const ENCODING: &str = "server_encoding";

/// What begins a transaction. Whatever the default of the server is: what reads after it waited for a lock has to see what others did.
pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// What a session is for, and so what it is set to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Purpose {
    /// How long a statement may run.
    pub(super) patience: Duration,
    /// How statements are planned; empty to leave it to the server.
    plans: &'static str,
}

impl Purpose {
    /// Reading, and changing the schema.
    pub(super) const fn reading(patience: Duration) -> Self {
        Self {
            patience,
            plans: "",
        }
    }
}

/// How statements that write are planned. They touch a few rows each, found by an index, and are planned once for a session: as long as a
/// table is small, reading all of it would look better, and be chosen for good. Left to the server, those of a few calls would be planned
/// anew each time, which takes longer than running them. Nothing a store asks is worth compiling.
const WRITER_PLANS: &str = "-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off \
    -c plan_cache_mode=force_generic_plan";

/// How long no new connection is tried after one could not be made: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// How long no new connection is tried after the server had none left: where it is needed, and where others can do the work.
const NEEDED_PAUSE: Duration = Duration::from_millis(100);
pub(super) const FULL_PAUSE: Duration = Duration::from_secs(2);

/// Where all connections of a store lead.
#[derive(Debug)]
pub(crate) struct Server {
    config: Config,
    security: Security,
    connector: Connector,
    pub(crate) site: Site,
    /// The host this store belongs to.
    pub(crate) host: String,
    /// Whether the end of a call may be committed before it is on the server's disk. Who says in the URL what a commit is, decides.
    pub(crate) may_lag: bool,
    /// When a connection was made last: what one thread has found out, the others need not wait for.
    reached_at: Mutex<Option<Instant>>,
}

/// One connection of one thread.
pub(crate) struct Connection {
    pub(crate) server: Arc<Server>,
    runtime: Runtime,
    purpose: Purpose,
    session: RefCell<Option<Rc<Session>>>,
    /// Whether the session has not been reported yet.
    is_new: Cell<bool>,
    /// Since when and for how long no connection is tried, and what was said.
    rest: RefCell<Option<(Instant, Duration, Away)>>,
    /// Since when a reader goes without a connection.
    full_since: Cell<Option<Instant>>,
}

/// What other hosts announce.
#[derive(Debug)]
pub(crate) enum Heard {
    Said(Notification),
    /// More than could wait: some of it was left out.
    TooMuch,
}

/// What lasts as long as a connection does.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// The encoding of the database, if the server says so.
    pub(super) encoding: Option<String>,
    /// Drives the connection; ends with it.
    _driver: JoinSet<()>,
    /// Whether the server process at the other end stays the same: it keeps what was prepared then.
    pub(crate) is_direct: bool,
    statements: RefCell<HashMap<&'static str, Statement>>,
    is_lost: Cell<bool>,
}

impl Server {
    /// Errors: [`StoreError::BadUrl`] when the certificates it names cannot be read.
    pub(crate) fn new(url: ServerUrl, options: &StoreOptions) -> Result<Arc<Self>, StoreError> {
        let site = Site {
            server: url.to_string(),
            busy_timeout: options.busy_timeout,
        };
        let connector = Connector::new(&url.security)?;
        let mut config = url.config;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("zeph-host");
        }
        // A network that swallows packets is noticed by this, too.
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(STATEMENT_TIMEOUT);
        }
        config.keepalives_idle(Duration::from_secs(30));
        let options = config.get_options().unwrap_or_default();
        let may_lag = !options.contains("synchronous_commit");
        Ok(Arc::new(Self {
            config,
            security: url.security,
            connector,
            site,
            host: url.host,
            may_lag,
            reached_at: Mutex::default(),
        }))
    }

    /// Makes a connection, within a bounded time.
    pub(super) async fn connect(
        &self,
        purpose: Purpose,
        heard: Option<mpsc::Sender<Heard>>,
    ) -> Result<Session, Away> {
        let n_hosts = self.config.get_hosts().len().max(1);
        let n_hosts = u32::try_from(n_hosts).unwrap_or(1);
        let each = self.config.get_connect_timeout().copied();
        // Twice: making the connection, and saying who one is.
        let limit = 2 * each.unwrap_or(CONNECT_TIMEOUT) * n_hosts;
        let connected = timeout(limit, self.connect_either_way(purpose, heard)).await;
        match connected {
            Ok(session) => session.map_err(|error| Away::of_connect(&error)),
            Err(_) => Err(Away::new(format!("no answer within {} s", limit.as_secs()))),
        }
    }

    /// To the server itself when it takes settings of the session; else to a pooler, which hands each transaction to another process.
    async fn connect_either_way(
        &self,
        Purpose { patience, plans }: Purpose,
        heard: Option<mpsc::Sender<Heard>>,
    ) -> Result<Session, tokio_postgres::Error> {
        let mark = Uuid::new_v4().simple().to_string();
        let own = self.config.get_options().unwrap_or_default();
        let bounds = self.settings(patience);
        // What the URL says counts more than plans.
        let settings = format!("{plans} {own} -c zeph.session={mark} {bounds}");
        let mut config = self.config.clone();
        config.options(settings.trim());
        let connected = self.connect_with(&config, heard).await;
        let refuses_settings =
            |error: &tokio_postgres::Error| error.code() == Some(&SqlState::PROTOCOL_VIOLATION);
        match connected {
            Err(error) if refuses_settings(&error) => self.connect_with(&self.config, None).await,
            Err(error) => Err(error),
            Ok(mut session) => {
                session.is_direct = session.has_mark(&mark).await?;
                Ok(session)
            }
        }
    }

    fn reached(&self) {
        *self.lock() = Some(Instant::now());
    }

    fn was_reached_after(&self, moment: Instant) -> bool {
        self.lock().is_some_and(|reached| reached > moment)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        let locked = self.reached_at.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    fn settings(&self, patience: Duration) -> String {
        let busy = self.site.busy_timeout.as_millis();
        format!(
            "-c lock_timeout={busy} -c statement_timeout={} -c idle_in_transaction_session_timeout={}",
            patience.as_millis(),
            IDLE_TRANSACTION_TIMEOUT.as_millis()
        )
    }

    /// The settings for one transaction, where the session has none.
    fn local_settings(&self, patience: Duration) -> String {
        self.settings(patience).replace("-c ", "; SET LOCAL ")
    }

    async fn connect_with(
        &self,
        config: &Config,
        heard: Option<mpsc::Sender<Heard>>,
    ) -> Result<Session, tokio_postgres::Error> {
        let mut driver = JoinSet::new();
        let (client, encoding) = match self.security {
            Security::Plain => {
                let mut config = config.clone();
                config.ssl_mode(SslMode::Disable);
                let (client, connection) = config.connect(NoTls).await?;
                let encoding = connection.parameter(ENCODING).map(str::to_owned);
                driver.spawn(driven(connection, heard));
                (client, encoding)
            }
            Security::Tls { .. } => {
                let (client, connection) = config.connect(self.connector.clone()).await?;
                let encoding = connection.parameter(ENCODING).map(str::to_owned);
                driver.spawn(driven(connection, heard));
                (client, encoding)
            }
        };
        Ok(Session {
            client,
            encoding,
            _driver: driver,
            is_direct: false,
            statements: RefCell::default(),
            is_lost: Cell::new(false),
        })
    }
}

/// Drives a connection until it ends.
async fn driven<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    heard: Option<mpsc::Sender<Heard>>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match poll_fn(|cx| connection.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notification(said))) => tell(heard.as_ref(), said),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(%error, "a connection to the server of the store ended");
                return;
            }
            None => return,
        }
    }
}

fn tell(heard: Option<&mpsc::Sender<Heard>>, said: Notification) {
    let Some(heard) = heard else { return };
    // The last place is for this.
    let said = match heard.capacity() {
        0 => return,
        1 => Heard::TooMuch,
        _ => Heard::Said(said),
    };
    drop(heard.try_send(said));
}

impl Session {
    /// Whether the settings reached the process that answers.
    async fn has_mark(&self, mark: &str) -> Result<bool, tokio_postgres::Error> {
        let said = self.text_of("SELECT current_setting('zeph.session', true)");
        Ok(said.await? == mark)
    }

    /// The first value of the first row; empty when it is null.
    async fn text_of(&self, sql: &str) -> Result<String, tokio_postgres::Error> {
        let said = self.client.simple_query(sql).await?;
        let value = said.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        Ok(value.unwrap_or_default().to_owned())
    }

    /// The same within a bounded time, on a connection that is not of a store.
    pub(crate) async fn text(&self, sql: &str) -> Result<String, Away> {
        let said = timeout(ANSWER_GRACE, self.text_of(sql)).await;
        let said = said.map_err(|_| Away::new("no answer"))?;
        said.map_err(|error| Away::new(words_of(&error)))
    }

    /// Runs a statement that gives nothing.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), Away> {
        self.text(sql).await.map(drop)
    }
}

impl Connection {
    /// A connection that is made with its first use.
    ///
    /// Errors: the kernel has no room for what the thread waits with.
    pub(crate) fn new(server: Arc<Server>) -> Result<Self, StoreError> {
        Self::for_purpose(server, Purpose::reading(STATEMENT_TIMEOUT))
    }

    /// The same for statements that read a few rows and that calls wait for: a server that says nothing is not waited for much longer
    /// than others are.
    pub(crate) fn of_rights(server: Arc<Server>) -> Result<Self, StoreError> {
        let purpose = Purpose::reading(server.site.busy_timeout);
        Self::for_purpose(server, purpose)
    }

    /// The same for statements that write and that calls wait for.
    pub(crate) fn of_writer(server: Arc<Server>) -> Result<Self, StoreError> {
        let purpose = Purpose {
            patience: WRITE_TIMEOUTS * server.site.busy_timeout,
            plans: WRITER_PLANS,
        };
        Self::for_purpose(server, purpose)
    }

    fn for_purpose(server: Arc<Server>, purpose: Purpose) -> Result<Self, StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| server.site.away("open the store", error))?;
        Ok(Self {
            server,
            runtime,
            purpose,
            session: RefCell::new(None),
            is_new: Cell::new(false),
            rest: RefCell::new(None),
            full_since: Cell::new(None),
        })
    }

    /// Waits for anything, while the connection lives on.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Waits for an answer of the server, but not for ever: a server that says nothing is as good as gone.
    pub(crate) fn answered<T>(
        &self,
        session: &Session,
        future: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Outcome<T> {
        let limit = self.purpose.patience + ANSWER_GRACE;
        let Ok(answer) = self.block_on(async { timeout(limit, future).await }) else {
            session.is_lost.set(true);
            return Err(Away::new(format!("no answer within {} s", limit.as_secs())).into());
        };
        Ok(answer?)
    }

    /// The session; made when there is none. After a failure the next try comes after a pause, and until then everything fails at once.
    pub(crate) fn session(&self) -> Outcome<Rc<Session>> {
        if let Some(session) = self.session.borrow().as_ref().filter(|one| one.is_alive()) {
            return Ok(Rc::clone(session));
        }
        self.session.borrow_mut().take();
        if let Some(away) = self.resting() {
            return Err(away.into());
        }
        let session = self.connected().map_err(|away| self.rest_after(away))?;
        Ok(self.keep(session))
    }

    /// A server without a free connection is waited for as other hosts are: one of them may be about to end.
    fn connected(&self) -> Result<Session, Away> {
        let began = Instant::now();
        loop {
            let connected = self.block_on(self.server.connect(self.purpose, None));
            match connected {
                Err(away) if away.is_full() && began.elapsed() < self.server.site.busy_timeout => {
                    self.block_on(async { tokio::time::sleep(NEEDED_PAUSE).await });
                }
                connected => return connected,
            }
        }
    }

    /// Makes the session if there is none and the server has a connection left; false when it has none, or had none a moment ago. Whatever
    /// else is wrong, the next use tells.
    pub(super) fn is_let_in(&self) -> bool {
        let is_alive = |one: &Rc<Session>| one.is_alive();
        let has_session = self.session.borrow().as_ref().is_some_and(is_alive);
        if has_session || self.resting().is_some() {
            return true;
        }
        let full_since = self.full_since.get();
        if full_since.is_some_and(|since| since.elapsed() < FULL_PAUSE) {
            return false;
        }
        match self.block_on(self.server.connect(self.purpose, None)) {
            Ok(session) => {
                self.keep(session);
                true
            }
            Err(away) if away.is_full() => {
                tracing::debug!(%away, "a reader has no connection: others do its work");
                self.full_since.set(Some(Instant::now()));
                false
            }
            Err(away) => {
                drop(self.rest_after(away));
                true
            }
        }
    }

    /// Why no connection is tried for the moment.
    fn resting(&self) -> Option<Away> {
        let rest = self.rest.borrow();
        let (since, pause, away) = rest.as_ref()?;
        let is_over = since.elapsed() >= *pause || self.server.was_reached_after(*since);
        (!is_over).then(|| away.clone())
    }

    fn keep(&self, session: Session) -> Rc<Session> {
        self.server.reached();
        let session = Rc::new(session);
        self.rest.borrow_mut().take();
        self.is_new.set(true);
        *self.session.borrow_mut() = Some(Rc::clone(&session));
        session
    }

    /// Whether the session was made since this was last asked.
    pub(crate) fn is_made_anew(&self) -> bool {
        self.is_new.replace(false)
    }

    fn rest_after(&self, away: Away) -> OperationFault {
        let mut rest = self.rest.borrow_mut();
        let doubled = |(_, pause, _): &(Instant, Duration, Away)| (2 * *pause).min(PAUSE.1);
        let pause = rest.as_ref().map_or(PAUSE.0, doubled);
        *rest = Some((Instant::now(), pause, away.clone()));
        away.into()
    }

    /// What begins a transaction.
    pub(crate) fn begin(&self, session: &Session) -> String {
        match session.is_direct {
            true => BEGIN.to_owned(),
            false => format!(
                "{BEGIN}{}",
                self.server.local_settings(self.purpose.patience)
            ),
        }
    }

    /// Drops the session: the next use makes another.
    pub(crate) fn drop_session(&self) {
        self.session.borrow_mut().take();
    }
}

impl Session {
    fn is_alive(&self) -> bool {
        !self.is_lost.get() && !self.client.is_closed()
    }
}
