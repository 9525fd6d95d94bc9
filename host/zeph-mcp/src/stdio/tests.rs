use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, EmptyResult, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport as _;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};

use super::{Connection, Lines, OPEN_BYTES_MAX, OPEN_MAX, Open};

const LINE_BYTES_MAX: usize = 1_000;

type Served = Lines<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>;

struct Client {
    answers: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    requests: WriteHalf<DuplexStream>,
}

impl Client {
    async fn send(&mut self, line: impl AsRef<[u8]>) {
        self.requests.write_all(line.as_ref()).await.unwrap();
        self.requests.write_all(b"\n").await.unwrap();
    }

    async fn answer(&mut self) -> Value {
        let line = self.answers.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

fn connected() -> (Client, Served, Connection) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(near);
    let connection = Connection::default();
    let lines = Lines::new(reader, writer, LINE_BYTES_MAX, connection.clone());
    let (answers, requests) = tokio::io::split(far);
    let client = Client {
        answers: BufReader::new(answers).lines(),
        requests,
    };
    (client, lines, connection)
}

fn ping(id: impl Into<Value>) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "ping"}).to_string()
}

fn id_of(message: Option<ClientJsonRpcMessage>) -> RequestId {
    match message {
        Some(JsonRpcMessage::Request(request)) => request.id,
        other => panic!("expected a request: {other:?}"),
    }
}

fn pong(id: RequestId) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::response(ServerResult::EmptyResult(EmptyResult {}), id)
}

#[tokio::test]
async fn each_line_that_is_no_message_has_one_answer_and_the_next_one_works() {
    let too_long = ping("x".repeat(LINE_BYTES_MAX));
    let deep = "[".repeat(500);
    let nested = format!(
        r#"{{"jsonrpc":"2.0","id":4,"method":"m","params":{{"a":{}{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let cases: Vec<(&[u8], i64, Value, &str)> = vec![
        (b"{", -32700, Value::Null, "as JSON"),
        (b"\xff\xfe", -32700, Value::Null, "as JSON"),
        (deep.as_bytes(), -32700, Value::Null, "as JSON"),
        (b"[]", -32600, Value::Null, "batches"),
        (
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            -32600,
            Value::Null,
            "batches",
        ),
        (b"7", -32600, Value::Null, "JSON object"),
        (
            b"{\"id\":3,\"method\":\"ping\"}",
            -32600,
            json!(3),
            "jsonrpc",
        ),
        (
            b"{\"jsonrpc\":\"1.0\",\"id\":3,\"method\":\"ping\"}",
            -32600,
            json!(3),
            "jsonrpc",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
            -32600,
            Value::Null,
            "`id`",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
            -32600,
            Value::Null,
            "`id`",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}",
            -32600,
            Value::Null,
            "`id`",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":\"\\ud800\",\"method\":1}",
            -32600,
            json!("\u{fffd}"),
            "string",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"a\":1e999},\"id\":\"a\"}",
            -32700,
            json!("a"),
            "as JSON",
        ),
        (nested.as_bytes(), -32700, json!(4), "as JSON"),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"m\",\"params\":{\"a\":\"\xff\"}}",
            -32700,
            json!(5),
            "as JSON",
        ),
        // Beyond what the library can work with, and beyond 64 bits.
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":9223372036854775808,\"method\":\"ping\"}",
            -32600,
            json!(9_223_372_036_854_775_808_u64),
            "64 bits",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":-18446744073709551616,\"method\":\"ping\"}",
            -32600,
            json!(-18_446_744_073_709_551_616.0),
            "64 bits",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":4}",
            -32600,
            json!(4),
            "`method`",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":5}",
            -32600,
            json!(4),
            "`method`",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":[1]}",
            -32602,
            json!("a"),
            "`params`",
        ),
        (
            too_long.as_bytes(),
            -32600,
            json!("x".repeat(LINE_BYTES_MAX)),
            "1000 bytes",
        ),
    ];
    let (mut client, mut lines, _connection) = connected();
    for (n, (line, code, id, message)) in cases.into_iter().enumerate() {
        client.send(line).await;
        client.send(ping(format!("next {n}"))).await;
        let next = id_of(lines.receive().await);
        assert_eq!(next, RequestId::String(format!("next {n}").into()));
        let shown = String::from_utf8_lossy(line).into_owned();
        let answer = client.answer().await;
        assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
        assert_eq!(answer["id"], id, "{shown}: {answer}");
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains(message), "{shown}: {said}");
        lines.send(pong(next)).await.unwrap();
        assert_eq!(client.answer().await["id"], format!("next {n}"));
    }
}

