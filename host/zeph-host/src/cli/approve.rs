//! `zeph-host approve`: the calls that wait for a person. Shows what would run, asks, and records the answer; makes no call.

mod list;
mod rule;

use serde_json::{Value, json};
use zeph_core::id::ApprovalId;
use zeph_core::lifetime::Lifetime;
use zeph_store::{AgreedBy, Agreement, ApprovalRequest, Store, StoredApproval};

use super::args::{ApprovalDuration, Approve};
use super::ask::{Answer, ask};
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::page::print_json;
use super::{out, time};
use crate::clock::now_ms;
use crate::host;
use crate::run::page::Page;
use crate::run::{approval_text, session_commands};

/// Runs the command.
pub(super) fn run(context: &Context, options: &Approve) -> Result<Exit, CliError> {
    let config = context.config()?;
    let is_list = options.revoke.is_none() && options.which.is_none() && !options.last;
    let store = match is_list {
        true => context.store_to_look(&config)?,
        false => context.store(&config)?,
    };
    context::block_on(async {
        if is_list {
            return list::run(&store, options.json.json).await;
        }
        if let Some(id) = options.revoke {
            return revoke(&store, id, options.json.json).await;
        }
        let request = find(&store, options).await?;
        if options.rule {
            return rule::run(context, options, &request);
        }
        if options.deny {
            return deny(&store, &request, options.json.json).await;
        }
        approve(context, &store, options, request).await
    })
}

/// The request that is meant: by its id, by its tool, or the newest.
async fn find(store: &Store, options: &Approve) -> Result<ApprovalRequest, CliError> {
    let waiting = store.list_requests(None, now_ms()).await?;
    session_commands::find(waiting, options.which.as_deref()).map_err(|problem| {
        CliError::user(problem)
            .hint("`zeph-host approve` lists what waits; a call waits for 7 days")
    })
}

async fn approve(
    context: &Context,
    store: &Store,
    options: &Approve,
    request: ApprovalRequest,
) -> Result<Exit, CliError> {
    let lifetime = lifetime(options.how_long);
    if !options.json.json {
        page(&request).print()?;
    }
    // A reader of JSON has not seen the call yet.
    let answer = match options.json.json && !options.yes {
        true => Answer::Nobody,
        false => ask(&question(lifetime), options.yes),
    };
    let approval = match answer {
        Answer::Yes => {
            // It may have been answered meanwhile, elsewhere.
            let approved = store
                .approve(request.id, lifetime, agreement(), now_ms())
                .await?;
            let gone = || CliError::user(format!("the call `{}` is no longer pending", request.id));
            Some(approved.ok_or_else(gone)?)
        }
        Answer::No => {
            out::remark("nothing was approved");
            None
        }
        Answer::Nobody => {
            out::note(&format!(
                "nothing was approved; `{} approve {} --yes` approves the call",
                context.program(),
                request.id
            ));
            None
        }
    };
    if options.json.json {
        print_json(&json!({
            "request": request_json(&request),
            "approved": approval.is_some(),
            "approval": approval.as_ref().map(approval_json),
        }))?;
    } else if approval.is_some() {
        Page::new().line(0, &approved(&request, lifetime)).print()?;
    }
    Ok(match approval {
        Some(_) => Exit::Success,
        None => Exit::Confirm,
    })
}

/// The user at the command line.
fn agreement() -> Agreement {
    Agreement {
        how: AgreedBy::CommandLine,
        who: host::user_name(),
        client: None,
    }
}

fn lifetime(how_long: ApprovalDuration) -> Lifetime {
    match how_long {
        ApprovalDuration { always: true, .. } => Lifetime::Always,
        ApprovalDuration { session: true, .. } => Lifetime::Session,
        ApprovalDuration { .. } => Lifetime::Once,
    }
}

/// What would run, for whom, and why it asks.
fn page(request: &ApprovalRequest) -> Page {
    let mut page = approval_text::call(&request.call, out::width());
    approval_text::why(&mut page, &request.reason, &request.rules);
    page.dim(
        0,
        &format!(
            "Asked by conversation {} at {}",
            request.conversation,
            time::shown(request.at_ms)
        ),
    );
    page
}

fn question(lifetime: Lifetime) -> String {
    match lifetime {
        Lifetime::Once => "Let this call run once?",
        Lifetime::Session => "Let this very call run whenever its conversation makes it?",
        Lifetime::Always => "Let this very call run whenever it is made, until you revoke it?",
    }
    .to_owned()
}

fn approved(request: &ApprovalRequest, lifetime: Lifetime) -> String {
    let id = request.id;
    match lifetime {
        Lifetime::Once => format!(
            "approved: the next such call of conversation {} runs",
            request.conversation
        ),
        Lifetime::Session => format!(
            "approved: every such call of conversation {} runs, until `zeph-host approve --revoke {id}`",
            request.conversation
        ),
        Lifetime::Always => {
            format!("approved: every such call runs, until `zeph-host approve --revoke {id}`")
        }
    }
}

async fn deny(store: &Store, request: &ApprovalRequest, json: bool) -> Result<Exit, CliError> {
    let was_there = store.deny_request(request.id).await?;
    if json {
        print_json(&json!({
            "request": request_json(request),
            "approved": false,
            "denied": was_there,
        }))?;
    } else {
        Page::new()
            .line(0, &format!("denied: `{}` is no longer pending", request.id))
            .print()?;
    }
    Ok(Exit::Success)
}

async fn revoke(store: &Store, id: ApprovalId, json: bool) -> Result<Exit, CliError> {
    if !store.revoke_approval(id).await? {
        return Err(CliError::user(format!("there is no approval `{id}`"))
            .hint("`zeph-host approve` lists them; one for once is gone when it was used"));
    }
    match json {
        true => print_json(&json!({ "revoked": id })),
        false => Page::new()
            .line(0, &format!("revoked: `{id}` no longer allows anything"))
            .print(),
    }?;
    Ok(Exit::Success)
}

fn request_json(request: &ApprovalRequest) -> Value {
    let mut value = json!(request);
    value["at"] = json!(time::shown(request.at_ms));
    without_ms(value, "at_ms")
}

fn approval_json(approval: &StoredApproval) -> Value {
    let mut value = json!(approval);
    value["approved_at"] = json!(time::shown(approval.approved_at_ms));
    without_ms(value, "approved_at_ms")
}

/// Moments are printed as the other listings print them.
fn without_ms(mut value: Value, key: &str) -> Value {
    if let Value::Object(members) = &mut value {
        members.remove(key);
    }
    value
}
