//! The user that tools work as (`tools.scope.run_as_user`).

use zeph_config::Config;
use zeph_core::text::counted;

use super::{CheckState, DoctorCheck};
use crate::user;

/// A line where the configuration names a user, and the configuration as that user has it.
pub(super) fn of_config(config: &Config) -> (Option<DoctorCheck>, Config) {
    let scope = config.rules.policy.scope.as_ref();
    let Some(name) = scope.and_then(|scope| scope.run_as_user.clone()) else {
        return (None, config.clone());
    };
    let check = |state, detail: String| DoctorCheck::new("configuration", "user", state, detail);
    match user::found(config.clone()) {
        Ok(found) => {
            let detail = match &found.tool_user {
                Some(user) => {
                    let (uid, n_groups) = (user.facts().uid, user.facts().groups.len());
                    let groups = counted(n_groups, "group", "groups");
                    format!("tools work as `{name}` (user {uid}, {groups})")
                }
                None => format!("tools work as `{name}`, the user of the host"),
            };
            (Some(check(CheckState::Ok, detail)), found)
        }
        Err(error) => {
            let missing = check(CheckState::Missing, error.to_string()).required();
            let how = "the host does not start like this; change `tools.scope.run_as_user`, or how it is started";
            (Some(missing.how_to_get(how)), config.clone())
        }
    }
}