/// The client waits for the answer to its own request, wherever the id stands; and no other request must be ended by it.
#[tokio::test]
async fn a_request_that_is_too_long_is_refused_by_its_id() {
    let long = "x \\\" \\\\".repeat(LINE_BYTES_MAX);
    let cases = [
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"LONG"}}"#,
            json!(7),
        ),
        (
            r#" { "method" : "m" , "params" : { "id" : 8, "a" : [ "LONG", {"id":9} ] } , "id" : "a\"b" } "#,
            json!("a\"b"),
        ),
        (
            r#"{"params":"LONG","jsonrpc":"2.0","id":-3,"method":"m"}"#,
            json!(-3),
        ),
        (
            r#"{"params":{"id":5,"method":"m"},"a":"LONG","method":"m"}"#,
            Value::Null,
        ),
        (
            r#"{"id":1,"result":{"method":"m","a":"LONG"}}"#,
            Value::Null,
        ),
        (r#"{"id":1.5,"method":"m","params":["LONG"]}"#, Value::Null),
        (
            r#"{"id":{"id":4},"method":"m","params":["LONG"]}"#,
            Value::Null,
        ),
        (r#"[{"id":1,"method":"m","params":["LONG"]}]"#, Value::Null),
        (r#"{"id":1,"method":"m","params":["LONG"#, json!(1)),
        (r#""id":1,"method":"m","params":["LONG"]}"#, Value::Null),
    ];
    let (mut client, mut lines, _connection) = connected();
    for (line, id) in cases {
        client.send(line.replace("LONG", &long)).await;
        client.send(ping("next")).await;
        let next = id_of(lines.receive().await);
        let answer = client.answer().await;
        assert_eq!(answer["id"], id, "{line}: {answer}");
        assert_eq!(answer["error"]["code"], -32600, "{line}: {answer}");
        lines.send(pong(next)).await.unwrap();
        assert_eq!(client.answer().await["id"], "next", "{line}");
    }
}

#[tokio::test]
async fn a_line_of_many_megabytes_takes_no_memory_and_has_one_answer() {
    let (mut client, mut lines, _connection) = connected();
    #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
    let writer = tokio::spawn(async move {
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..100 {
            client.requests.write_all(&piece).await.unwrap();
        }
        client.requests.write_all(b"\n").await.unwrap();
        client.send(ping(1)).await;
        client
    });
    assert_eq!(id_of(lines.receive().await), RequestId::Number(1));
    assert!(
        lines.line.capacity() <= 64 * 1024,
        "{}",
        lines.line.capacity()
    );
    let mut client = writer.await.unwrap();
    assert_eq!(client.answer().await["error"]["code"], -32600);
}

#[tokio::test]
async fn a_second_request_of_an_id_in_progress_is_refused_and_one_after_it_is_not() {
    let (mut client, mut lines, _connection) = connected();
    client.send(ping(1)).await;
    assert_eq!(id_of(lines.receive().await), RequestId::Number(1));
    client.send(ping(1)).await;
    client.send(ping(2)).await;
    assert_eq!(id_of(lines.receive().await), RequestId::Number(2));
    let refused = client.answer().await;
    assert_eq!(refused["id"], 1);
    assert_eq!(refused["error"]["code"], -32600);
    lines.send(pong(RequestId::Number(1))).await.unwrap();
    client.send(ping(1)).await;
    assert_eq!(id_of(lines.receive().await), RequestId::Number(1));
}

#[tokio::test]
async fn notifications_and_answers_before_the_beginning_are_passed_over() {
    let (mut client, mut lines, _connection) = connected();
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#,
        "",
    ] {
        client.send(line).await;
    }
    client.send(ping(1)).await;
    assert_eq!(id_of(lines.receive().await), RequestId::Number(1));
}

#[tokio::test]
async fn a_request_with_metadata_settles_the_revision() {
    let (mut client, mut lines, _connection) = connected();
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/list",
        "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    });
    client.send(request.to_string()).await;
    let Some(JsonRpcMessage::Request(request)) = lines.receive().await else {
        panic!("expected a request");
    };
    assert!(matches!(
        request.request,
        ClientRequest::ListToolsRequest(_)
    ));
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    let message = lines.receive().await;
    assert!(matches!(message, Some(JsonRpcMessage::Notification(_))));
}

#[tokio::test]
async fn the_end_waits_for_the_open_answers() {
    let (mut client, mut lines, connection) = connected();
    client.send(ping(1)).await;
    let id = id_of(lines.receive().await);
    // Without its line end, which the end of the stream stands for.
    client.requests.write_all(ping(2).as_bytes()).await.unwrap();
    client.requests.shutdown().await.unwrap();
    let second = id_of(lines.receive().await);
    let answers = [lines.send(pong(id)), lines.send(pong(second))];
    let ended = connection.ended.clone();
    #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
    let answering = tokio::spawn(async move {
        ended.cancelled().await;
        for answer in answers {
            answer.await.unwrap();
        }
    });
    assert!(lines.receive().await.is_none());
    answering.await.unwrap();
    assert_eq!(client.answer().await["id"], 1);
    assert_eq!(client.answer().await["id"], 2);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_not_read_from_for_ever() {
    let (mut client, mut lines, connection) = connected();
    #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
    let writer = tokio::spawn(async move {
        for n in 0..2_000 {
            client.send(ping(n)).await;
        }
        client
    });
    let mut n_read = 0;
    let reading = async {
        while lines.receive().await.is_some() {
            n_read += 1;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_millis(500), reading)
            .await
            .is_err()
    );
    assert_eq!(n_read, OPEN_MAX);
    connection.gone.cancel();
    assert!(lines.receive().await.is_none());
    writer.abort();
}

#[test]
fn the_id_of_a_cancelled_request_is_not_used_again() {
    let mut open = Open::default();
    for n in 0..300 {
        assert!(open.add(&RequestId::Number(n), 1));
        open.cancel(&RequestId::Number(n));
    }
    assert!(!open.add(&RequestId::Number(299), 1));
    assert_eq!((open.len(), open.n_bytes), (0, 0));
    assert!(open.cancelled.len() <= super::CANCELLED_MAX);
    open.cancel(&RequestId::Number(1_000));
    assert!(open.add(&RequestId::Number(1_000), 1), "it was none before");
}

#[test]
fn long_requests_fill_what_many_short_ones_do() {
    let mut open = Open::default();
    for n in 0..4 {
        assert!(open.has_room(), "{n}");
        assert!(open.add(&RequestId::Number(n), OPEN_BYTES_MAX / 4));
    }
    assert!(!open.has_room());
    assert!(
        !open.add(&RequestId::Number(1), 1),
        "there is one of this id"
    );
    open.remove(&RequestId::Number(9));
    assert!(!open.has_room());
    open.remove(&RequestId::Number(1));
    assert!(open.has_room());
}

#[tokio::test]
async fn a_client_that_is_gone_ends_the_connection() {
    let (mut client, mut lines, connection) = connected();
    client.send(ping(1)).await;
    let id = id_of(lines.receive().await);
    drop(client);
    assert!(lines.send(pong(id)).await.is_err());
    assert!(connection.gone.is_cancelled());
    assert!(
        <Served as rmcp::transport::Transport<RoleServer>>::receive(&mut lines)
            .await
            .is_none()
    );
    assert!(connection.ended.is_cancelled());
}
