//! The judge of calls in the line (`tools.adversarial_policy`): asked after the rules have allowed a call and before anything of it is
//! recorded or runs. Fails closed.

use std::sync::Arc;

use serde_json::Value;
use zeph_agent::SideSpending;
use zeph_agent::budget::CallMeter;
use zeph_agent::judge::{Judge, JudgedCall, Verdict};
use zeph_config::{Config, JudgeSettings};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::policy::{self, AuthorizedCall, Decision, Refusal, TraceStep, tool_key};
use zeph_core::tool::Tool;
use zeph_egress::Egress;
use zeph_store::{AuditFilter, BeginRecord, Store};

use crate::agent::models::{self, NoModel};
use crate::calls::CallControl;
use crate::clock::moment;
use crate::dependencies::keys_of;
use crate::known_secrets::KnownSecrets;
use crate::session::Session;

/// The check in traces, and the rule behind it.
const CHECK: &str = "adversarial";
const RULE: &str = "tools.adversarial_policy";

/// What a model is told of a denial; why is told to the operator alone: who writes the calls shall not learn what the judge looks at.
const DENIED: &str = "[adversarial] Tool call denied by policy";

/// Calls of a tool among which an earlier verdict is looked for.
const RECORDS_MAX: u32 = 1_000;

/// Characters of why there is no verdict.
const WHY_CHARS_MAX: usize = 300;

/// The judge and how it is used.
#[derive(Debug)]
pub(crate) struct JudgeRoom {
    /// Or why it cannot be asked, in a host that was not started for calls: any it makes is without a verdict.
    judge: Result<Judge, String>,
    settings: JudgeSettings,
    secrets: Arc<KnownSecrets>,
}

/// What a judge is told of a program that a tool runs.
const PROGRAM: &str = "A program that a plugin's tool runs in the sandbox, without a shell.";

/// What a guest is told of a program that the judge rejects.
const PROGRAM_DENIED: &str = "[adversarial] denied by policy (`tools.adversarial_policy`); `zeph-host audit` tells the operator why";

/// What came of judging a program.
#[derive(Debug, Clone)]
pub(crate) struct ProgramVerdict {
    /// For the record.
    pub(crate) verdict: String,
    is_refused: bool,
}

impl ProgramVerdict {
    /// Why the program must not run.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        self.is_refused.then_some(PROGRAM_DENIED)
    }
}

/// What came of judging a call.
#[derive(Debug, Clone)]
pub(crate) struct JudgeResult {
    /// For the record: `ALLOW` or `DENY: reason`, or why there was no verdict.
    pub(crate) verdict: String,
    ruling: Ruling,
}

/// What a verdict comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ruling {
    Allowed,
    /// The judge said no.
    Denied,
    /// The judge said nothing, and the call must not run without a verdict.
    Missing,
}

impl JudgeRoom {
    /// The judge of the configuration; none when calls are not judged.
    ///
    /// Errors: [`NoModel`] when its model cannot be asked, such as one without a key, and the host is `for_calls`: then nothing starts.
    pub(crate) fn new(
        config: &Config,
        secrets: &Arc<KnownSecrets>,
        egress: &Egress,
        for_calls: bool,
    ) -> Result<Option<Self>, NoModel> {
        let Some(settings) = &config.judge else {
            return Ok(None);
        };
        let judge = match models::connect(config, secrets, egress, &settings.provider) {
            Ok(provider) => Ok(Judge::new(provider, &settings.policies)),
            Err(missing) if for_calls => return Err(missing),
            Err(missing) => Err(missing.problem),
        };
        Ok(Some(Self {
            judge,
            settings: settings.clone(),
            secrets: Arc::clone(secrets),
        }))
    }

    /// Whether calls of `tool` are judged.
    pub(crate) fn judges(&self, tool: &Tool) -> bool {
        let exempt = |key: &String| {
            let mut names = self.settings.exempt_tools.iter();
            names.any(|name| tool_key(name) == *key)
        };
        !keys_of(tool).iter().any(exempt)
    }

