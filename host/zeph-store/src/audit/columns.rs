//! The columns of the audit table, from records and back, whatever the database.

use std::error::Error;
use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::value::Value;
use crate::audit::record::{
    AuditRecord, BeginFacts, BeginRecord, Ending, Failed, Finish, HostProcess, TokenUse,
};
use crate::error::ErrorSource;
use crate::sqlite::label;

/// What is known of a call when it begins. New columns come last: the chain numbers them by their place.
macro_rules! begin_columns {
    () => {
        "call_id, begun_at_ms, tool, command, conversation_id, claim_source, caller_id, policy_match, \
         correlation_id, resolved_cwd, plugin, plugin_digest, host_pid, host_start, turn_id, goal_id, \
         skill_name, agreement, mcp_server_id, adversarial_verdict, \"user\", scope, trust, labels, observed, \
         tokens_in, tokens_out, asked"
    };
}

/// What is known of a call when it has ended. New columns come last.
macro_rules! end_columns {
    () => {
        "finished_at_ms, result, result_detail, duration_ms, error_category, error_domain, \
         error_phase, truncated, overflow_id, exit_code, execution_env, hosts, attempts, \
         cache_age_ms, cache_bytes, result_labels"
    };
}

pub(crate) use {begin_columns, end_columns};

/// How many columns the chain vouches for when a call begins, and when it ends.
pub(crate) const N_BEGIN: usize = 28;
pub(crate) const N_END: usize = 16;

/// The number of the first column of an end in what a tag is made over; those of a begin count from 0.
///
/// A number is for ever: a new column gets the next one, and a column that is null adds nothing, so that older tags stay good.
pub(crate) const FIRST_OF_END: u8 = 128;

/// A column that holds what it should not.
#[derive(Debug)]
pub(crate) struct BadColumn {
    pub(crate) column: usize,
    pub(crate) problem: ErrorSource,
}

/// The values of a begin, in the order of its columns.
pub(crate) fn begin_values(begin: &BeginRecord) -> [Value<'_>; N_BEGIN] {
    let BeginRecord {
        call_id,
        at_ms,
        tool,
        plugin,
        plugin_digest,
        mcp_server_id,
        command,
        conversation_id,
        claim_source,
        caller_id,
        turn_id,
        goal_id,
        skill_name,
        policy_match,
        agreement,
        adversarial_verdict,
        correlation_id,
        resolved_cwd,
        host,
        facts,
    } = begin;
    let host = host.as_ref();
    [
        call_id.to_string().into(),
        (*at_ms).into(),
        tool.into(),
        command.into(),
        conversation_id.to_string().into(),
        claim_source.map(label::source_label).into(),
        caller_id.as_ref().into(),
        policy_match.as_ref().into(),
        correlation_id.as_ref().into(),
        resolved_cwd.as_ref().into(),
        plugin.as_ref().into(),
        plugin_digest.as_ref().into(),
        host.map(|host| host.pid).into(),
        host.map(|host| host.start.as_str()).into(),
        turn_id.as_ref().into(),
        goal_id.as_ref().into(),
        skill_name.as_ref().into(),
        agreement.as_ref().map(label::json).into(),
        mcp_server_id.as_ref().into(),
        adversarial_verdict.as_ref().into(),
        facts.user.as_ref().into(),
        facts.scope.as_ref().into(),
        facts.trust.as_ref().into(),
        list_column(&facts.labels).into(),
        facts.observed.as_ref().into(),
        facts.tokens.map(|tokens| tokens.input).into(),
        facts.tokens.map(|tokens| tokens.output).into(),
        facts.asked.into(),
    ]
}

/// The values of an end, in the order of its columns.
pub(crate) fn end_values(finish: &Finish) -> [Value<'_>; N_END] {
    let Finish { at_ms, ending, .. } = finish;
    let Ending {
        result,
        duration_ms,
        failed,
        truncated,
        overflow_id,
        exit_code,
        execution_env,
        hosts,
        attempts,
        cache_age_ms,
        cache_bytes,
        labels,
    } = ending;
    let (result, detail) = label::result_columns(result);
    [
        (*at_ms).into(),
        result.into(),
        detail.into(),
        (*duration_ms).into(),
        failed.map(|failed| failed.category.label()).into(),
        failed
            .map(|failed| label::domain_label(failed.category.domain()))
            .into(),
        failed.map(|failed| label::phase_label(failed.phase)).into(),
        (*truncated).into(),
        overflow_id.map(|id| id.to_string()).into(),
        (*exit_code).into(),
        execution_env.as_ref().into(),
        list_column(hosts).into(),
        (*attempts).into(),
        (*cache_age_ms).into(),
        (*cache_bytes).into(),
        list_column(labels).into(),
    ]
}

/// A list as a JSON array; null when it is empty.
fn list_column<T: Serialize>(list: &[T]) -> Option<String> {
    (!list.is_empty()).then(|| label::json(&list))
}

