//! What ranks did to objects that the file had: told to all, done by all.
//!
//! Every rank begins a redefinition from the same header. Each tells the others its list of changes; all do all
//! of them, in the order of ranks, so that all have the same base again. Two ranks that change one thing
//! in two ways are in conflict.

use std::collections::BTreeMap;

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Error, Result};

use super::packing::{Reader, put_attrs, put_bytes, put_u32};
use crate::container::define::{Change, Definitions};

/// Makes the base the same on all ranks. Collective.
pub(super) fn exchange(team: &Team, definitions: &mut Definitions) -> Result<()> {
    if team.size() == 1 {
        return Ok(());
    }
    let lists = team.allgather("changes", Ok(pack(definitions.changes())))?;
    let done = unpack(&lists).and_then(|lists| {
        agree(&lists)?;
        let own = team.rank();
        let others = lists.into_iter().enumerate().filter(|(rank, _)| *rank != own);
        others.flat_map(|(_, list)| list).try_for_each(|change| definitions.adopt(change))
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
        let (mut from, mut list) = (Reader(bytes), Vec::new());
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

/// The last change of each thing by each rank must be the same on all ranks that changed it.
fn agree(lists: &[Vec<Change>]) -> Result<()> {
    let mut changed: BTreeMap<String, (usize, &Change)> = BTreeMap::new();
    for (rank, list) in lists.iter().enumerate() {
        for change in list {
            let what = match change {
                Change::DimName(id, _) => format!("the name of dimension number {id}"),
                Change::VarName(id, _) => format!("the name of variable number {id}"),
                Change::VarAttrs(id, _) => format!("the attributes of variable number {id}"),
                Change::PutGlobal(name, ..) | Change::DelGlobal(name) => format!("global attribute `{name}`"),
            };
            match changed.get(&what) {
                Some((other, first)) if *other != rank && *first != change => {
                    return Err(Error::conflict(format!(
                        "{what} is changed differently on ranks {other} and {rank}"
                    ))
                    .with_hint("change an object of the file on one rank, or equally on several"));
                }
                Some((other, _)) if *other != rank => {}
                _ => {
                    changed.insert(what, (rank, change));
                }
            }
        }
    }
    Ok(())
}
