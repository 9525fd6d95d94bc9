//! Functions: a call is what the body runs.

use zeph_core::command::Wraps;

use super::super::numbers::NameSet;
use super::super::syntax::SyntaxCommand;
use super::super::value::Value;
use super::super::wrapper::{self, Look};
use super::{Piped, ScriptWalk, WalkPosition, uncertain};

/// Builtins that set variables, or run others.
const SETTING: [&str; 13] = [
    "builtin", "command", "declare", "eval", "exit", "export", "let", "local", "printf",
    "readonly", "return", "typeset", "unset",
];

impl ScriptWalk {
    /// Takes in a definition. The commands of the body need their rules here, not where the function is called.
    pub(super) fn function(
        &mut self,
        at: WalkPosition<'_>,
        name: Option<&str>,
        body: &SyntaxCommand,
    ) {
        if let (Some(name), true) = (name, at.is_certain) {
            self.functions.push(name.to_owned());
        }
        if let Some(name) = name.filter(|name| SETTING.contains(name)) {
            self.unknown("a builtin that sets variables becomes a function", name);
        }
        self.numbers.literals.enter();
        let outer = self.numbers.enter(name, true);
        let first = self.line.commands.len();
        // What a call finds there is not known here.
        let around = std::mem::replace(&mut self.piped, Piped::Anything);
        self.command(uncertain(at), body);
        self.piped = around;
        let set = self.numbers.leave(outer);
        if let Some(name) = name {
            let is_whole = !self.runs("return", first);
            self.note_end(name, if is_whole { set } else { NameSet::EMPTY });
        }
        self.numbers.literals.leave();
    }

    /// Notes what is set behind a call of a function. One that may have several bodies sets what all of them do.
    fn note_end(&mut self, name: &str, set: NameSet) {
        let known = self.ends.entry(name.to_owned()).or_insert(NameSet::ALL);
        *known = known.both(set);
    }

    /// Whether a command of this name is one of those from the one with the number `first` on.
    pub(super) fn runs(&self, name: &str, first: usize) -> bool {
        let mut commands = self.line.commands.iter().skip(first);
        commands.any(|command| command.base_name() == name)
    }

    /// Whether a command is a call of a function of this text, for certain: not one of a program or a builtin of the name.
    pub(super) fn is_function(&self, values: &[Value]) -> bool {
        let Some((name, arguments)) = values.split_first() else {
            return false;
        };
        name.is_literal
            && self.functions.contains(&name.text)
            && wrapper::look(&name.text, arguments) == Look::nothing()
    }

    /// Notes a call. It needs no rule of its own, and rules that refuse see it.
    pub(super) fn call(&mut self, at: WalkPosition<'_>, values: &[Value]) {
        if let Some((name, arguments)) = values.split_first() {
            self.calls.push(self.line.commands.len());
            self.push(name, arguments, Wraps::Within);
            // In a loop, it may be another function the next time.
            let is_there = !at.is_repeated && !self.runs("unset", 0);
            let end = self.ends.get(&name.text).filter(|_| is_there);
            if let Some(end) = end.copied() {
                self.numbers.set_all(end);
            }
        }
    }
}
