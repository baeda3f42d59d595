//! How an argument crosses a connection: as the bytes of its value, or of a borrowed one. The server reads the owned
//! form and lends it to the method.

use std::path::{Path, PathBuf};

use fieldstone_catalog::engine::Interrupt;
use fieldstone_core::value::Value;
use fieldstone_core::value::ValueType;
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    ArrayGroup, AttributeBatch, HistoryDecl, ImportDecl, MeshDecl, Record, RunDecl, RunName, RunState,
    StepDecl, TagDecl, VariableDecl,
};
use fieldstone_format::graph::TypeDecl;
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_format::setting::IfExists;
use fieldstone_graph::put::{Deletion, RelationPut, VertexPut};
use fieldstone_graph::read::Versions;
use fieldstone_wire::{Out, Wire};

/// An argument of a method.
pub trait Argument<'a>: Sized {
    /// The form that the server reads.
    type Owned: Wire + 'a;

    /// Appends the bytes of the owned form.
    fn send(&self, out: &mut Out<'_>);

    /// The argument, from its owned form.
    fn lend(owned: &'a Self::Owned) -> Self;
}

impl<'a, T: Wire> Argument<'a> for &'a T {
    type Owned = T;

    fn send(&self, out: &mut Out<'_>) {
        T::put(self, out);
    }

    fn lend(owned: &'a T) -> &'a T {
        owned
    }
}

impl<'a, T: Wire> Argument<'a> for &'a [T] {
    type Owned = Vec<T>;

    fn send(&self, out: &mut Out<'_>) {
        self.len().put(out);
        T::put_all(self, out);
    }

    fn lend(owned: &'a Vec<T>) -> &'a [T] {
        owned
    }
}

impl<'a> Argument<'a> for &'a str {
    type Owned = String;

    fn send(&self, out: &mut Out<'_>) {
        (*self).to_owned().put(out);
    }

    fn lend(owned: &'a String) -> &'a str {
        owned
    }
}

impl<'a> Argument<'a> for &'a Path {
    type Owned = PathBuf;

    fn send(&self, out: &mut Out<'_>) {
        self.to_path_buf().put(out);
    }

    fn lend(owned: &'a PathBuf) -> &'a Path {
        owned
    }
}

impl<'a> Argument<'a> for Option<&'a str> {
    type Owned = Option<String>;

    fn send(&self, out: &mut Out<'_>) {
        self.map(str::to_owned).put(out);
    }

    fn lend(owned: &'a Option<String>) -> Option<&'a str> {
        owned.as_deref()
    }
}

impl<'a> Argument<'a> for Option<&'a Interrupt> {
    type Owned = Option<Interrupt>;

    fn send(&self, out: &mut Out<'_>) {
        self.cloned().put(out);
    }

    fn lend(owned: &'a Option<Interrupt>) -> Option<&'a Interrupt> {
        owned.as_ref()
    }
}

/// Arguments that a method takes by value.
macro_rules! owned {
    ($($kind:ty),* $(,)?) => {$(
        impl<'a> Argument<'a> for $kind {
            type Owned = $kind;

            fn send(&self, out: &mut Out<'_>) {
                Wire::put(self, out);
            }

            fn lend(owned: &'a $kind) -> $kind {
                owned.clone()
            }
        }
    )*};
}

owned! {
    bool, u32, u64, usize, Id, ValueType, IfExists, Versions, Partitioning, RunDecl, RunState, AttributeBatch,
    Option<u64>, Option<i64>, Option<usize>, Option<Id>,
    Vec<u8>, Vec<(RunName, Value)>, Vec<VariableDecl>, Vec<StepDecl>, Vec<TagDecl>, Vec<AttributeBatch>, Vec<Record>,
    Vec<ArrayGroup>, Vec<ImportDecl>, Vec<MeshDecl>, Vec<HistoryDecl>, Vec<TypeDecl>, Vec<VertexPut>,
    Vec<RelationPut>, Vec<Deletion>,
}
