//! Converts the numbers that callers hold to those of the current definitions.
//!
//! They differ only if this rank and others defined objects, and a redefinition then began from the file's numbers.
//!
//! Invariant: a number given to a caller refers to the same object until the container is closed.

use std::collections::HashMap;
use std::ops::Range;

/// See the module's documentation.
#[derive(Debug, Clone, Default)]
pub(super) enum Handles {
    /// Callers hold the numbers of the definitions.
    #[default]
    Same,
    /// Callers hold positions in `locals`, which are numbers of the definitions.
    Mapped {
        locals: Vec<u32>,
        /// The inverse, made when first needed: few callers look up objects that they have defined.
        handles: Option<HashMap<u32, u32>>,
    },
}

impl Handles {
    /// Callers hold positions in `ids`.
    pub fn of(ids: &[u64]) -> Handles {
        match ids.iter().zip(0u64..).all(|(id, i)| *id == i) {
            true => Handles::Same,
            false => Handles::Mapped { locals: ids.iter().map(|id| *id as u32).collect(), handles: None },
        }
    }

    /// The handles after the definitions' number `i` has become `ids[i]`: callers keep their numbers.
    pub fn through(&self, ids: &[u64]) -> Handles {
        match self {
            Handles::Same => Handles::of(ids),
            Handles::Mapped { locals, .. } => {
                let ids = locals.iter().filter_map(|local| ids.get(*local as usize).copied());
                Handles::of(&ids.collect::<Vec<_>>())
            }
        }
    }

    /// Whether callers hold the numbers of the definitions.
    pub fn is_same(&self) -> bool {
        matches!(self, Handles::Same)
    }

    /// The number in the definitions.
    pub fn local(&self, handle: u32) -> u32 {
        match self {
            Handles::Same => handle,
            Handles::Mapped { locals, .. } => locals.get(handle as usize).copied().unwrap_or(u32::MAX),
        }
    }

    /// The caller's number for a number in the definitions.
    pub fn handle(&mut self, local: u32) -> Option<u32> {
        match self {
            Handles::Same => Some(local),
            Handles::Mapped { locals, handles } => {
                let handles = handles.get_or_insert_with(|| {
                    let mut handles = HashMap::with_capacity(locals.len());
                    note(&mut handles, locals, 0);
                    handles
                });
                handles.get(&local).copied()
            }
        }
    }

    /// The numbers that callers get for new numbers of the definitions.
    pub fn hand_out(&mut self, new: Range<u32>) -> Range<u32> {
        match self {
            Handles::Same => new,
            Handles::Mapped { locals, handles } => {
                let first = locals.len() as u32;
                locals.extend(new);
                if let Some(handles) = handles {
                    note(handles, &locals[first as usize..], first);
                }
                first..locals.len() as u32
            }
        }
    }
}

/// Records that the handles from `first` on refer to `locals`.
fn note(handles: &mut HashMap<u32, u32>, locals: &[u32], first: u32) {
    for (local, handle) in locals.iter().zip(first..) {
        handles.entry(*local).or_insert(handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_the_same_need_no_map() {
        let mut handles = Handles::of(&[0, 1, 2]);
        assert!(handles.is_same() && Handles::of(&[]).is_same());
        assert_eq!((handles.local(7), handles.handle(7)), (7, Some(7)));
        assert_eq!(handles.hand_out(3..5), 3..5);
        assert!(!handles.through(&[4, 5]).is_same());
    }

    #[test]
    fn a_mapped_number_is_found_both_ways_also_after_more_were_handed_out() {
        let mut handles = Handles::of(&[5, 6, 2]);
        assert_eq!([0, 1, 2, 3].map(|handle| handles.local(handle)), [5, 6, 2, u32::MAX]);
        assert_eq!(handles.hand_out(9..11), 3..5);
        assert_eq!(
            [5, 2, 9, 10, 0].map(|local| handles.handle(local)),
            [Some(0), Some(2), Some(3), Some(4), None]
        );
        assert_eq!(handles.hand_out(11..12), 5..6);
        assert_eq!((handles.handle(11), handles.local(5)), (Some(5), 11));
    }

    #[test]
    fn numbers_follow_the_objects_into_the_next_header() {
        let ids: Vec<u64> = (0..10).map(|i| i * 10).collect();
        let handles = Handles::of(&[3, 1]).through(&ids);
        assert_eq!([0, 1].map(|handle| handles.local(handle)), [30, 10]);
    }
}
