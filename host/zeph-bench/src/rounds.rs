//! The figures of a long turn of the agent: what the host takes from one answer of the model to the next request, and whether its memory
//! stays as large as it is. The model is scripted: each answer makes one call of `read`, of another line each time.

use std::fmt::Write as _;
use std::io::{BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::figures::{Bench, Row, shown, verdict};
use crate::host::resident_bytes;
use crate::model::{body, model};
use crate::timing::median;

/// Rounds of the turn.
const N_ROUNDS: usize = 1_000;

/// Rounds before which memory is looked at: the first when caches and pools are full, the second at the end.
const MARKS: [usize; 2] = [N_ROUNDS / 2, N_ROUNDS];

/// Rounds that count for the time: a conversation of 100 to 200 messages.
const TIMED: std::ops::Range<usize> = 50..100;

/// How long a mark is waited for before the program is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What the model saw of the turn.
#[derive(Default)]
struct SeenTurn {
    /// When the last answer was sent.
    answered: Option<Instant>,
    /// From each answer to the request after it.
    gaps: Vec<Duration>,
    /// Tools in a request.
    n_tools: usize,
}

/// The figures.
pub(crate) fn rounds(bench: &Bench) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let mut lines = String::new();
    for number in 0..=N_ROUNDS {
        writeln!(lines, "line {number}")?;
    }
    std::fs::write(folder.path().join("lines.txt"), lines)?;
    let seen = Arc::new(Mutex::new(SeenTurn::default()));
    let (reached, marks) = sync_channel(0);
    let of_model = Arc::clone(&seen);
    let port = model(move |stream| answers(stream, &of_model, &reached))?;
    let provider = format!(
        "llm.providers=[{{name=\"scripted\",type=\"openai\",model=\"script-1\",base_url=\"http://127.0.0.1:{port}/v1\",stream=false}}]"
    );
    let mut command = bench.installed.command(folder.path());
    let limit = format!("agent.max_tool_iterations={N_ROUNDS}");
    command.args(["--set", &provider, "--set", &limit, "run", "--json", "go"]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().context("cannot start the program")?;
    let mut resident = Vec::new();
    for _ in MARKS {
        wait(&marks, &mut child)?;
        resident.push(resident_bytes(&child)?);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("the turn did not end well: {status}");
    }
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let gap = median(seen.gaps.get_mut(TIMED).context("the turn ended early")?);
    let read = read(bench, folder.path())?;
    let [early, late] = resident[..] else {
        bail!("bug: each mark is looked at");
    };
    Ok(vec![
        iteration(gap, read, seen.n_tools),
        memory(early, late),
    ])
}

/// Waits for a mark.
fn wait(marks: &Receiver<()>, child: &mut Child) -> Result<()> {
    loop {
        match marks.recv_timeout(LOOK) {
            Ok(()) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => bail!("the model has ended"),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(status) = child.try_wait()? {
            bail!("the turn ended early: {status}");
        }
    }
}

/// What a `read` takes by the host's own clock.
fn read(bench: &Bench, folder: &std::path::Path) -> Result<Duration> {
    let mut host = bench.installed.run(folder, &[])?;
    let mut times = Vec::new();
    for number in TIMED {
        let (answer, _) = host.call("read", &arguments(number))?;
        times.push(crate::figures::recorded(&answer)?);
    }
    Ok(median(&mut times))
}

fn iteration(gap: Duration, read: Duration, n_tools: usize) -> Row {
    const REACH: Duration = Duration::from_millis(2);
    let added = gap.saturating_sub(read);
    Row {
        figure: format!(
            "the agent: an answer with a call to the next request, at 100 to 200 messages and {n_tools} tools, without the `read` itself"
        ),
        measured: format!("p50 {} of {}", shown(added), shown(gap)),
        reach: "≤ 2 ms".to_owned(),
        ratio: verdict("", added <= REACH),
    }
}

fn memory(early: u64, late: u64) -> Row {
    const REACH: f64 = 1.1;
    let ratio = late as f64 / early as f64;
    let [first, last] = MARKS;
    Row {
        figure: format!("its resident memory after {first} and after {last} rounds"),
        measured: format!("{} and {} MB", early / 1_000_000, late / 1_000_000),
        reach: format!("flat (≤ {REACH} ×)"),
        ratio: verdict(&format!("{ratio:.2}"), ratio <= REACH),
    }
}

fn arguments(number: usize) -> Value {
    json!({"path": "lines.txt", "offset": number, "limit": 1})
}

/// Answers the requests of a connection: a call each time, and a word at the end.
fn answers(stream: TcpStream, seen: &Mutex<SeenTurn>, reached: &SyncSender<()>) -> Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(body) = body(&mut stream)? {
        let arrived = Instant::now();
        let number = {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(answered) = seen.answered.take() {
                seen.gaps.push(arrived.saturating_duration_since(answered));
            } else {
                let request: Value = serde_json::from_slice(&body)?;
                seen.n_tools = request["tools"].as_array().map_or(0, Vec::len);
            }
            seen.gaps.len()
        };
        if MARKS.contains(&number) {
            reached.send(())?;
        }
        let answer = answer(number).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        let answer = head + &answer;
        seen.lock().unwrap_or_else(PoisonError::into_inner).answered = Some(Instant::now());
        stream.get_mut().write_all(answer.as_bytes())?;
    }
    Ok(())
}

fn answer(number: usize) -> Value {
    let call = json!([{
        "id": format!("call_{number}"), "type": "function",
        "function": {"name": "read", "arguments": arguments(number).to_string()},
    }]);
    let (message, reason) = match number < N_ROUNDS {
        true => (
            json!({"role": "assistant", "content": null, "tool_calls": call}),
            "tool_calls",
        ),
        false => (json!({"role": "assistant", "content": "read"}), "stop"),
    };
    json!({
        "id": "1", "object": "chat.completion", "created": 1, "model": "script-1",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    })
}
