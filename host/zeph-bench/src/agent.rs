//! The figures of the agent: how soon the first word of an answer is seen on a terminal after it has arrived; and those of a long turn
//! (`rounds`).

use std::fs::File;
use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

use crate::figures::{Bench, Row, shown, verdict};
use crate::model::{model, request};
use crate::rounds::rounds;
use crate::timing::{median, percentile};

/// Prompts.
const N_RUNS: usize = 31;

/// The word that is waited for.
const WORD: &str = "Certainly";

/// How long the program has waited for the word when it comes.
const THINKING: Duration = Duration::from_millis(50);

/// The figures.
pub(crate) fn agent(bench: &Bench) -> Result<Vec<Row>> {
    // Holds the moment at which the word was sent.
    let (sent, sent_at) = sync_channel(1);
    let port = model(move |stream| answers(stream, &sent))?;
    let mut times = Vec::with_capacity(N_RUNS);
    for _ in 0..N_RUNS {
        times.push(first_word(bench, port, &sent_at)?);
    }
    let p50 = median(&mut times);
    let first_word = Row {
        figure: "the first word of an answer on a terminal, since it was sent".to_owned(),
        measured: format!(
            "p50 {}, p90 {}",
            shown(p50),
            shown(percentile(&mut times, 90))
        ),
        reach: "p50 ≤ 5 ms".to_owned(),
        ratio: verdict("", p50 <= Duration::from_millis(5)),
    };
    let mut rows = vec![first_word];
    rows.extend(rounds(bench)?);
    Ok(rows)
}

/// A prompt on a terminal of its own; the time from the moment the word was sent until it can be read there.
fn first_word(bench: &Bench, port: u16, sent_at: &Receiver<Instant>) -> Result<Duration> {
    let provider = format!(
        "llm.providers=[{{name=\"scripted\",type=\"openai\",model=\"script-1\",base_url=\"http://127.0.0.1:{port}/v1\"}}]"
    );
    let (mut screen, terminal) = terminal()?;
    let mut command = bench.installed.command(&bench.corpus.tiny);
    command.args(["--set", &provider, "run", "hello"]);
    command
        .stdin(terminal.try_clone()?)
        .stdout(terminal.try_clone()?)
        .stderr(terminal);
    let child = command.spawn().context("cannot start the program")?;
    // It holds the terminal, which stays open otherwise.
    drop(command);
    let seen = seen(&mut screen);
    end(child, &mut screen)?;
    let seen = seen?;
    let sent = sent_at.try_recv().context("the word was not sent")?;
    Ok(seen.saturating_duration_since(sent))
}

/// The moment at which the word is on the screen.
fn seen(screen: &mut File) -> Result<Instant> {
    let mut text = Vec::new();
    let mut piece = [0; 4_096];
    loop {
        let n_bytes = screen.read(&mut piece).context("the program ended")?;
        let now = Instant::now();
        text.extend_from_slice(&piece[..n_bytes]);
        if String::from_utf8_lossy(&text).contains(WORD) {
            return Ok(now);
        }
        if n_bytes == 0 {
            bail!("the program ended");
        }
    }
}

/// Reads what the program still shows, until it has ended.
fn end(mut child: Child, screen: &mut File) -> Result<()> {
    let mut piece = [0; 4_096];
    // A terminal that nobody holds any more is an error.
    while screen.read(&mut piece).is_ok_and(|n_bytes| n_bytes > 0) {}
    child.wait()?;
    Ok(())
}

/// A terminal: what it shows, and what a program holds of it.
fn terminal() -> Result<(File, File)> {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&screen)?;
    unlockpt(&screen)?;
    let name = ptsname(&screen, Vec::new())?.into_string()?;
    let terminal = File::options().read(true).write(true).open(name)?;
    Ok((File::from(screen), terminal))
}

/// Answers the request of a connection, piece by piece.
fn answers(stream: TcpStream, sent: &SyncSender<Instant>) -> Result<()> {
    let mut stream = BufReader::new(stream);
    if request(&mut stream)?.is_none() {
        return Ok(());
    }
    let stream = stream.get_mut();
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
    )?;
    thread::sleep(THINKING);
    let first = piece(&json!({"role": "assistant", "content": WORD}), None);
    sent.try_send(Instant::now())?;
    stream.write_all(first.as_bytes())?;
    thread::sleep(THINKING);
    let last = piece(&json!({"content": "."}), Some("stop"));
    stream.write_all(format!("{last}data: [DONE]\n\n").as_bytes())?;
    Ok(())
}

fn piece(delta: &serde_json::Value, reason: Option<&str>) -> String {
    let piece = json!({
        "id": "1", "object": "chat.completion.chunk", "created": 1, "model": "script-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    });
    format!("data: {piece}\n\n")
}
