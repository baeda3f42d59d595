//! Objects in memory: put once, read often, never changed.
//!
//! Today's object stores promise exactly this: an object is there as a whole or not at all, a put under an existing
//! name fails, and after a put has returned, every later listing shows the object.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::{Error, Result};

/// An object.
#[derive(Debug, Clone)]
pub struct Object {
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// The user who put it.
    pub owner: u32,
    /// When, nanoseconds since 1970.
    pub time: i64,
}

/// How a put fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is put.
    Refused,
    /// The object is there, and whoever put it does not learn so.
    Unanswered,
}

/// Objects by name.
#[derive(Debug, Default)]
pub struct Objects {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    objects: BTreeMap<String, Object>,
    fault: Option<(String, Fault)>,
}

impl Objects {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Lets the next put of a name that begins with `prefix` fail.
    pub fn fail_next(&self, prefix: &str, fault: Fault) {
        self.inner().fault = Some((prefix.to_owned(), fault));
    }

    /// Puts an object; `false` where its name is taken.
    pub fn put(&self, name: &str, object: Object) -> Result<bool> {
        let mut inner = self.inner();
        let fault = inner.fault.take_if(|(prefix, _)| name.starts_with(&**prefix)).map(|(_, fault)| fault);
        if fault == Some(Fault::Refused) {
            return Err(Error::unavailable(format!("cannot put {name}")));
        }
        let new = !inner.objects.contains_key(name);
        if new {
            inner.objects.insert(name.to_owned(), object);
        }
        match fault {
            Some(_) => Err(Error::unavailable(format!("no answer to the put of {name}"))),
            None => Ok(new),
        }
    }

    /// An object.
    pub fn get(&self, name: &str) -> Option<Object> {
        self.inner().objects.get(name).cloned()
    }

    /// Names that begin with `prefix`, in their order, behind `after`.
    pub fn list(&self, prefix: &str, after: Option<&str>) -> Vec<String> {
        let from = match after {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(prefix),
        };
        let inner = self.inner();
        let names = inner.objects.range::<str, _>((from, Bound::Unbounded)).map(|(name, _)| name);
        names.take_while(|name| name.starts_with(prefix)).cloned().collect()
    }

    /// The parts of names between `prefix` and the next `/`, each once.
    pub fn folders(&self, prefix: &str) -> Vec<String> {
        let inner = self.inner();
        let mut folders = Vec::new();
        let mut from = prefix.to_owned();
        while let Some((name, _)) =
            inner.objects.range::<str, _>((Bound::Included(&*from), Bound::Unbounded)).next()
        {
            let Some(rest) = name.strip_prefix(prefix) else { break };
            let folder = rest.split('/').next().unwrap_or(rest);
            folders.push(folder.to_owned());
            // The first name behind all that begin with the folder and a slash.
            from = format!("{prefix}{folder}0");
        }
        folders
    }

    /// How many objects there are, and their bytes.
    pub fn size(&self) -> (u64, u64) {
        let inner = self.inner();
        let bytes = inner.objects.values().map(|object| object.bytes.len() as u64).sum();
        (inner.objects.len() as u64, bytes)
    }
}
