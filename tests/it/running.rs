//! A `zeph-host run` that goes on while a test does other things.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::product::Product;

/// How long anything may take on a machine that is busy with other tests and compiles a component meanwhile.
const PATIENCE: Duration = Duration::from_secs(300);

/// What `look` finds, once it finds something: for what another process does.
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "it does not come");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The same for what only has to become so.
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    wait_for(|| is_so().then_some(()));
}

/// The running program. It is ended when this is dropped.
pub(crate) struct Running {
    child: Child,
    stdin: ChildStdin,
    answers: Receiver<String>,
    notes: Receiver<String>,
    /// Lines of standard error so far.
    pub(crate) said: Vec<String>,
    /// What it told a model between two answers, so far.
    pub(crate) told: Vec<String>,
    n_calls: u64,
}

impl Running {
    pub(crate) fn start(product: &Product, args: &[&str]) -> Self {
        let mut child = product.start(args);
        Self {
            stdin: child.stdin.take().unwrap(),
            answers: lines(child.stdout.take().unwrap()),
            notes: lines(child.stderr.take().unwrap()),
            child,
            said: Vec::new(),
            told: Vec::new(),
            n_calls: 0,
        }
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it makes calls.
    pub(crate) fn ready(&mut self) {
        let answer = self.call("list_directory", &json!({"path": "."}));
        assert_eq!(answer["status"], "ok", "{answer}");
    }

    /// Makes one call and waits for its answer.
    pub(crate) fn call(&mut self, tool: &str, params: &Value) -> Value {
        self.begin(tool, params);
        self.answer()
    }

    /// Makes one call and goes on.
    pub(crate) fn begin(&mut self, tool: &str, params: &Value) {
        self.begin_line(json!({"tool": tool, "params": params}));
    }

    /// Writes a line that is answered, under the next id.
    pub(crate) fn begin_line(&mut self, mut line: Value) {
        self.n_calls += 1;
        line["id"] = self.n_calls.into();
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Cancels the call made last.
    pub(crate) fn cancel(&mut self) {
        let line = json!({"cancel": self.n_calls});
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Waits for the answers to the `n` calls made last, whichever comes first; in the order of the calls.
    pub(crate) fn answers(&mut self, n: usize) -> Vec<Value> {
        let mut answers: Vec<Value> = (0..n).map(|_| self.next_answer()).collect();
        answers.sort_by_key(|answer| answer["id"].as_u64());
        answers
    }

    /// Waits for the answer to the call made last.
    pub(crate) fn answer(&mut self) -> Value {
        let answer = self.next_answer();
        assert_eq!(answer["id"], self.n_calls, "{answer}");
        answer
    }

    fn next_answer(&mut self) -> Value {
        loop {
            let line = self.answers.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("{error}; {:?}", self.said));
            let line: Value = serde_json::from_str(&line).unwrap();
            match line["role"].is_null() {
                true => return line,
                false => self.told.push(line["text"].as_str().unwrap().to_owned()),
            }
        }
    }

    /// Waits for the next line on standard error that has all `words`.
    pub(crate) fn note(&mut self, words: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.notes.recv_timeout(left) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if words.iter().all(|word| line.contains(word)) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("nothing says {words:?}; {:#?}", self.said)
                }
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
