//! Declared types of vertices and relations.
//!
//! ```text
//! type  = 0 name: text  n: varint  n x { property: text  type: u8 }  names  names       a vertex's
//!       | 1 name: text  reverse: text  optional text  optional text  names              a relation's
//! names = n: varint  n x text
//! ```

use fieldstone_core::graph::{EdgeType, TypeDecl, VertexType};
use fieldstone_core::value::ValueType;
use fieldstone_core::{Error, Result};

use crate::bytes::{Cursor, Put};

pub(super) fn put_types(out: &mut Vec<u8>, types: &[TypeDecl]) {
    out.put_varint(types.len() as u64);
    for declared in types {
        match declared {
            TypeDecl::Vertex(vertex) => {
                out.push(0);
                out.put_bytes(vertex.name.as_bytes());
                out.put_varint(vertex.fixed.len() as u64);
                for (name, kind) in &vertex.fixed {
                    out.put_bytes(name.as_bytes());
                    out.push(*kind as u8);
                }
                put_names(out, &vertex.index);
                put_names(out, &vertex.text);
            }
            TypeDecl::Edge(edge) => {
                out.push(1);
                out.put_bytes(edge.name.as_bytes());
                out.put_bytes(edge.reverse.as_bytes());
                for end in [&edge.source, &edge.target] {
                    out.push(u8::from(end.is_some()));
                    end.iter().for_each(|end| out.put_bytes(end.as_bytes()));
                }
                put_names(out, &edge.index);
            }
        }
    }
}

fn put_names(out: &mut Vec<u8>, names: &[String]) {
    out.put_varint(names.len() as u64);
    names.iter().for_each(|name| out.put_bytes(name.as_bytes()));
}

pub(super) fn read_types(cursor: &mut Cursor<'_>) -> Result<Vec<TypeDecl>> {
    let mut types = Vec::new();
    for _ in 0..cursor.count(2)? {
        types.push(read_type(cursor)?);
    }
    Ok(types)
}

fn read_type(cursor: &mut Cursor<'_>) -> Result<TypeDecl> {
    let form = cursor.u8()?;
    let name = read_name(cursor)?;
    Ok(match form {
        0 => {
            let mut fixed = Vec::new();
            for _ in 0..cursor.count(2)? {
                let property = read_name(cursor)?;
                let number = cursor.u8()?;
                let kind = ValueType::ALL.into_iter().find(|kind| *kind as u8 == number);
                fixed.push((property, kind.ok_or_else(|| cursor.fail("a property has an unknown type"))?));
            }
            TypeDecl::Vertex(VertexType {
                name,
                fixed,
                index: read_names(cursor)?,
                text: read_names(cursor)?,
            })
        }
        1 => {
            let reverse = read_name(cursor)?;
            let (source, target) = (read_end(cursor)?, read_end(cursor)?);
            TypeDecl::Edge(EdgeType { name, reverse, source, target, index: read_names(cursor)? })
        }
        _ => return Err(cursor.fail("a type has an unknown form")),
    })
}

fn read_name(cursor: &mut Cursor<'_>) -> Result<String> {
    match cursor.text()? {
        "" => Err(Error::corrupt("a type or property has no name")),
        name => Ok(name.to_owned()),
    }
}

fn read_names(cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for _ in 0..cursor.count(1)? {
        names.push(read_name(cursor)?);
    }
    Ok(names)
}

fn read_end(cursor: &mut Cursor<'_>) -> Result<Option<String>> {
    match cursor.u8()? {
        0 => Ok(None),
        1 => read_name(cursor).map(Some),
        _ => Err(cursor.fail("an end is marked neither present nor absent")),
    }
}