    /// Asks about a call that the rules allow.
    ///
    /// Errors: `cancelled`.
    pub(crate) async fn ask<W>(
        &self,
        session: &Session,
        call: &AuthorizedCall<W>,
        control: &CallControl,
    ) -> Result<JudgeResult, ToolFailure> {
        let said = session.last_said();
        let arguments = call.arguments().clone().into();
        let judged = JudgedCall {
            tool: call.tool().name.as_str(),
            description: &call.tool().description,
            arguments: &arguments,
            user: said.as_deref(),
        };
        self.judged(judged, control.meter.as_ref(), control.cancel.cancelled())
            .await
    }

    /// Asks about a program that a call of `tool` is about to run, whose grant and rules allow it. None when calls of that tool are not
    /// judged.
    pub(crate) async fn ask_about_program(
        &self,
        tool: &Tool,
        line: &Value,
        (said, meter): (Option<&str>, Option<&CallMeter>),
        cancelled: impl Future<Output = ()>,
    ) -> Option<ProgramVerdict> {
        if !self.judges(tool) {
            return None;
        }
        let name = format!("program of `{}`", tool.name);
        let judged = JudgedCall {
            tool: &name,
            description: PROGRAM,
            arguments: line,
            user: said,
        };
        Some(match self.judged(judged, meter, cancelled).await {
            Ok(result) => ProgramVerdict {
                is_refused: self.refuses(&result),
                verdict: result.verdict,
            },
            Err(_cancelled) => ProgramVerdict {
                verdict: "DENY: the call ended before the program was judged".to_owned(),
                is_refused: true,
            },
        })
    }

    async fn judged(
        &self,
        judged: JudgedCall<'_>,
        meter: Option<&CallMeter>,
        cancelled_call: impl Future<Output = ()>,
    ) -> Result<JudgeResult, ToolFailure> {
        if let Some(exhausted) = meter.and_then(CallMeter::exhausted) {
            let verdict = format!("DENY: the judge was not asked. {exhausted}");
            return Ok(JudgeResult::missing(verdict));
        }
        let judge = match &self.judge {
            Ok(judge) => judge,
            Err(missing) => return Ok(self.without_verdict(missing)),
        };
        let redactor = self.secrets.redactor();
        let mut spent = SideSpending::default();
        let asked = judge.judge(judged, &redactor, &mut spent);
        let asked = tokio::time::timeout(self.settings.timeout, asked);
        let answer = tokio::select! {
            biased;
            () = cancelled_call => None,
            answer = asked => Some(answer),
        };
        if let Some(meter) = meter {
            meter.add(&spent);
        }
        let result = match answer.ok_or_else(cancelled)? {
            Ok(Ok(verdict)) => JudgeResult::of(verdict),
            Ok(Err(problem)) => self.without_verdict(&problem.to_string()),
            Err(_) => self.without_verdict(&format!(
                "no answer within {}",
                crate::run::render::duration(self.settings.timeout)
            )),
        };
        Ok(result)
    }

    /// There is none: the call does not run, unless the operator said so.
    fn without_verdict(&self, why: &str) -> JudgeResult {
        let why = one_line(&self.secrets.redactor().text(why), WHY_CHARS_MAX);
        tracing::warn!(why, "a call was not judged");
        let provider = &self.settings.provider;
        match self.settings.fail_open {
            true => JudgeResult {
                verdict: format!(
                    "ALLOW: not judged, because `{provider}` gave no verdict ({why}) and `{RULE}.fail_open` is set"
                ),
                ruling: Ruling::Allowed,
            },
            false => JudgeResult::missing(format!("DENY: `{provider}` gave no verdict ({why})")),
        }
    }

    /// Whether the call must not run. To let denied calls run is not to let them run unjudged: that is `fail_open`.
    fn refuses(&self, result: &JudgeResult) -> bool {
        match result.ruling {
            Ruling::Allowed => false,
            Ruling::Denied => self.settings.block_on_reject,
            Ruling::Missing => true,
        }
    }

