//! What a component comes to when it is instantiated.
//!
//! Components in each other, each of which instantiates the one inside it twice, double with every level, and the compiler writes out every
//! instance: some bytes of file for twice its work. So what they come to is counted beforehand, from the definitions alone.
//! What cannot be read is left to the validator.

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind,
    ComponentTypeRef, Instance, Payload, SectionLimited,
};

use crate::engine::CORE_PARTS_MAX;

/// Most definitions, those of a component counted as often as it is instantiated. Large components have some ten thousand.
const DEFINITIONS_MAX: u64 = 1_000_000;

/// What one instance of a component comes to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unfolded {
    n_core_instances: u64,
    n_definitions: u64,
    /// It instantiates a component that it does not define: what that is depends on who gives it.
    is_open: bool,
}

impl Unfolded {
    /// Why the host cannot use it.
    pub(super) fn problem(self) -> Option<String> {
        if self.is_open {
            return Some(
                "it instantiates a component that it imports, or takes out of an instance: compose it so that it holds what it instantiates"
                    .to_owned(),
            );
        }
        let n = self.n_core_instances;
        if n > u64::from(CORE_PARTS_MAX) {
            return Some(format!(
                "it consists of {n} instances of core modules; the limit is {CORE_PARTS_MAX}"
            ));
        }
        let n = self.n_definitions;
        (n > DEFINITIONS_MAX)
            .then(|| format!("written out, it has {n} definitions; the limit is {DEFINITIONS_MAX}"))
    }

    fn add(&mut self, more: Self) {
        self.n_core_instances = self.n_core_instances.saturating_add(more.n_core_instances);
        self.n_definitions = self.n_definitions.saturating_add(more.n_definitions);
        self.is_open |= more.is_open;
    }

    fn define(&mut self, n: usize) {
        self.n_definitions = self.n_definitions.saturating_add(n as u64);
    }
}

/// The components that are open, the outermost first, and modules among them.
pub(super) struct Unfolding(Vec<Level>);

enum Level {
    Module,
    Component(Frame),
}

#[derive(Default)]
struct Frame {
    unfolded: Unfolded,
    /// The components it can name, by their index; none for one that it is given.
    components: Vec<Option<Unfolded>>,
}

impl Unfolding {
    /// At the begin of the outermost component.
    pub(super) fn new() -> Self {
        Self(vec![Level::Component(Frame::default())])
    }

    /// A module begins.
    pub(super) fn enter_module(&mut self) {
        self.0.push(Level::Module);
    }

    /// A component inside begins.
    pub(super) fn enter_component(&mut self) {
        self.0.push(Level::Component(Frame::default()));
    }

    /// What began last is over. Returns what the outermost component comes to at its end.
    pub(super) fn leave(&mut self) -> Unfolded {
        let Some(Level::Component(ended)) = self.0.pop() else {
            return Unfolded::default();
        };
        if let Some(Level::Component(parent)) = self.0.last_mut() {
            parent.components.push(Some(ended.unfolded));
        }
        ended.unfolded
    }

    /// A section of what began last.
    pub(super) fn add(&mut self, section: &Payload<'_>) {
        if let Payload::ComponentAliasSection(aliases) = section {
            for alias in readable(aliases) {
                self.alias(&alias);
            }
        }
        let Some(Level::Component(frame)) = self.0.last_mut() else {
            return;
        };
        match section {
            Payload::InstanceSection(instances) => {
                readable(instances).for_each(|instance| frame.core_instance(&instance));
            }
            Payload::ComponentInstanceSection(instances) => {
                readable(instances).for_each(|instance| frame.instance(&instance));
            }
            Payload::ComponentImportSection(imports) => {
                for import in readable(imports) {
                    frame.unfolded.define(1);
                    if let ComponentTypeRef::Component(_) = import.ty {
                        frame.components.push(None);
                    }
                }
            }
            Payload::ComponentExportSection(exports) => {
                for export in readable(exports) {
                    frame.unfolded.define(1);
                    if export.kind == ComponentExternalKind::Component {
                        frame.components.push(frame.component(export.index));
                    }
                }
            }
            Payload::ComponentCanonicalSection(functions) => {
                frame.unfolded.define(functions.count() as usize);
            }
            Payload::ComponentTypeSection(types) => frame.unfolded.define(types.count() as usize),
            _ => {}
        }
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) {
        let component = match alias {
            ComponentAlias::Outer {
                kind: ComponentOuterAliasKind::Component,
                count,
                index,
            } => {
                let outer = self.0.iter().rev().nth(*count as usize);
                Some(match outer {
                    Some(Level::Component(outer)) => outer.component(*index),
                    _ => Some(Unfolded::default()),
                })
            }
            ComponentAlias::InstanceExport {
                kind: ComponentExternalKind::Component,
                ..
            } => Some(None),
            _ => None,
        };
        if let Some(Level::Component(frame)) = self.0.last_mut() {
            frame.unfolded.define(1);
            frame.components.extend(component);
        }
    }
}

impl Frame {
    /// The component of this index. One that is not there is a mistake that the validator finds.
    fn component(&self, index: u32) -> Option<Unfolded> {
        let known = self.components.get(index as usize).copied();
        known.unwrap_or(Some(Unfolded::default()))
    }

    fn core_instance(&mut self, instance: &Instance<'_>) {
        match instance {
            Instance::Instantiate { args, .. } => {
                self.unfolded.n_core_instances += 1;
                self.unfolded.define(1 + args.len());
            }
            Instance::FromExports(exports) => self.unfolded.define(1 + exports.len()),
        }
    }

    fn instance(&mut self, instance: &ComponentInstance<'_>) {
        match instance {
            ComponentInstance::Instantiate {
                component_index,
                args,
            } => {
                self.unfolded.define(1 + args.len());
                match self.component(*component_index) {
                    Some(component) => self.unfolded.add(component),
                    None => self.unfolded.is_open = true,
                }
            }
            ComponentInstance::FromExports(exports) => self.unfolded.define(1 + exports.len()),
        }
    }
}

/// What of a section can be read.
fn readable<'a, T: wasmparser::FromReader<'a>>(
    section: &SectionLimited<'a, T>,
) -> impl Iterator<Item = T> + use<'a, T> {
    section.clone().into_iter().map_while(Result::ok)
}
