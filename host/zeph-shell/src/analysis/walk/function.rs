//! Functions: a call is what the body runs.

use zeph_core::command::Wraps;

use super::super::syntax::SyntaxCommand;
use super::super::value::Value;
use super::super::wrapper::{self, Look};
use super::{Piped, ScriptWalk, WalkPosition, uncertain};

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
        self.numbers.literals.enter();
        // What a call finds there is not known here.
        let around = std::mem::replace(&mut self.piped, Piped::Anything);
        self.command(uncertain(at), body);
        self.piped = around;
        self.numbers.literals.leave();
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
    pub(super) fn call(&mut self, values: &[Value]) {
        if let Some((name, arguments)) = values.split_first() {
            self.calls.push(self.line.commands.len());
            self.push(name, arguments, Wraps::Within);
        }
    }
}
