//! An agent of 40 lines: a model, and the tools of a host. `cargo run -p zeph-host --features examples --example agent`
#![allow(clippy::print_stdout, dead_code, reason = "tests use it too")]

use serde_json::json;
use zeph_host::{CallOptions, Caller, Host, ToolCall, ToolDefinition, ToolExecutor};

enum Reply {
    Call(ToolCall),
    Answer(String),
}

/// The model. A real one is sent the tools and the conversation over the network; this one follows a script.
fn ask_model(_tools: &[ToolDefinition], conversation: &[String]) -> Reply {
    let documents = json!({"path": ".", "pattern": "**/*.md"});
    let headings = json!({"path": ".", "pattern": "^# "});
    match conversation {
        [] => Reply::Answer("There is nothing to do.".to_owned()),
        [_task] => Reply::Call(ToolCall::new("find_path", documents)),
        [_task, _files] => Reply::Call(ToolCall::new("grep", headings)),
        [.., found] => Reply::Answer(format!("The documents are about:\n{found}")),
    }
}

/// Works on a task with any tools: those of a host, of several executors, or of a test.
pub(crate) async fn work(tools: &impl ToolExecutor, task: &str) -> String {
    let mut conversation = vec![task.to_owned()];
    for _ in 0..10 {
        match ask_model(&tools.definitions(), &conversation) {
            Reply::Answer(answer) => return answer,
            Reply::Call(call) => {
                let report = tools.call(call, CallOptions::default()).await;
                conversation.push(report.for_model());
            }
        }
    }
    "Stopped after ten rounds of calls.".to_owned()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = Host::builder()
        .build()
        .await?
        .session(Caller::model())
        .await?;
    let answer = work(&tools, "What are the documents here about?").await;
    println!("{answer}");
    Ok(())
}
