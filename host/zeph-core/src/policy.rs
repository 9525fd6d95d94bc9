//! May this call run? One ordered list of checks over values.
//!
//! [`AuthorizedCall`] has private fields and is minted here alone, with all that execution uses: a call that was not authorised cannot
//! be executed, and none with other arguments or another grant than those that were decided about. Every check looks at every call, so that a trace tells the whole story; what each finds is put together in one place ([`authorise`]). Nothing here
//! remembers anything: counting calls and using up approvals is its caller's part.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::call::{CallFrame, ResolvedCall};
use crate::category::{ErrorCategory, ErrorPhase};
use crate::command::CommandLine;
use crate::failure::ToolFailure;
use crate::id::ServerName;
use crate::lifetime::Lifetime;
use crate::tool::{Backend, Tool};

mod advice;
mod allow;
mod bad;
mod command;
mod facts;
mod globals;
mod guard;
mod heard;
mod leave;
mod names;
mod options;
mod pattern;
mod permission;
mod possible;
mod reach;
mod redirection;
mod rule;
mod scope;
mod subject;

pub use self::allow::AllowRule;
pub use self::bad::BadRule;
pub use self::command::CommandPattern;
pub use self::facts::{SessionFacts, TrustLevel};
pub use self::heard::HeardUrls;
pub use self::leave::Leave;
pub use self::permission::{Action, PermissionRule, PermissionSource, Permissions, ShellLists};
pub use self::rule::{
    ARGS_MATCH_BYTES_MAX, Effect, Hidden, POLICY_RULES_MAX, PathLayer, PolicyRule, PolicyRuleText,
    PolicyRules, ShownRule,
};
pub use self::scope::{Constraint, Scoped, ToolScope};
pub use self::subject::tool_key;

use self::subject::{RuleSubject, names, unanalysed};

/// The rules of one run. The default has none: what only reads runs, everything else asks.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// `--allow`: calls that run without asking.
    pub allow: Vec<AllowRule>,
    /// `tools.scoped`, when it is enabled.
    pub scoped: Option<Scoped>,
    /// `tools.scope`, when it is enabled.
    pub scope: Option<ToolScope>,
    /// `tools.policy` and `tools.authorization`, when either is enabled.
    pub rules: Option<PolicyRules>,
    /// `tools.permissions`, or the lists of `tools.shell`.
    pub permissions: PermissionSource,
    /// Whether commands of the network are refused, because the jail has none.
    pub denies_network: bool,
    /// `tools.max_tool_calls_per_session`.
    pub calls_max: Option<u32>,
    /// Directories whose content is the user's own to remove: the working directory and what commands may write. Absolute, resolved.
    pub roots: Vec<PathBuf>,
    /// Where relative paths of a call start. Absolute, resolved.
    pub directory: PathBuf,
    /// The server that `wrap` serves: its user chose it, so its tools run unless a rule says otherwise.
    pub wrapped: Option<ServerName>,
}

impl Policy {
    /// Whether nothing of a tool can run, so that models should not be told of it.
    pub fn hides(&self, tool: &Tool) -> bool {
        let names = names(tool);
        let is_denied = match &self.permissions {
            PermissionSource::Rules(permissions) => permissions.hides(&names),
            PermissionSource::Lists(_) => false,
        };
        let is_out_of_scope = |scoped: &Scoped| scoped.hides(&names);
        is_denied || self.scoped.as_ref().is_some_and(is_out_of_scope)
    }

    /// Whether any rule can look at [`ResolvedCall::paths`]; resolving them may be omitted when none does.
    pub fn looks_at_paths(&self) -> bool {
        !self.allow.is_empty()
            || matches!(self.permissions, PermissionSource::Rules(_))
            || self.rules.as_ref().is_some_and(PolicyRules::looks_at_paths)
            || self.scoped.as_ref().is_some_and(Scoped::looks_at_paths)
    }

    /// Whether any rule can look at the words of a command as paths ([`LinePlaces::words`](crate::command::LinePlaces)).
    pub fn looks_at_words(&self) -> bool {
        self.rules.as_ref().is_some_and(PolicyRules::looks_at_words)
            || self.scoped.as_ref().is_some_and(Scoped::looks_at_paths)
    }

    /// What the rules hide from the tool of `call`, also when it reaches it from above: lists of layers, each of which is asked by itself.
    ///
    /// A command has no such lists: the jail hides what can be hidden from it.
    pub fn hidden_paths(
        &self,
        facts: &SessionFacts<'_>,
        call: &ResolvedCall,
    ) -> Vec<Vec<PathLayer>> {
        if call.tool.backend == Backend::Shell {
            return Vec::new();
        }
        let subject = RuleSubject::new(self, call);
        let of_rules = self.rules.iter().map(|rules| rules.layers(&subject, facts));
        let of_permissions = match &self.permissions {
            PermissionSource::Rules(permissions) => permissions.layers(&subject.names),
            PermissionSource::Lists(_) => Vec::new(),
        };
        let lists = of_rules.chain(of_permissions);
        lists.filter(|layers| !layers.is_empty()).collect()
    }
}

