//! After stage 3: what the model says that judges calls, of those that the rules allow.

use zeph_core::policy::Decision;
use zeph_core::tool::Tool;
use zeph_store::{BeginRecord, Store};

use super::judgement::Judgement;
use crate::calls::CallControl;
use crate::judging::{JudgeResult, JudgeRoom};
use crate::session::Session;

/// The judgement with the verdict. One that was given before counts: a call that is decided again is the same call.
pub(super) async fn asked(
    room: Option<&JudgeRoom>,
    session: &Session,
    mut judged: Judgement,
    control: &CallControl,
    given: &mut Option<JudgeResult>,
) -> Judgement {
    let Some(room) = room else { return judged };
    let call = match &judged.decision {
        Ok(Decision::Allow(call)) if room.judges(call.tool()) => call,
        _ => return judged,
    };
    let result = match given {
        Some(result) => Ok(result.clone()),
        None => room.ask(session, call, control).await,
    };
    match (result, judged.decision) {
        (Ok(result), Ok(decision)) => {
            let (decision, note) = room.follow(decision, &result);
            judged.verdict = Some(result.verdict.clone());
            judged.notes.extend(note);
            judged.decision = Ok(decision);
            *given = Some(result);
        }
        (Err(failure), _) | (Ok(_), Err(failure)) => judged.decision = Err(failure),
    }
    judged
}

/// The decision about a call that is not made, with what is known of the judge's.
pub(super) async fn foreseen(
    (room, store): (Option<&JudgeRoom>, &Store),
    call: &BeginRecord,
    tool: &Tool,
    decision: Decision,
) -> Decision {
    match (room, &decision) {
        (Some(room), Decision::Allow(_)) if room.judges(tool) => {
            room.foresee(store, call, decision).await
        }
        _ => decision,
    }
}
