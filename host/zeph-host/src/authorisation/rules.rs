//! Rules that a user agrees to in place of a single call: which ones an answer offers, and which ones were agreed to before.
//!
//! They are rules for `--allow` that hold for one tool of one provider in one directory, until they are revoked. What refuses a call
//! refuses it whatever they say.

use globset::escape;
use url::Url;
use zeph_core::call::ResolvedCall;
use zeph_core::failure::ToolFailure;
use zeph_core::id::Digest;
use zeph_core::policy::{AllowRule, Policy};
use zeph_store::{Agreement, rule_scope};

use super::{Authoriser, cannot_ask};
use crate::session::Session;

/// Characters of a rule. A longer one is a script, which nobody agrees to for ever.
const RULE_CHARS_MAX: usize = 300;

/// What was agreed to for calls like one.
pub(super) struct AgreedPolicy {
    /// The policy with the rules.
    pub(super) policy: Policy,
    /// Who agreed to the newest of them.
    pub(super) agreement: Option<Agreement>,
}

/// What was agreed to for the tool of `call`; none when that is nothing.
///
/// Errors: `server_error` when the store cannot be asked.
pub(super) async fn agreed(
    room: &Authoriser,
    session: &Session,
    call: &ResolvedCall,
    owner: Option<Digest>,
) -> Result<Option<AgreedPolicy>, ToolFailure> {
    let found = room
        .store
        .rule_approvals(&call.tool.name, session.conversation);
    let found = found.await.map_err(|error| cannot_ask(&error))?;
    let scope = scope(room, call, owner);
    let (mut texts, mut agreement) = (Vec::new(), None);
    for approval in found {
        if let Some(rules) = approval.call.rules.filter(|rules| rules.scope == scope) {
            texts.extend(rules.texts);
            agreement = approval.agreement.or(agreement);
        }
    }
    let policy = match texts.is_empty() {
        true => None,
        false => with_rules(room.policy_of(session), &texts),
    };
    Ok(policy.map(|policy| AgreedPolicy { policy, agreement }))
}

/// What rules for calls like this one are bound to.
pub(super) fn scope(room: &Authoriser, call: &ResolvedCall, owner: Option<Digest>) -> Digest {
    rule_scope(&call.tool, owner, &room.policy.directory)
}

/// The rules that a user can agree to in place of `call`: with them alone it would run. Empty when there are none.
///
/// `advice` is what the refusal names, `is_enough` says whether a policy allows the call.
pub(super) fn offered(
    room: &Authoriser,
    call: &ResolvedCall,
    advice: &[String],
    is_enough: impl Fn(&Policy) -> bool,
) -> Vec<String> {
    let rules = candidates(room, call, advice);
    let redactor = room.secrets.redactor();
    let is_plain = |rule: &String| {
        rule.chars().count() <= RULE_CHARS_MAX
            && !rule.chars().any(char::is_control)
            && redactor.text(rule) == rule.as_str()
    };
    let policy = match !rules.is_empty() && rules.iter().all(is_plain) {
        true => with_rules(&room.policy, &rules),
        false => None,
    };
    match policy.is_some_and(|policy| is_enough(&policy)) {
        true => rules,
        false => Vec::new(),
    }
}

/// Every part of a command; the one file of a tool of files; the site of an address; else the whole tool.
fn candidates(room: &Authoriser, call: &ResolvedCall, advice: &[String]) -> Vec<String> {
    if call.command.is_some() {
        return advice.to_vec();
    }
    let name = &call.tool.name;
    match call.paths.as_slice() {
        [] => {}
        [path] => {
            let below = path.strip_prefix(&room.policy.directory).unwrap_or(path);
            return vec![format!("{name}:{}", escape(&below.to_string_lossy()))];
        }
        _ => return Vec::new(),
    }
    let url = call
        .arguments
        .values
        .get("url")
        .and_then(|url| url.as_str());
    match url.map(Url::parse) {
        Some(Ok(url)) if url.has_host() => {
            let site = url.origin().ascii_serialization();
            vec![format!("{name}:{}/*", escape(&site))]
        }
        Some(_) => Vec::new(),
        None => advice.to_vec(),
    }
}

/// A policy with more rules; none when one of them cannot be read.
fn with_rules(base: &Policy, rules: &[String]) -> Option<Policy> {
    let mut policy = base.clone();
    let directory = policy.directory.to_string_lossy().into_owned();
    for rule in rules {
        match AllowRule::parse(rule, &directory) {
            Ok(rule) => policy.allow.push(rule),
            Err(error) => {
                tracing::warn!(%error, "a rule that was agreed to cannot be read: it allows nothing");
                return None;
            }
        }
    }
    Some(policy)
}

#[cfg(test)]
mod tests;
