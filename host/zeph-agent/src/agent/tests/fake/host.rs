//! A host made of results.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;

use crate::message::ToolCall;
use crate::provider::ToolDefinition;
use crate::tool_host::{CallEnd, CallEndKind, HostMessage, ToolHost};
use crate::usage::SideSpending;

/// Ends every call with the same end, and remembers what was called.
#[derive(Debug)]
pub(in super::super) struct FakeHost {
    made: Mutex<Vec<String>>,
    end: Mutex<CallEnd>,
    messages: Mutex<Vec<HostMessage>>,
    later: Mutex<Vec<HostMessage>>,
    at_once: AtomicUsize,
    pub(in super::super) most_at_once: AtomicUsize,
    pub(in super::super) batches_left: AtomicU32,
    /// Whether its calls go on until they are cancelled.
    pub(in super::super) is_endless: AtomicBool,
    /// Bytes of each output, which is another one each time.
    pub(in super::super) output_bytes: AtomicUsize,
    /// Whether each output is the same but for its age.
    pub(in super::super) is_aging: AtomicBool,
    /// Whether it chooses tools: `read` first, and `edit` from the second time on.
    pub(in super::super) selects: AtomicBool,
    pub(in super::super) n_selected: AtomicUsize,
    /// What each choice of tools takes.
    pub(in super::super) selecting: Mutex<SideSpending>,
}

impl Default for FakeHost {
    fn default() -> Self {
        Self {
            made: Mutex::default(),
            end: Mutex::new(CallEnd::of(CallEndKind::Done, "")),
            messages: Mutex::default(),
            later: Mutex::default(),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
            batches_left: AtomicU32::new(u32::MAX),
            is_endless: AtomicBool::new(false),
            output_bytes: AtomicUsize::new(0),
            is_aging: AtomicBool::new(false),
            selects: AtomicBool::new(false),
            n_selected: AtomicUsize::new(0),
            selecting: Mutex::default(),
        }
    }
}

impl FakeHost {
    pub(in super::super) fn made(&self) -> Vec<String> {
        self.made.lock().unwrap().clone()
    }

    pub(in super::super) fn end_with(&self, end: CallEnd) {
        *self.end.lock().unwrap() = end;
    }

    pub(in super::super) fn tell(&self, text: &str) {
        self.messages.lock().unwrap().push(message(text));
    }

    /// Tells it after the next calls.
    pub(in super::super) fn tell_later(&self, text: &str) {
        self.later.lock().unwrap().push(message(text));
    }

    fn end(&self, n_made: usize) -> CallEnd {
        let mut end = self.end.lock().unwrap().clone();
        if end.text.is_empty() {
            let n_bytes = self.output_bytes.load(Ordering::Relaxed);
            end.text = match self.is_aging.load(Ordering::Relaxed) {
                true => format!("output [age {n_made}]"),
                false => format!("output {n_made}{}", "x".repeat(n_bytes)),
            };
        }
        end
    }
}

impl ToolHost for FakeHost {
    fn definitions(&self) -> Vec<ToolDefinition> {
        ["edit", "read"].map(definition).to_vec()
    }

    async fn select(&self, _text: &str, spent: &mut SideSpending) -> Option<Vec<ToolDefinition>> {
        *spent += *self.selecting.lock().unwrap();
        let name = match self.n_selected.fetch_add(1, Ordering::Relaxed) {
            0 => "read",
            _ => "edit",
        };
        let selects = self.selects.load(Ordering::Relaxed);
        selects.then(|| vec![definition(name)])
    }

    fn selected(&self, names: &[String]) -> Option<Vec<ToolDefinition>> {
        let selects = self.selects.load(Ordering::Relaxed);
        selects.then(|| names.iter().map(|name| definition(name)).collect())
    }

    fn is_read_only(&self, call: &ToolCall) -> bool {
        call.name == "read"
    }

    fn compared_output(&self, text: &str) -> String {
        let same = text.split_once("[age ").map(|(same, _age)| same);
        same.unwrap_or(text).to_owned()
    }

    async fn begin_turn(&self) -> Vec<HostMessage> {
        std::mem::take(&mut *self.messages.lock().unwrap())
    }

    async fn ended_meanwhile(&self) -> Vec<HostMessage> {
        std::mem::take(&mut *self.later.lock().unwrap())
    }

    fn begin_batch(&self, _n_calls: usize) -> Result<(), String> {
        let left = self.batches_left.load(Ordering::Relaxed);
        let Some(less) = left.checked_sub(1) else {
            return Err("[error] quota".to_owned());
        };
        self.batches_left.store(less, Ordering::Relaxed);
        Ok(())
    }

    async fn call(&self, call: &ToolCall, cancel: &CancellationToken) -> CallEnd {
        let n_made = {
            let mut made = self.made.lock().unwrap();
            made.push(call.name.clone());
            made.len()
        };
        let at_once = self.at_once.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_at_once.fetch_max(at_once, Ordering::Relaxed);
        tokio::task::yield_now().await;
        if self.is_endless.load(Ordering::Relaxed) {
            cancel.cancelled().await;
        }
        self.at_once.fetch_sub(1, Ordering::Relaxed);
        match cancel.is_cancelled() {
            true => CallEnd::of(CallEndKind::Cancelled, "[error] cancelled"),
            false => self.end(n_made),
        }
    }

    async fn keep(&self, _text: &str) -> Option<String> {
        Some("overflow:1".to_owned())
    }

    async fn standing(&self) -> Vec<String> {
        vec!["approved: write:src/**".to_owned()]
    }
}

fn message(text: &str) -> HostMessage {
    HostMessage {
        text: text.to_owned(),
        ended_task: None,
    }
}

fn definition(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: format!("The tool {name}."),
        schema: serde_json::json!({ "type": "object" }),
    }
}
