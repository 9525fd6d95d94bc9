use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use zeph_core::id::{Digest, ToolName};
use zeph_core::lifetime::Lifetime;
use zeph_engine::Cancel;
use zeph_store::ShownCall;

use super::{of_device, understood};
use crate::approval::{ApprovalAnswer, ApprovalPrompt, ApprovalQuestion};

/// A person at a terminal: what is written there is read and typed into by hand.
struct Person {
    keyboard: File,
    seen: String,
}

impl Person {
    fn new() -> (Self, ApprovalPrompt) {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap();
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags.bits().cast_signed())
            .open(name.to_str().unwrap())
            .unwrap();
        let person = Self {
            keyboard: File::from(keyboard),
            seen: String::new(),
        };
        (person, of_device(device).unwrap())
    }

    /// Reads until `text` has been seen as often as said.
    fn sees(&mut self, text: &str, n_times: usize) {
        let mut bytes = [0; 4096];
        while self.seen.matches(text).count() < n_times {
            let n_bytes = self.keyboard.read(&mut bytes).unwrap();
            self.seen
                .push_str(&String::from_utf8_lossy(&bytes[..n_bytes]));
        }
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }
}

fn question(command: &str) -> ApprovalQuestion {
    let arguments = format!(r#"{{"command":"{command}"}}"#);
    ApprovalQuestion {
        call: ShownCall {
            tool: ToolName::new("bash").unwrap(),
            digest: Digest::new([1; 32]),
            directory: Some("/srv".to_owned()),
            arguments_bytes: arguments.len() as u64,
            objects: None,
            rules: None,
            arguments,
        },
        reason: "no rule allows it".to_owned(),
        rules: Vec::new(),
        trace: vec!["permissions: nothing matches".to_owned()],
        is_once: false,
    }
}

#[test]
fn answers_are_understood() {
    for (line, expect) in [
        ("o\n", Some(ApprovalAnswer::Approved(Lifetime::Once))),
        ("YES\n", Some(ApprovalAnswer::Approved(Lifetime::Once))),
        ("session", Some(ApprovalAnswer::Approved(Lifetime::Session))),
        (" a \n", Some(ApprovalAnswer::Approved(Lifetime::Always))),
        ("\n", Some(ApprovalAnswer::Denied)),
        ("no\n", Some(ApprovalAnswer::Denied)),
        ("ok\n", None),
        ("oo\n", None),
        ("\u{1b}[A\n", None),
    ] {
        assert_eq!(understood(line), expect, "{line:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_what_would_run_and_answers() {
    let (mut person, ask) = Person::new();
    let typing = tokio::task::spawn_blocking(move || {
        person.sees("[N]o?", 1);
        person.types("what?\n");
        person.sees("[N]o?", 2);
        person.types("s\n");
        person
    });
    let answer = ask.ask(question("rm -r build"), &Cancel::new()).await;
    assert_eq!(answer, Some(ApprovalAnswer::Approved(Lifetime::Session)));
    let person = typing.await.unwrap();
    for expected in [
        "rm -r build",
        "in /srv",
        "no rule allows it",
        "permissions: nothing",
    ] {
        assert!(person.seen.contains(expected), "{}", person.seen);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_before_answers_nothing() {
    let (mut person, ask) = Person::new();
    person.types("a\n");
    let typing = tokio::task::spawn_blocking(move || {
        person.sees("[N]o?", 1);
        person.types("n\n");
        person
    });
    let answer = ask.ask(question("rm x"), &Cancel::new()).await;
    assert_eq!(answer, Some(ApprovalAnswer::Denied));
    drop(typing.await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_question_is_withdrawn_and_the_next_one_is_asked() {
    let (mut person, ask) = Person::new();
    let cancel = Cancel::new();
    let cancelling = cancel.clone();
    let typing = tokio::task::spawn_blocking(move || {
        person.sees("[N]o?", 1);
        cancelling.cancel();
        person.sees("withdrawn", 1);
        person.sees("[N]o?", 2);
        person.types("o\n");
        person
    });
    let first = ask.ask(question("rm one"), &cancel);
    let patient = Cancel::new();
    let second = async {
        // Asked while the first one has the terminal, or after it: either way it comes to its turn.
        ask.ask(question("rm two"), &patient).await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(
        (first, second),
        (None, Some(ApprovalAnswer::Approved(Lifetime::Once)))
    );
    let person = typing.await.unwrap();
    let withdrawn = person.seen.find("withdrawn").unwrap();
    assert!(person.seen.find("rm one").unwrap() < withdrawn);
    assert!(person.seen.find("rm two").unwrap() > withdrawn);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_terminal_is_no_yes() {
    let (person, ask) = Person::new();
    drop(person);
    let cancel = Cancel::new();
    let answer = ask.ask(question("rm x"), &cancel);
    let answer = tokio::time::timeout(Duration::from_secs(60), answer).await;
    assert!(!matches!(
        answer.unwrap(),
        Some(ApprovalAnswer::Approved(_))
    ));
}
