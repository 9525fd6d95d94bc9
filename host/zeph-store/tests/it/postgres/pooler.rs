//! PgBouncer in transaction mode: every transaction may reach another process of the server.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use zeph_core::id::ConversationId;
use zeph_store::{Change, Store};

use crate::server::{Server, USER, as_user, free_port, run};
use crate::setup::{NOW_MS, open_url};

/// A pooler between a store and a server; ends with this.
struct Pooler {
    process: Child,
    port: u16,
}

impl Pooler {
    /// None, with a printed reason, where it is not installed.
    fn start(server: &Server, database: &str, folder: &Path, settings: &str) -> Option<Self> {
        let Some(program) = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"]
            .map(Path::new)
            .into_iter()
            .find(|program| program.exists())
        else {
            drop(writeln!(
                std::io::stderr(),
                "skipped: PgBouncer is not installed"
            ));
            return None;
        };
        let port = free_port();
        let text = format!(
            "[databases]\n{database} = host=127.0.0.1 port={} user={USER} dbname={database}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             pool_mode = transaction\nauth_type = any\nauth_file = /dev/null\ndefault_pool_size = 3\n{settings}\n",
            server.port
        );
        let file = folder.join("pgbouncer.ini");
        fs::write(&file, text).unwrap();
        run(std::process::Command::new("chmod")
            .arg("-R")
            .arg("a+rX")
            .arg(folder));
        let process = as_user(program.to_owned())
            .arg("-q")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pooler = Self { process, port };
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(pooler)
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

async fn use_it(store: Store, n: usize) {
    for idx in 0..n {
        let conversation = ConversationId::new();
        let content = vec![b'x'; idx * 50_000];
        let id = store
            .put_overflow(conversation, content.clone(), NOW_MS)
            .await
            .unwrap();
        assert_eq!(
            store.overflow(conversation, id).await.unwrap(),
            Some(content)
        );
        assert_eq!(store.outputs(conversation, 10).await.unwrap().len(), 1);
        assert!(store.delete_conversation(conversation).await.unwrap());
    }
}

async fn check(settings: &str) {
    let Some(server) = Server::of_run() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let database = format!("p{}_{}", std::process::id(), settings.len());
    server.database(&database);
    let Some(pooler) = Pooler::start(&server, &database, folder.path(), settings) else {
        return;
    };
    let url = pooler.url(&database);
    let stores: Vec<Store> = (0..6).map(|_| open_url(&url)).collect();
    let mut users = tokio::task::JoinSet::new();
    for store in &stores {
        users.spawn(use_it(store.clone(), 20));
    }
    users.join_all().await;
    // Nobody is heard through it, so who waits looks.
    let mut changes = stores[0].changes(Duration::from_millis(50)).await.unwrap();
    stores[1].announce("tools").await.unwrap();
    assert_eq!(changes.next().await, Change::Look);
    let prepared = server.sql(
        "",
        &format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'"),
    );
    assert!(prepared.trim().parse::<u32>().unwrap() <= 4, "{prepared}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_works_behind_a_pooler_of_transactions() {
    check("").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_works_behind_a_pooler_that_ignores_settings() {
    check("ignore_startup_parameters = options").await;
}
