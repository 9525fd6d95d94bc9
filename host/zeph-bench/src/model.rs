//! A model on loopback, as far as figures need one: HTTP requests with JSON in them, each connection on a thread of its own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// Starts a model whose connections `answers` serves; its port.
pub(crate) fn model(
    answers: impl Fn(TcpStream) -> Result<()> + Clone + Send + 'static,
) -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answers = answers.clone();
            // A client that leaves ends its connection.
            thread::spawn(move || drop(answers(stream)));
        }
    });
    Ok(port)
}

/// The next request of a connection; none when there will be none.
pub(crate) fn request(stream: &mut BufReader<TcpStream>) -> Result<Option<Value>> {
    let body = body(stream)?;
    let request = body.map(|body| serde_json::from_slice(&body));
    Ok(request.transpose()?)
}

/// The same as it came.
pub(crate) fn body(stream: &mut BufReader<TcpStream>) -> Result<Option<Vec<u8>>> {
    let mut n_bytes = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line == "\r\n" {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(length) = lower.strip_prefix("content-length:") {
            n_bytes = length.trim().parse()?;
        }
    }
    let mut body = vec![0; n_bytes];
    stream.read_exact(&mut body)?;
    Ok(Some(body))
}
