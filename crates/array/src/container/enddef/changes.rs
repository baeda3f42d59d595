//! The ranks' changes of objects that the file had: all ranks receive and apply them.
//!
//! Every rank begins a redefinition from the same header. Each sends its changes to the others, each object once, in
//! its final state; all ranks apply all changes, so that all have the same base again. If two ranks change one object
//! in different ways, they are in conflict.

use std::collections::BTreeMap;
use std::fmt;

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Code, Result};

use super::packing::{MessageReader, put_attrs, put_bytes, put_u32};
use crate::container::define::{Change, Definitions};

/// Makes the base the same on all ranks. Collective.
pub(super) fn exchange(team: &Team, definitions: &mut Definitions) -> Result<()> {
    if team.size() == 1 {
        return Ok(());
    }
    let lists = team.allgather("changes", Ok(pack(&definitions.changes())))?;
    let done = unpack(&lists).and_then(|lists| {
        agree(&lists)?;
        let own = team.rank();
        let others = lists.into_iter().enumerate().filter(|(rank, _)| *rank != own);
        definitions.adopt(others.flat_map(|(_, list)| list))
    });
    team.agree("changes made", done)
}

fn pack(changes: &[Change]) -> Vec<u8> {
    let mut out = Vec::new();
    for change in changes {
        match change {
            Change::DimName(id, name) => {
                out.push(0);
                put_u32(&mut out, *id);
                put_bytes(&mut out, name.as_bytes());
            }
            Change::VarName(id, name) => {
                out.push(1);
                put_u32(&mut out, *id);
                put_bytes(&mut out, name.as_bytes());
            }
            Change::VarAttrs(id, attrs) => {
                out.push(2);
                put_u32(&mut out, *id);
                put_attrs(&mut out, attrs);
            }
            Change::PutGlobal(name, ty, value) => {
                out.push(3);
                put_bytes(&mut out, name.as_bytes());
                out.push(*ty as u8);
                put_bytes(&mut out, value);
            }
            Change::DelGlobal(name) => {
                out.push(4);
                put_bytes(&mut out, name.as_bytes());
            }
        }
    }
    out
}

fn unpack(lists: &[Vec<u8>]) -> Result<Vec<Vec<Change>>> {
    let list = |bytes: &Vec<u8>| {
        let (mut from, mut list) = (MessageReader(bytes), Vec::new());
        while !from.is_empty() {
            list.push(match from.u8()? {
                0 => Change::DimName(from.u32()?, from.text()?.to_owned()),
                1 => Change::VarName(from.u32()?, from.text()?.to_owned()),
                2 => Change::VarAttrs(from.u32()?, from.attrs()?),
                3 => Change::PutGlobal(from.text()?.to_owned(), from.ty()?, from.bytes()?.to_vec()),
                _ => Change::DelGlobal(from.text()?.to_owned()),
            });
        }
        Ok(list)
    };
    lists.iter().map(list).collect()
}

/// The object of the base that a change concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ChangeTarget<'a> {
    DimName(u32),
    VarName(u32),
    VarAttrs(u32),
    Global(&'a str),
}

impl ChangeTarget<'_> {
    fn of(change: &Change) -> ChangeTarget<'_> {
        match change {
            Change::DimName(id, _) => ChangeTarget::DimName(*id),
            Change::VarName(id, _) => ChangeTarget::VarName(*id),
            Change::VarAttrs(id, _) => ChangeTarget::VarAttrs(*id),
            Change::PutGlobal(name, ..) | Change::DelGlobal(name) => ChangeTarget::Global(name),
        }
    }
}

impl fmt::Display for ChangeTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeTarget::DimName(id) => write!(f, "the name of dimension number {id}"),
            ChangeTarget::VarName(id) => write!(f, "the name of variable number {id}"),
            ChangeTarget::VarAttrs(id) => write!(f, "the attributes of variable number {id}"),
            ChangeTarget::Global(name) => write!(f, "global attribute `{name}`"),
        }
    }
}

/// Checks that all ranks that changed an object changed it in the same way. Lists have each object once.
fn agree(lists: &[Vec<Change>]) -> Result<()> {
    let mut changed: BTreeMap<ChangeTarget<'_>, (usize, &Change)> = BTreeMap::new();
    for (rank, list) in lists.iter().enumerate() {
        for change in list {
            let thing = ChangeTarget::of(change);
            let (other, first) = changed.entry(thing).or_insert((rank, change));
            if *first != change {
                return Err(Code::DefinitionDiffers
                    .error(format!("ranks {other} and {rank} change {thing} differently"))
                    .with_hint("change an object of the file on one rank, or identically on several"));
            }
        }
    }
    Ok(())
}