/// A row that was read: the columns of a begin, then those of an end.
pub(crate) struct RowValues(Vec<Value<'static>>);

impl RowValues {
    pub(crate) fn new(values: Vec<Value<'static>>) -> Self {
        Self(values)
    }

    /// The record in them.
    pub(crate) fn record(mut self) -> Result<AuditRecord, BadColumn> {
        let begin = self.begin()?;
        let finished_at_ms = self.integer(N_BEGIN)?;
        let ending = finished_at_ms.map(|_: i64| self.ending()).transpose()?;
        Ok(AuditRecord {
            begin,
            finished_at_ms,
            ending,
        })
    }

    fn begin(&mut self) -> Result<BeginRecord, BadColumn> {
        Ok(BeginRecord {
            call_id: self.parsed(0)?,
            at_ms: self.needed(1)?,
            tool: self.text(2)?.unwrap_or_default(),
            command: self.text(3)?.unwrap_or_default(),
            conversation_id: self.parsed(4)?,
            claim_source: self.labelled(5, label::source_from)?,
            caller_id: self.text(6)?,
            policy_match: self.text(7)?,
            correlation_id: self.text(8)?,
            resolved_cwd: self.text(9)?,
            plugin: self.text(10)?,
            plugin_digest: self.text(11)?,
            host: self.host()?,
            turn_id: self.text(14)?,
            goal_id: self.text(15)?,
            skill_name: self.text(16)?,
            // One of a program that knows more than this one counts as none.
            agreement: self
                .text(17)?
                .and_then(|text| serde_json::from_str(&text).ok()),
            mcp_server_id: self.text(18)?,
            adversarial_verdict: self.text(19)?,
            facts: self.facts()?,
        })
    }

    /// The process of a row; none when an older program wrote it.
    fn host(&mut self) -> Result<Option<HostProcess>, BadColumn> {
        let pid: Option<u32> = self.integer(12)?;
        let start = self.text(13)?;
        Ok(pid
            .zip(start)
            .map(|(pid, start)| HostProcess { pid, start }))
    }

    fn facts(&mut self) -> Result<BeginFacts, BadColumn> {
        let input: Option<u64> = self.integer(25)?;
        let output: Option<u64> = self.integer(26)?;
        Ok(BeginFacts {
            user: self.text(20)?,
            scope: self.text(21)?,
            trust: self.text(22)?,
            labels: self.list(23)?,
            observed: self.text(24)?,
            tokens: input
                .zip(output)
                .map(|(input, output)| TokenUse { input, output }),
            asked: match self.0[27] {
                Value::Null => None,
                _ => Some(self.flag(27)?),
            },
        })
    }

    fn ending(&mut self) -> Result<Ending, BadColumn> {
        const AT: usize = N_BEGIN;
        let detail = self.text(AT + 2)?.unwrap_or_default();
        let result = self.labelled(AT + 1, |text| label::result_from(text, detail))?;
        let category = self.labelled(AT + 4, label::category_from)?;
        let phase = self.labelled(AT + 6, label::phase_from)?;
        Ok(Ending {
            result: result.ok_or_else(|| bad(AT + 1, "an ended call has no result"))?,
            duration_ms: self.needed(AT + 3)?,
            failed: category
                .zip(phase)
                .map(|(category, phase)| Failed { category, phase }),
            truncated: self.flag(AT + 7)?,
            overflow_id: match self.0[AT + 8] {
                Value::Null => None,
                _ => Some(self.parsed(AT + 8)?),
            },
            exit_code: self.integer(AT + 9)?,
            execution_env: self.text(AT + 10)?,
            hosts: self.list(AT + 11)?,
            attempts: self.integer(AT + 12)?,
            cache_age_ms: self.integer(AT + 13)?,
            cache_bytes: self.integer(AT + 14)?,
            labels: self.list(AT + 15)?,
        })
    }

    fn take(&mut self, column: usize) -> Value<'static> {
        std::mem::replace(&mut self.0[column], Value::Null)
    }

    fn text(&mut self, column: usize) -> Result<Option<String>, BadColumn> {
        match self.take(column) {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text.into_owned())),
            other => Err(bad(column, format!("{other:?} is no text"))),
        }
    }

    fn integer<T: TryFrom<i64>>(&mut self, column: usize) -> Result<Option<T>, BadColumn> {
        match self.take(column) {
            Value::Null => Ok(None),
            Value::Integer(number) => match T::try_from(number) {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(bad(column, format!("{number} is out of range"))),
            },
            other => Err(bad(column, format!("{other:?} is no number"))),
        }
    }

    fn needed<T: TryFrom<i64>>(&mut self, column: usize) -> Result<T, BadColumn> {
        self.integer(column)?
            .ok_or_else(|| bad(column, "there is no number"))
    }

    fn flag(&mut self, column: usize) -> Result<bool, BadColumn> {
        match self.take(column) {
            Value::Flag(flag) => Ok(flag),
            Value::Integer(number) => Ok(number != 0),
            other => Err(bad(column, format!("{other:?} is no flag"))),
        }
    }

    fn parsed<T>(&mut self, column: usize) -> Result<T, BadColumn>
    where
        T: FromStr<Err: Error + Send + Sync + 'static>,
    {
        let text = self.text(column)?.unwrap_or_default();
        text.parse().map_err(|error| bad(column, error))
    }

    /// A column that holds one of some labels, or null.
    fn labelled<T>(
        &mut self,
        column: usize,
        from_label: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, BadColumn> {
        let Some(label) = self.text(column)? else {
            return Ok(None);
        };
        let value = from_label(&label);
        let unknown = || bad(column, format!("unknown label `{label}`"));
        value.ok_or_else(unknown).map(Some)
    }

    /// A column with a JSON array; empty when it is null.
    fn list<T: DeserializeOwned>(&mut self, column: usize) -> Result<Vec<T>, BadColumn> {
        let Some(text) = self.text(column)? else {
            return Ok(Vec::new());
        };
        serde_json::from_str(&text).map_err(|error| bad(column, error))
    }
}

fn bad(column: usize, problem: impl Into<ErrorSource>) -> BadColumn {
    BadColumn {
        column,
        problem: problem.into(),
    }
}
