//! Whose calls a session makes. The door that opens the session says so, once; no request can.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whose calls they are. It decides whether a call is its own approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// The person whose machine this is, at the prompt or on the command line: typing a call approves it.
    Operator(Operator),
    /// A program that makes calls on behalf of others.
    Program {
        /// Its opaque name for the one it acts for, when it gives one.
        caller_id: Option<String>,
    },
    /// A model, in the loop of an agent.
    Model {
        /// The opaque name of the one the agent works for, when it is known.
        caller_id: Option<String>,
    },
}

/// Proof that a person typed the calls. Only the command line of a process has one.
///
/// Nothing else can build it: the field is private, there is no default, and [`Operator::claim`] gives it once.
///
/// ```compile_fail,E0451
/// use zeph_core::principal::{Operator, Principal};
///
/// let forged = Principal::Operator(Operator { claimed: () });
/// ```
///
/// ```compile_fail,E0277
/// use zeph_core::principal::Operator;
///
/// fn from_a_request<'a, T: serde::Deserialize<'a> + Default>() {}
/// from_a_request::<Operator>();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    claimed: (),
}

/// Whether the proof of this process has been given out.
static IS_CLAIMED: AtomicBool = AtomicBool::new(false);

impl Operator {
    /// The proof, for the first who asks in this process; `None` for everybody else. The command line asks before it reads a word,
    /// so that no other door can.
    pub fn claim() -> Option<Self> {
        let is_first = !IS_CLAIMED.swap(true, Ordering::AcqRel);
        is_first.then_some(Self { claimed: () })
    }

    #[cfg(test)]
    pub(crate) const OF_A_TEST: Self = Self { claimed: () };
}

impl Principal {
    /// A program that names nobody.
    pub const PROGRAM: Self = Self::Program { caller_id: None };

    /// Whether a person typed the calls.
    pub fn is_operator(&self) -> bool {
        matches!(self, Self::Operator(_))
    }

    /// The opaque name of the one who calls, for the audit and for plugins; none at the terminal.
    pub fn caller_id(&self) -> Option<&str> {
        match self {
            Self::Operator(_) => None,
            Self::Program { caller_id } | Self::Model { caller_id } => caller_id.as_deref(),
        }
    }

    /// The same principal acting for `name`. An operator acts for nobody else.
    #[must_use]
    pub fn acting_for(&self, name: &str) -> Self {
        let caller_id = Some(name.to_owned());
        match self {
            Self::Operator(_) => self.clone(),
            Self::Program { .. } => Self::Program { caller_id },
            Self::Model { .. } => Self::Model { caller_id },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Operator, Principal};

    #[test]
    fn the_proof_of_an_operator_is_given_once() {
        assert!(Operator::claim().is_some());
        assert!(Operator::claim().is_none());
    }

    #[test]
    fn naming_a_caller_makes_nobody_an_operator() {
        let model = Principal::Model { caller_id: None };
        for principal in [Principal::PROGRAM, model] {
            let named = principal.acting_for("ann");
            assert_eq!(named.caller_id(), Some("ann"));
            assert!(!named.is_operator());
        }
        let operator = Principal::Operator(Operator::OF_A_TEST);
        assert_eq!(operator.acting_for("ann"), operator);
        assert_eq!(operator.caller_id(), None);
    }
}