impl Policy {
    /// Why the rules about commands forbid `call`, one of `bash`, if they do. Programs that plugins run are held to it, too.
    ///
    /// What was not granted to `bash` at all says nothing here: other tools and other grants may run the program.
    pub fn forbids(&self, facts: &SessionFacts<'_>, call: &ResolvedCall) -> Option<String> {
        let findings = look(self, facts, call);
        let named = [&findings.permissions, &findings.guards, &findings.rules];
        let denial = named.into_iter().find(|finding| {
            let by_default = finding.rule.as_deref() == Some(rule::DEFAULT_EFFECT);
            finding.verdict == Verdict::Deny && !by_default
        });
        denial.map(|finding| finding.detail.clone())
    }
}

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
    tool: Tool,
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

    /// What every check found.
    pub fn trace(&self) -> &[TraceStep] {
        match self {
            Self::Allow(call) => call.trace(),
            Self::Ask(refusal) | Self::Deny(refusal) => &refusal.trace,
        }
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

/// What one check found.
#[derive(Debug)]
struct Finding {
    verdict: Verdict,
    rule: Option<String>,
    detail: String,
    can_be_approved: bool,
    /// Rules for `--allow` that would turn it.
    allow: Vec<String>,
}

impl Finding {
    fn new(verdict: Verdict, rule: impl Into<String>) -> Self {
        let rule = rule.into();
        Self {
            verdict,
            detail: format!("{rule} matches"),
            rule: Some(rule),
            can_be_approved: verdict == Verdict::Ask,
            allow: Vec::new(),
        }
    }

    fn pass(detail: &str) -> Self {
        Self {
            verdict: Verdict::Pass,
            rule: None,
            detail: detail.to_owned(),
            can_be_approved: false,
            allow: Vec::new(),
        }
    }

    fn because(mut self, reason: impl Into<String>) -> Self {
        self.detail = reason.into();
        self
    }

    fn by(mut self, rule: String) -> Self {
        self.rule = Some(rule);
        self
    }

    fn approvable(mut self) -> Self {
        self.can_be_approved = true;
        self
    }

    fn missing(mut self, rules: Vec<String>) -> Self {
        self.allow = rules;
        self
    }
}

/// Every check in its order, with its name in traces.
struct Findings {
    scoped: Finding,
    scope: Finding,
    rules: Finding,
    permissions: Finding,
    guards: Finding,
    outside: Finding,
    obeyed: Finding,
    unknown: Finding,
    heard: Finding,
    trust: Finding,
    quota: Finding,
    default: Finding,
}

/// Decides about `call`, which nothing can run: for explanations. See [`authorise_with`].
pub fn authorise(policy: &Policy, facts: &SessionFacts<'_>, call: ResolvedCall) -> Decision {
    authorise_with(policy, facts, call, ())
}

/// Decides about `call`, and seals it with `work` when it may run.
///
/// The first check that refuses ends it. Else a call typed at the terminal is its own approval. Else the first of these that says something
/// decides: permissions and `--allow`; what cannot be known of a command, which asks; an explicit rule of the policy; an address
/// that nobody named, which asks; the default, by which what only reads or holds no right to change anything runs and everything else asks. An approval of exactly this call turns
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
    let advice: &[String] = match (finding.allow.is_empty(), findings.rules.verdict) {
        (false, _) => &finding.allow,
        // No flag overrules it.
        (true, Verdict::Ask) => &[],
        (true, _) => &findings.permissions.allow,
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
    let is_lifted = findings.scoped.verdict == Verdict::Deny;
    facts.approval.filter(|_| is_lifted)
}

fn look(policy: &Policy, facts: &SessionFacts<'_>, call: &ResolvedCall) -> Findings {
    let subject = RuleSubject::new(policy, call);
    let line = subject.line.as_ref();
    let off = || Finding::pass("not enabled");
    let scoped = policy.scoped.as_ref();
    let scope = policy.scope.as_ref();
    let (rules, written) = match &policy.rules {
        Some(rules) => rules.check(&subject, facts),
        None => (off(), Vec::new()),
    };
    Findings {
        scoped: scoped.map_or_else(off, |scoped| scoped.check(policy, &subject)),
        scope: scope.map_or_else(off, |scope| scope.check(facts)),
        rules,
        permissions: permission::check(policy, &subject, &written),
        guards: line.map_or_else(
            || Finding::pass("no command"),
            |line| guard::check(policy, line),
        ),
        outside: outside(call),
        obeyed: leave::check(policy, facts, &subject),
        unknown: unknown(line),
        heard: heard::check(facts, call),
        trust: trust(facts, call),
        quota: quota(policy, facts),
        default: default(policy, &subject),
    }
}

impl Findings {
    fn all(&self) -> [(&'static str, &Finding); 12] {
        let Self {
            scoped,
            scope,
            rules,
            permissions,
            guards,
            outside,
            obeyed,
            unknown,
            heard,
            trust,
            quota,
            default,
        } = self;
        [
            ("scoped", scoped),
            ("scope", scope),
            ("policy", rules),
            ("permissions", permissions),
            ("built-in", guards),
            ("directories", outside),
            ("obeyed", obeyed),
            ("analysis", unknown),
            ("addresses", heard),
            ("trust", trust),
            ("quota", quota),
            ("default", default),
        ]
    }

    fn trace(&self) -> Vec<TraceStep> {
        let steps = self.all().into_iter().map(|(check, finding)| TraceStep {
            check,
            verdict: finding.verdict,
            rule: finding.rule.clone(),
            detail: finding.detail.clone(),
        });
        steps.collect()
    }

    /// The first refusal that no approval lifts.
    fn denial(&self, facts: &SessionFacts<'_>) -> Option<&Finding> {
        let is_approved = facts.approval.is_some();
        self.all()
            .into_iter()
            .map(|(_, finding)| finding)
            .filter(|finding| finding.verdict == Verdict::Deny)
            .find(|finding| !(finding.can_be_approved && is_approved))
    }

    /// What decides when nothing refuses. The default always says something.
    fn decisive(&self) -> &Finding {
        // A rule that would refuse if the call were what it may turn out to be is stronger than one that allows.
        let doubt = Some(&self.rules).filter(|rules| rules.verdict == Verdict::Ask);
        let others = [
            &self.obeyed,
            &self.permissions,
            &self.unknown,
            &self.rules,
            &self.heard,
        ];
        doubt
            .into_iter()
            .chain(others)
            .find(|finding| finding.verdict != Verdict::Pass)
            .unwrap_or(&self.default)
    }
}

fn outside(call: &ResolvedCall) -> Finding {
    match &call.files.outside {
        None => Finding::pass("no path outside the allowed directories"),
        Some(reason) => Finding::new(Verdict::Deny, "tools.file.allowed_paths").because(reason),
    }
}

fn unknown(line: Option<&subject::LineTexts<'_>>) -> Finding {
    let Some(first) = line.and_then(|line| line.unknown.first()) else {
        return Finding::pass("nothing is hidden");
    };
    let part = crate::failure::one_line(&first.part, 200);
    let reason = format!(
        "what `{part}` does is known only when it runs: {}",
        crate::failure::one_line(&first.reason, 200)
    );
    Finding::new(Verdict::Ask, "analysis: what cannot be known asks").because(reason)
}

fn trust(facts: &SessionFacts<'_>, call: &ResolvedCall) -> Finding {
    if facts.trust == TrustLevel::Blocked {
        return Finding::new(Verdict::Deny, "trust").because("the session is blocked");
    }
    if !facts.blocked_tools.contains(call.name()) {
        return Finding::pass("not blocked");
    }
    let reason = format!(
        "`{}` is blocked until the operator resets its trust",
        call.name()
    );
    Finding::new(Verdict::Deny, "trust").because(reason)
}

fn quota(policy: &Policy, facts: &SessionFacts<'_>) -> Finding {
    match policy.calls_max {
        Some(max) if facts.calls_made >= max => {
            let reason = format!(
                "Tool call quota exceeded (session limit: {max} calls, `tools.max_tool_calls_per_session`). No further tool calls are allowed this session."
            );
            Finding::new(Verdict::Deny, "quota").because(reason)
        }
        Some(max) => {
            let detail = format!("{} of {max} calls made", facts.calls_made);
            Finding::pass(&detail)
        }
        None => Finding::pass("no limit"),
    }
}

fn default(policy: &Policy, subject: &RuleSubject<'_>) -> Finding {
    let call = subject.call;
    let promises = call.tool.annotations;
    let name = call.name();
    if policy
        .scope
        .as_ref()
        .is_some_and(|scope| scope.require_capability)
    {
        let reason = format!(
            "no rule allows `{name}`, and `tools.scope.require_capability` wants one for every call"
        );
        return Finding::new(Verdict::Ask, "tools.scope.require_capability").because(reason);
    }
    if let PermissionSource::Rules(permissions) = &policy.permissions
        && permissions.knows(&subject.names)
    {
        let rule = format!("tools.permissions.{name}: what matches no rule asks");
        let reason = format!("no rule of `tools.permissions.{name}` allows it");
        return Finding::new(Verdict::Ask, rule).because(reason);
    }
    if let Backend::Mcp(tool) = &call.tool.backend
        && policy.wrapped.as_ref() == Some(&tool.server)
    {
        return Finding::new(Verdict::Allow, "default: the tools of a wrapped server run");
    }
    if promises.read_only && !promises.open_world {
        return Finding::new(Verdict::Allow, "default: read-only tools run");
    }
    if !call.can_change {
        let rule = "default: tools without a right to change anything run";
        return Finding::new(Verdict::Allow, rule);
    }
    let reason = format!("`{name}` changes something, and no rule allows it");
    Finding::new(Verdict::Ask, "default: tools that change something ask").because(reason)
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

#[cfg(test)]
mod tests;
