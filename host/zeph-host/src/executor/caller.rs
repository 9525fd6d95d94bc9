//! Whose calls a session of a library makes.

use zeph_core::principal::Principal;

/// Who makes the calls of a session. Never the operator: a call of a program or of a model goes through allow, ask and deny, whoever
/// wrote the program. Only the doors of `zeph-host` itself have a proof that a person typed a call.
///
/// ```compile_fail,E0423
/// use zeph_core::principal::{Operator, Principal};
/// use zeph_host::Caller;
///
/// let operator = Operator::claim().unwrap();
/// let caller = Caller(Principal::Operator(operator));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller(Principal);

impl Caller {
    /// A program that calls tools by itself.
    pub fn program() -> Self {
        Self(Principal::PROGRAM)
    }

    /// A model, in the loop of an agent.
    pub fn model() -> Self {
        Self(Principal::Model { caller_id: None })
    }

    /// The same, acting for `caller_id`: an opaque name, such as that of a user of a chat. It goes to the audit and to plugins.
    #[must_use]
    pub fn acting_for(self, caller_id: &str) -> Self {
        Self(self.0.acting_for(caller_id))
    }

    pub(crate) fn principal(self) -> Principal {
        self.0
    }
}
