use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf};
use tokio::task::JoinSet;

use super::{Connection, Inbox, Incoming, RequestError};
use crate::rpc::{INVALID_REQUEST, PARSE_ERROR, RpcError};

/// An agent, and the client's end of its streams.
struct Peers {
    connection: Connection,
    inbox: Inbox<ReadHalf<DuplexStream>>,
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: tokio::io::WriteHalf<DuplexStream>,
    tasks: JoinSet<()>,
}

fn peers() -> Peers {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let connection = Connection::default();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection.write_to(writer));
    let inbox = Inbox::new(reader, 1_000, &connection);
    let (reader, writer) = tokio::io::split(theirs);
    Peers {
        connection,
        inbox,
        lines: BufReader::new(reader).lines(),
        writer,
        tasks,
    }
}

impl Peers {
    async fn say(&mut self, line: &str) {
        self.writer.write_all(line.as_bytes()).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

#[tokio::test]
async fn requests_go_both_ways_at_once() {
    let mut peers = peers();
    let connection = peers.connection.clone();
    peers.tasks.spawn(async move {
        let answer: Value = connection.request("ask", &json!({"a": 1})).await.unwrap();
        connection.notify("heard", &answer);
    });
    assert_eq!(
        peers.hear().await,
        json!({"jsonrpc": "2.0", "id": 0, "method": "ask", "params": {"a": 1}})
    );
    peers
        .say(r#"{"jsonrpc":"2.0","id":0,"method":"mine"}"#)
        .await;
    peers
        .say(r#"{"jsonrpc":"2.0","id":0,"result":"yes"}"#)
        .await;
    peers.say(r#"{"jsonrpc":"2.0","method":"last"}"#).await;
    let Some(Incoming::Request(request)) = peers.inbox.next().await.unwrap() else {
        panic!("no request");
    };
    assert_eq!(request.method, "mine");
    let Some(Incoming::Notification(_)) = peers.inbox.next().await.unwrap() else {
        panic!("no notification");
    };
    assert_eq!(peers.hear().await["params"], "yes");
    peers
        .connection
        .answer(&request.id, Err(RpcError::no_method("mine")));
    assert_eq!(peers.hear().await["error"]["code"], -32601);
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_the_next_one_works() {
    let mut peers = peers();
    let long = "x".repeat(2_000);
    for line in [
        "{",
        &long,
        "",
        r#"{"id":9,"result":1}"#,
        r#"{"method":"next"}"#,
    ] {
        peers.say(line).await;
    }
    assert!(matches!(
        peers.inbox.next().await.unwrap(),
        Some(Incoming::Notification(_))
    ));
    assert_eq!(peers.hear().await["error"]["code"], PARSE_ERROR);
    assert_eq!(peers.hear().await["error"]["code"], INVALID_REQUEST);
}

#[tokio::test]
async fn a_request_that_is_too_long_is_answered_by_its_id() {
    let mut peers = peers();
    let long = "x".repeat(2_000);
    for id in ["5", r#""five""#] {
        let said =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"a","params":{{"t":"{long}"}}}}"#);
        peers.say(&said).await;
    }
    peers.say(&format!(r#"{{"id":6,"result":"{long}"}}"#)).await;
    peers.say(r#"{"method":"next"}"#).await;
    assert!(peers.inbox.next().await.unwrap().is_some());
    for id in [json!(5), json!("five"), json!(null)] {
        let heard = peers.hear().await;
        assert_eq!(heard["id"], id, "{heard}");
        assert_eq!(heard["error"]["code"], INVALID_REQUEST);
    }
}

#[tokio::test]
async fn much_is_sent_at_the_pace_of_its_reader() {
    let mut peers = peers();
    let (connection, text) = (peers.connection.clone(), "x".repeat(1 << 20));
    peers.tasks.spawn(async move {
        // More than may wait.
        for _ in 0..80 {
            connection.notify("long", &json!({"text": text}));
            connection.caught_up().await;
        }
    });
    for _ in 0..80 {
        assert_eq!(peers.hear().await["method"], "long");
    }
    assert!(!peers.connection.gone().is_cancelled());
}

#[tokio::test]
async fn a_client_that_leaves_ends_every_wait() {
    let mut peers = peers();
    let connection = peers.connection.clone();
    let mut asking = JoinSet::new();
    asking.spawn(async move { connection.request::<Value>("ask", &json!({})).await });
    peers.hear().await;
    drop((peers.lines, peers.writer));
    assert!(peers.inbox.next().await.unwrap().is_none());
    let ended = asking.join_next().await.unwrap().unwrap();
    assert_eq!(ended, Err(RequestError::Gone));
}
