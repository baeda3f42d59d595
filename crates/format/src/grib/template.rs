//! The key of all headers of one pattern: eccodes' answer for one of them, with gaps for read numbers.
//!
//! ```
//! use fieldstone_format::grib::header::Header;
//! use fieldstone_format::grib::template::Template;
//!
//! # let header = Header::new(b"GRIB\0\0\0\x01");
//! let key = vec![("class".to_owned(), "od".to_owned())];
//! let template = Template::new(&header, &key).unwrap();
//! assert_eq!(template.key(&header), key);
//! ```

use super::header::{Header, What};

/// Keyword and text.
pub type Texts = Vec<(String, String)>;

/// A key with gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pairs: Vec<(String, Slot)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Slot {
    Text(String),
    Read(What),
}

impl Template {
    /// Makes a template from a header and its key. `None` if the key's values differ from the read numbers:
    /// then the numbers mean something else, and other headers cannot use the template.
    pub fn new(header: &Header, key: &Texts) -> Option<Template> {
        let mut pairs: Vec<_> =
            key.iter().map(|(keyword, value)| (keyword.clone(), Slot::Text(value.clone()))).collect();
        for (what, read) in header.pairs() {
            let Some(keyword) = what.keyword() else { continue };
            if let Some((_, slot)) = pairs.iter_mut().find(|(known, _)| known == keyword) {
                if *slot != Slot::Text(read) {
                    return None;
                }
                *slot = Slot::Read(what);
            }
        }
        Some(Template { pairs })
    }

    /// The key of a single header.
    pub fn fixed(key: &Texts) -> Template {
        let slot = |(keyword, value): &(String, String)| (keyword.clone(), Slot::Text(value.clone()));
        Template { pairs: key.iter().map(slot).collect() }
    }

    /// The key of a header of the template's pattern.
    pub fn key(&self, header: &Header) -> Texts {
        let value = |slot: &Slot| match slot {
            Slot::Text(text) => text.clone(),
            Slot::Read(what) => header.value(*what).unwrap_or_default(),
        };
        self.pairs.iter().map(|(keyword, slot)| (keyword.clone(), value(slot))).collect()
    }

    /// Approximate number of bytes that it takes in memory.
    pub fn size(&self) -> usize {
        let slot = |slot: &Slot| match slot {
            Slot::Text(text) => text.len(),
            Slot::Read(_) => 0,
        };
        self.pairs.iter().map(|(keyword, value)| keyword.len() + slot(value) + 80).sum()
    }
}
