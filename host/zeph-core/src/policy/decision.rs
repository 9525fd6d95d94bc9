//! What is decided about a call: the decision, the proof that it may run, the trace of every check.
//!
//! [`AuthorizedCall`] has private fields and is minted here alone.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::finding::Finding;
use super::findings::{Findings, look};
use super::subject::{names, unanalysed};
use super::{Leave, Policy, SessionFacts, advice};
use crate::call::{CallFrame, ResolvedCall};
use crate::category::{ErrorCategory, ErrorPhase};
use crate::command::CommandLine;
use crate::failure::ToolFailure;
use crate::lifetime::Lifetime;
use crate::tool::Tool;

/// Proof that a call may run, and all that runs it: execution consumes it and takes nothing else.
///
/// `W` is what a backend works with: the component and its effective grant, the options of a command. Nothing outside this module can
/// build one or exchange a part of it.
///
/// ```compile_fail,E0451
/// use zeph_core::policy::AuthorizedCall;
///
/// fn with_more(call: AuthorizedCall<u32>) -> AuthorizedCall<u32> {
///     AuthorizedCall { work: 7, ..call }
/// }
/// ```
///
/// ```compile_fail,E0616
/// use zeph_core::policy::AuthorizedCall;
///
/// fn with_more(call: &mut AuthorizedCall<u32>) {
///     call.work = 7;
/// }
/// ```
#[derive(Debug)]
pub struct AuthorizedCall<W = ()> {
    seal: Box<Seal>,
    work: W,
}

/// A work that is one of several backends': it says whose.
pub trait Routed: Sized {
    /// One variant for each backend, each with a call of that backend's work.
    type Calls;

    /// Puts its part under the seal of the call it came with.
    fn route(self, seal: Box<Seal>) -> Self::Calls;
}

/// What was decided about one call, without the work it was decided with. Only [`AuthorizedCall::route`] gives one out.
#[derive(Debug)]
pub struct Seal {
    frame: CallFrame,
    tool: Arc<Tool>,
    arguments: Map<String, Value>,
    command: Option<Box<CommandLine>>,
    rule: String,
    approval: Option<Lifetime>,
    leave: Leave,
    trace: Vec<TraceStep>,
}

impl<W> AuthorizedCall<W> {
    /// What its backend works with.
    pub fn work(&self) -> &W {
        &self.work
    }

    /// The same call for the one backend whose work it is.
    pub fn route(self) -> W::Calls
    where
        W: Routed,
    {
        self.work.route(self.seal)
    }

    /// The call's identity, its principal and its turn.
    pub fn frame(&self) -> &CallFrame {
        &self.seal.frame
    }

    /// The tool to run.
    pub fn tool(&self) -> &Tool {
        &self.seal.tool
    }

    /// The same, to be kept without a copy.
    pub fn shared_tool(&self) -> Arc<Tool> {
        Arc::clone(&self.seal.tool)
    }

    /// The checked arguments.
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.seal.arguments
    }

    /// Its command line, if it has one: the text that runs, and what is known of it.
    pub fn command(&self) -> Option<&CommandLine> {
        self.seal.command.as_deref()
    }

    /// The rule that allowed it, for the audit.
    pub fn rule(&self) -> &str {
        &self.seal.rule
    }

    /// The approval without which it would not run. [`Lifetime::Once`] is used up by executing it.
    pub fn approval(&self) -> Option<Lifetime> {
        self.seal.approval
    }

    /// What it may change of what programs obey.
    pub fn leave(&self) -> &Leave {
        &self.seal.leave
    }

    /// What every check found.
    pub fn trace(&self) -> &[TraceStep] {
        &self.seal.trace
    }
}

impl Seal {
    /// Closes the call over the part of its work that one backend does.
    pub fn over<T>(self: Box<Self>, work: T) -> AuthorizedCall<T> {
        AuthorizedCall { seal: self, work }
    }
}

/// What the authoriser says.
#[derive(Debug)]
pub enum Decision<W = ()> {
    /// It may run.
    Allow(AuthorizedCall<W>),
    /// A person has to agree; without one it is refused with this.
    Ask(Refusal),
    /// It may not run.
    Deny(Refusal),
}

impl<W> Decision<W> {
    /// The rule that decided.
    pub fn rule(&self) -> &str {
        match self {
            Self::Allow(call) => call.rule(),
            Self::Ask(refusal) | Self::Deny(refusal) => &refusal.rule,
        }
    }

    /// What it comes to, in one word.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Allow(_) => Verdict::Allow,
            Self::Ask(_) => Verdict::Ask,
            Self::Deny(_) => Verdict::Deny,
        }
    }

    /// What every check found.
    pub fn trace(&self) -> &[TraceStep] {
        match self {
            Self::Allow(call) => call.trace(),
            Self::Ask(refusal) | Self::Deny(refusal) => &refusal.trace,
        }
    }

    /// The same decision with what a check found that is made elsewhere.
    #[must_use]
    pub fn noting(mut self, step: TraceStep) -> Self {
        match &mut self {
            Self::Allow(call) => call.seal.trace.push(step),
            Self::Ask(refusal) | Self::Deny(refusal) => refusal.trace.push(step),
        }
        self
    }
}

/// Why a call does not run, and which rule said so.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// What the caller is told.
    pub failure: ToolFailure,
    /// The rule that decided, for the audit.
    pub rule: String,
    /// Why, in a sentence for the person who is asked; without advice.
    pub reason: String,
    /// Rules for `--allow` that together would let it run, unquoted; empty when none can.
    pub allow: Vec<String>,
    /// Whether a person's agreement to exactly this call would let it run.
    pub can_be_approved: bool,
    /// What every check found.
    pub trace: Vec<TraceStep>,
}

