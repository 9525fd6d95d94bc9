//! Who may do what without asking.

use std::path::PathBuf;

use serde_json::{Map, json};

use super::{AllowRule, Decision, Policy, SessionFacts, authorise};
use crate::argument::{Arguments, Parameters};
use crate::call::{CallFrame, FileFacts, ResolvedCall};
use crate::id::ToolName;
use crate::principal::{Operator, Principal};
use crate::tool::{Annotations, Backend, Tool, ToolKind};

mod commands;
mod data_words;
mod flow;
mod lab;
mod modes;
mod names;
mod obeyed;
mod paths;
mod precedence;
mod redirections;
mod spellings;
mod trajectory;
mod unknowns;

fn call(name: &str, read_only: bool, principal: Principal, paths: &[&str]) -> ResolvedCall {
    ResolvedCall {
        frame: CallFrame {
            principal,
            ..CallFrame::alone()
        },
        tool: Tool {
            name: ToolName::new(name).unwrap(),
            title: None,
            description: String::new(),
            parameters: Parameters::new(json!({"type": "object"})).unwrap(),
            output: None,
            kind: ToolKind::Other,
            annotations: Annotations {
                read_only,
                ..Annotations::default()
            },
            backend: Backend::Builtin,
        }
        .into(),
        arguments: Arguments {
            values: Map::new(),
            notes: Vec::new(),
        },
        paths: paths.iter().map(PathBuf::from).collect(),
        command: None,
        can_change: true,
        files: FileFacts::default(),
    }
}

fn runs(rules: &[&str], call: ResolvedCall) -> bool {
    let allow = rules
        .iter()
        .map(|rule| AllowRule::parse(rule, "/w").unwrap())
        .collect();
    matches!(
        authorise(
            &Policy {
                allow,
                ..Policy::default()
            },
            &SessionFacts::default(),
            call
        ),
        Decision::Allow(_)
    )
}

#[test]
fn what_holds_no_right_to_change_anything_runs() {
    let harmless = ResolvedCall {
        can_change: false,
        ..call("anything", false, Principal::PROGRAM, &[])
    };
    assert!(runs(&[], harmless));
}

#[test]
fn table() {
    let program = || Principal::PROGRAM;
    assert!(runs(&[], call("read", true, program(), &["/w/a"])));
    assert!(!runs(&[], call("write", false, program(), &["/w/a"])));
    assert!(runs(
        &[],
        call(
            "write",
            false,
            Principal::Operator(Operator::OF_A_TEST),
            &["/w/a"]
        )
    ));
    assert!(runs(&["write"], call("write", false, program(), &["/w/a"])));
    assert!(runs(&["WRITE"], call("write", false, program(), &["/w/a"])));
    assert!(!runs(
        &["write"],
        call("delete_path", false, program(), &["/w/a"])
    ));
    assert!(runs(
        &["*"],
        call("delete_path", false, program(), &["/w/a"])
    ));
    assert!(runs(
        &["write:src/**"],
        call("write", false, program(), &["/w/src/a/b.rs"])
    ));
    assert!(!runs(
        &["write:src/**"],
        call("write", false, program(), &["/w/b.rs"])
    ));
    assert!(runs(
        &["move_path:/w/src/*"],
        call("move_path", false, program(), &["/w/src/a", "/w/src/b"])
    ));
    assert!(!runs(
        &["move_path:/w/src/*"],
        call("move_path", false, program(), &["/w/src/a", "/w/b"])
    ));
    assert!(
        !runs(&["write:**"], call("write", false, program(), &[])),
        "a pattern needs a path"
    );
}

#[test]
fn a_refusal_names_what_would_allow_it() {
    let Decision::Ask(refusal) = authorise(
        &Policy::default(),
        &SessionFacts::default(),
        call("write", false, Principal::PROGRAM, &[]),
    ) else {
        panic!("must ask");
    };
    assert_eq!(refusal.failure.category.label(), "confirmation_required");
    assert!(
        refusal.failure.message.contains("`--allow write`"),
        "{}",
        refusal.failure.message
    );
}

#[test]
fn bad_rules() {
    for rule in ["", ":x", "write:", "write:[", "wri[te"] {
        assert!(AllowRule::parse(rule, "/w").is_err(), "{rule:?}");
    }
}
