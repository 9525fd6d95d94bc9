//! What a guest is told about its call: `zeph:plugin/context`.
//!
//! Everything is put into words when it is asked for: most calls ask for nothing.

use std::sync::Arc;
use std::time::Duration;

use zeph_core::call::{CallFrame, TurnContext};

use crate::bindings::zeph::plugin::context;
use crate::state::GuestState;

/// What a guest can ask for.
pub(crate) struct GuestContext {
    /// What the operator set for the plugin: a JSON object.
    pub(crate) settings: Arc<str>,
    /// None while a plugin says what it offers.
    pub(crate) call: Option<CallFrame>,
}

impl GuestState {
    /// What `read` finds in the call, if there is one.
    fn of_call<T>(&mut self, read: impl FnOnce(&CallFrame) -> T) -> Option<T> {
        self.inputs.has_others = true;
        self.context.call.as_ref().map(read)
    }

    /// What `read` finds in the turn of the call, if it has one.
    fn of_turn<T>(&mut self, read: impl FnOnce(&TurnContext) -> T) -> Option<T> {
        self.inputs.has_others = true;
        let turn = self.context.call.as_ref()?.turn.as_ref();
        turn.map(read)
    }
}

impl context::Host for GuestState {
    fn call(&mut self) -> wasmtime::Result<String> {
        Ok(self.of_call(|call| call.id.to_string()).unwrap_or_default())
    }

    fn conversation(&mut self) -> wasmtime::Result<String> {
        let id = self.of_call(|call| call.conversation.to_string());
        Ok(id.unwrap_or_default())
    }

    fn turn(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(self.of_turn(|turn| turn.turn_id.clone()))
    }

    fn goal(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(self.of_turn(|turn| turn.goal_id.clone()).flatten())
    }

    fn skill(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(self.of_turn(|turn| turn.skill_name.clone()).flatten())
    }

    fn caller(&mut self) -> wasmtime::Result<Option<String>> {
        // What the operator's rules see, and no more.
        let id = self.of_call(|call| call.principal.caller_id().map(str::to_owned));
        Ok(id.flatten())
    }

    fn started(&mut self) -> wasmtime::Result<u64> {
        let of_call = self.of_call(|call| u64::try_from(call.started_ms).unwrap_or_default());
        let started_ms = self.of_turn(|turn| turn.timestamp_ms).or(of_call);
        Ok(started_ms.unwrap_or_default())
    }

    fn remaining(&mut self) -> wasmtime::Result<u64> {
        // What a plugin offers does not depend on the time, and neither does what a strategy says.
        let left = millis(self.limiter.time_left());
        Ok(self.of_call(|_| left).unwrap_or_default())
    }

    fn settings(&mut self) -> wasmtime::Result<String> {
        Ok(self.context.settings.to_string())
    }
}

/// Whole milliseconds, as the contract counts time.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
