//! What a client can choose: how much a session may do, and the model.

use zeph_acp::agent::{ConfigOption, ConfigValue, SessionMode as ModeShown, SessionModes};
use zeph_acp::rpc::RpcError;

use super::session::AcpSession;
use crate::agent::models;
use crate::mode::SessionMode;

/// The option that is the mode.
const MODE: &str = "mode";

/// The option that is the model.
const MODEL: &str = "model";

/// What was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    /// The mode.
    Mode,
    /// The model.
    Model,
}

fn name(mode: SessionMode) -> (&'static str, &'static str) {
    match mode {
        SessionMode::Ask => ("Ask", "Ask before calls that change something"),
        SessionMode::Edit => (
            "Allow edits",
            "Write files without asking; ask before everything else",
        ),
        SessionMode::ReadOnly => ("Read only", "Refuse every call that may change something"),
    }
}

/// The modes.
pub(super) fn modes(session: &AcpSession) -> SessionModes {
    let shown = SessionMode::ALL.into_iter().map(|mode| {
        let (name, description) = name(mode);
        ModeShown {
            id: mode.id().to_owned(),
            name: name.to_owned(),
            description: description.to_owned(),
        }
    });
    SessionModes {
        current_mode_id: session.calls().mode().id().to_owned(),
        available_modes: shown.collect(),
    }
}

/// All options.
pub(super) fn options(session: &AcpSession) -> Vec<ConfigOption> {
    let modes = modes(session);
    let mode = ConfigOption {
        id: MODE.to_owned(),
        name: "Mode".to_owned(),
        category: MODE.to_owned(),
        kind: "select",
        current_value: modes.current_mode_id,
        options: modes
            .available_modes
            .into_iter()
            .map(|mode| ConfigValue {
                value: mode.id,
                name: mode.name,
                description: Some(mode.description),
            })
            .collect(),
    };
    let providers = session.host().config().providers.iter();
    let model = ConfigOption {
        id: MODEL.to_owned(),
        name: "Model".to_owned(),
        category: MODEL.to_owned(),
        kind: "select",
        current_value: session.provider(),
        options: providers
            .map(|provider| ConfigValue {
                value: provider.name.clone(),
                name: provider.name.clone(),
                description: Some(provider.model.clone()),
            })
            .collect(),
    };
    vec![mode, model]
}

/// Changes the mode: at once, also for the turn that runs.
///
/// Errors: there is no such mode.
pub(super) fn set_mode(session: &AcpSession, id: &str) -> Result<(), RpcError> {
    let mode = SessionMode::of(id).ok_or_else(|| {
        let known: Vec<&str> = SessionMode::ALL.map(SessionMode::id).to_vec();
        unknown("mode", id, &known)
    })?;
    session.calls().set_mode(mode);
    Ok(())
}

/// Changes an option; the model from the next turn on.
///
/// Errors: there is no such option or value.
pub(super) fn set(session: &AcpSession, id: &str, value: &str) -> Result<Changed, RpcError> {
    match id {
        MODE => set_mode(session, value).map(|()| Changed::Mode),
        MODEL => {
            let provider = models::provider(session.host(), Some(value));
            let provider = provider.map_err(|missing| {
                RpcError::params(format!("{}; {}", missing.problem, missing.hint))
            })?;
            session.use_provider(provider);
            Ok(Changed::Model)
        }
        _ => Err(unknown("option", id, &[MODE, MODEL])),
    }
}

fn unknown(what: &str, id: &str, known: &[&str]) -> RpcError {
    let id: String = id.chars().take(80).collect();
    RpcError::params(format!(
        "there is no {what} {id:?}; there is: {}",
        known.join(", ")
    ))
}