    /// What follows from a verdict: the decision, and what the caller should know when the call runs nevertheless.
    pub(crate) fn follow<W>(
        &self,
        decision: Decision<W>,
        result: &JudgeResult,
    ) -> (Decision<W>, Option<String>) {
        let is_refused = self.refuses(result);
        let verdict = match is_refused {
            true => policy::Verdict::Deny,
            false => policy::Verdict::Allow,
        };
        let is_observed = result.ruling == Ruling::Denied && !is_refused;
        let step = TraceStep {
            rule: Some(RULE.to_owned()),
            would: is_observed.then_some(policy::Verdict::Deny),
            ..TraceStep::new(CHECK, verdict, result.verdict.clone())
        };
        if is_refused {
            let trace = decision.trace().iter().cloned().chain([step]).collect();
            return (Decision::Deny(refusal(result.verdict.clone(), trace)), None);
        }
        let note = is_observed.then(|| {
            "the judge of calls rejected this call; it ran because `tools.adversarial_policy.block_on_reject` is false".to_owned()
        });
        if is_observed {
            tracing::warn!(
                verdict = result.verdict,
                "a call runs that the judge rejected"
            );
        }
        (decision.noting(step), note)
    }

    /// A decision that the rules made, with what is known of the judge's without asking it: what it said of the very same call before.
    /// One that it denied then is shown as denied, because it most likely is again.
    pub(crate) async fn foresee(
        &self,
        store: &Store,
        call: &BeginRecord,
        decision: Decision,
    ) -> Decision {
        let provider = &self.settings.provider;
        let Some((verdict, when)) = earlier(store, call).await else {
            let detail = format!("`{provider}` will be asked before the call runs");
            return decision.noting(TraceStep {
                rule: Some(RULE.to_owned()),
                ..TraceStep::new(CHECK, policy::Verdict::Pass, detail)
            });
        };
        let detail = format!(
            "`{provider}` will be asked again; of the same call it said on {when}: {verdict}"
        );
        let is_denied = verdict.starts_with("DENY") && self.settings.block_on_reject;
        let verdict = match is_denied {
            true => policy::Verdict::Deny,
            false => policy::Verdict::Pass,
        };
        let step = TraceStep {
            rule: Some(RULE.to_owned()),
            ..TraceStep::new(CHECK, verdict, detail.clone())
        };
        match is_denied {
            true => {
                let trace = decision.trace().iter().cloned().chain([step]).collect();
                Decision::Deny(refusal(detail, trace))
            }
            false => decision.noting(step),
        }
    }
}

impl JudgeResult {
    fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Allow => Self {
                verdict: "ALLOW".to_owned(),
                ruling: Ruling::Allowed,
            },
            Verdict::Deny(reason) => Self {
                verdict: format!("DENY: {reason}"),
                ruling: Ruling::Denied,
            },
        }
    }

    fn missing(verdict: String) -> Self {
        Self {
            verdict,
            ruling: Ruling::Missing,
        }
    }
}

/// The newest verdict about a call with this tool and these arguments, and when it was given.
async fn earlier(store: &Store, call: &BeginRecord) -> Option<(String, String)> {
    let filter = AuditFilter {
        tool: Some(call.tool.clone()),
        ..AuditFilter::newest(RECORDS_MAX)
    };
    let records = store.audit_query(filter).await.unwrap_or_default();
    let same = records
        .into_iter()
        .filter(|record| record.begin.command == call.command);
    let mut judged = same.filter_map(|record| {
        let at = moment(record.begin.at_ms);
        Some((record.begin.adversarial_verdict?, at))
    });
    judged.next()
}

fn refusal(reason: String, trace: Vec<TraceStep>) -> Refusal {
    let message = format!(
        "{DENIED} (`{RULE}`); `zeph-host audit` tells the operator why, and `{RULE}.exempt_tools` exempts a tool"
    );
    Refusal {
        failure: ToolFailure::new(ErrorCategory::PolicyBlocked, ErrorPhase::Setup, message),
        rule: RULE.to_owned(),
        reason,
        allow: Vec::new(),
        can_be_approved: false,
        trace,
    }
}

fn cancelled() -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::Cancelled,
        ErrorPhase::Setup,
        "the call was cancelled while it was judged",
    )
}