impl Refusal {
    /// Adds the exact command with which a person agrees to this one call.
    pub fn with_approve_command(mut self, command: &str) -> Self {
        let message = &mut self.failure.message;
        message.push_str(&format!("; approve this one call with `{command}`"));
        self
    }
}

/// What one check found, for `explain` and the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceStep {
    /// The check.
    pub check: &'static str,
    /// What it says.
    pub verdict: Verdict,
    /// The rule behind it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why, in words.
    pub detail: String,
    /// What a rule that only observes would have said; none of what decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would: Option<Verdict>,
}

impl TraceStep {
    /// What a check found, without a rule behind it.
    pub fn new(check: &'static str, verdict: Verdict, detail: impl Into<String>) -> Self {
        Self {
            check,
            verdict,
            rule: None,
            detail: detail.into(),
            would: None,
        }
    }
}

/// What one check says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing: others decide.
    Pass,
    /// It may run, if no other check refuses.
    Allow,
    /// A person has to agree.
    Ask,
    /// It may not run, whatever others say.
    Deny,
}

impl Verdict {
    /// As it stands in records and JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Decides about `call`, which nothing can run: for explanations. See [`authorise_with`].
pub fn authorise(policy: &Policy, facts: &SessionFacts<'_>, call: ResolvedCall) -> Decision {
    authorise_with(policy, facts, call, ())
}

/// Decides about `call`, and seals it with `work` when it may run.
///
/// The first check that refuses ends it. Else a call typed at the terminal is its own approval. Else the first of these that says something
/// decides: a sequence of calls, or what would leave the machine, which ask; what asks whatever else allows (a rule of the policy, a scope, a grant); permissions and `--allow`; what cannot be known of a
/// command, which asks; an explicit rule of the policy; an address that nobody named, which asks; the default, by which what only reads or holds no right to change anything runs and everything else asks. An approval of exactly this call turns
/// a question into a yes, and lifts a constraint of `tools.scoped`.
pub fn authorise_with<W>(
    policy: &Policy,
    facts: &SessionFacts<'_>,
    mut call: ResolvedCall,
    work: W,
) -> Decision<W> {
    if let Some(line) = unanalysed(&call) {
        call.command = Some(line);
    }
    let findings = look(policy, facts, &call);
    let trace = findings.trace();
    if let Some(finding) = findings.denial(facts) {
        return Decision::Deny(refusal(finding, &[], ErrorCategory::PolicyBlocked, trace));
    }
    let names = names(&call.tool);
    let leave = Leave::by_rules(policy, &names).with_policy(policy, facts, &names);
    let leave = leave.of_objects(facts.agreed_objects);
    if call.frame.principal.is_operator() {
        let leave = leave.agreed(&call);
        let rule = "typed at the terminal".to_owned();
        let approval = lifted(&findings, facts);
        return sealed(call, work, (rule, approval), leave, trace);
    }
    let finding = findings.decisive();
    let rule = finding.rule.clone().unwrap_or_default();
    if finding.verdict == Verdict::Allow {
        let lifted = lifted(&findings, facts);
        let leave = match lifted {
            Some(_) => leave.agreed(&call),
            None => leave.named(&call),
        };
        return sealed(call, work, (rule, lifted), leave, trace);
    }
    if let Some(approval) = facts.approval {
        let (leave, rule) = (leave.agreed(&call), approved(approval).to_owned());
        return sealed(call, work, (rule, Some(approval)), leave, trace);
    }
    let advice: &[String] = match finding.allow.is_empty() {
        false => &finding.allow,
        // No flag overrules it.
        true if findings.asks_anyway() || findings.is_governed(finding) => &[],
        true => &findings.permissions.allow,
    };
    Decision::Ask(refusal(
        finding,
        advice,
        ErrorCategory::ConfirmationRequired,
        trace,
    ))
}

/// The approval, when a refusal was lifted by it.
fn lifted(findings: &Findings, facts: &SessionFacts<'_>) -> Option<Lifetime> {
    let is_lifted = matches!(findings.scoped.verdict, Verdict::Deny | Verdict::Ask);
    facts.approval.filter(|_| is_lifted)
}

fn approved(approval: Lifetime) -> &'static str {
    match approval {
        Lifetime::Once => "approved once",
        Lifetime::Session => "approved for the session",
        Lifetime::Always => "approved for always",
    }
}

fn refusal(
    finding: &Finding,
    allow: &[String],
    category: ErrorCategory,
    trace: Vec<TraceStep>,
) -> Refusal {
    let reason = finding.detail.clone();
    let message = match allow {
        [] => reason.clone(),
        // A tool without a command: its whole, or a pattern of the operator's choice.
        [tool] if !tool.contains(':') => format!(
            "{reason}; the operator can allow it with `--allow {tool}` or `--allow '{tool}:PATTERN'`"
        ),
        rules => format!(
            "{reason}; the operator can allow it with `{}`",
            advice::flags(rules)
        ),
    };
    Refusal {
        failure: ToolFailure::new(category, ErrorPhase::Setup, message),
        rule: finding.rule.clone().unwrap_or_default(),
        reason,
        allow: allow.to_vec(),
        can_be_approved: finding.can_be_approved,
        trace,
    }
}

fn sealed<W>(
    call: ResolvedCall,
    work: W,
    (rule, approval): (String, Option<Lifetime>),
    leave: Leave,
    trace: Vec<TraceStep>,
) -> Decision<W> {
    let seal = Box::new(Seal {
        frame: call.frame,
        tool: call.tool,
        arguments: call.arguments.values,
        command: call.command.map(Box::new),
        rule,
        approval,
        leave,
        trace,
    });
    Decision::Allow(seal.over(work))
}
