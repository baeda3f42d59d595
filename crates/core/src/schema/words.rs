//! The vocabularies of MARS: the words that a keyword such as `class` or `stream` accepts.
//!
//! The words and their other names (`forecast` for `fc`) are ECMWF's, in `data/words.tsv`. Case does not matter; the
//! canonical form is the word in lower case. Every vocabulary also accepts two values that are in no table, because
//! ecCodes reports them for a message whose code has no word: a whole number, and `unknown`.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::nearest::did_you_mean;

const TABLE: &str = include_str!("../../data/words.tsv");

/// A vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Vocabulary {
    /// Origin of the data: `od`, `rd`, `ea`.
    Class,
    /// Type of field: `an`, `fc`, `pf`.
    Type,
    /// Forecasting system: `oper`, `enfo`, `wave`.
    Stream,
    /// Type of level: `pl`, `ml`, `sfc`.
    Levtype,
    /// Area: `g`.
    Domain,
    /// The model: `ifs`, `glob`.
    Model,
    /// Originating centre: `ecmf`, `kwbc`.
    Origin,
    /// Ocean product: `inst`, `tavg`.
    Product,
    /// Ocean section: `h`, `z`.
    Section,
    /// Statistics over time: `moav`.
    Stattype,
    /// Length of a statistic: `6h`, `fs`, `none`.
    Timespan,
    /// Climate activity: `cmip6`.
    Activity,
    /// Climate experiment: `hist`.
    Experiment,
    /// `standard` or `high`.
    Resolution,
}

impl Vocabulary {
    pub(crate) const ALL: [(&'static str, Vocabulary); 14] = [
        ("class", Vocabulary::Class),
        ("type", Vocabulary::Type),
        ("stream", Vocabulary::Stream),
        ("levtype", Vocabulary::Levtype),
        ("domain", Vocabulary::Domain),
        ("model", Vocabulary::Model),
        ("origin", Vocabulary::Origin),
        ("product", Vocabulary::Product),
        ("section", Vocabulary::Section),
        ("stattype", Vocabulary::Stattype),
        ("timespan", Vocabulary::Timespan),
        ("activity", Vocabulary::Activity),
        ("experiment", Vocabulary::Experiment),
        ("resolution", Vocabulary::Resolution),
    ];

    /// The canonical words, in alphabetical order.
    pub fn words(self) -> &'static [&'static str] {
        tables().get(&self).map_or(&[], |table| &table.words)
    }

    /// The canonical form of a word, another name or a number; `None` if `text` is none of these.
    pub(crate) fn canonical(self, text: &str) -> Option<String> {
        let lower = text.to_lowercase();
        if let Some(word) = tables().get(&self).and_then(|table| table.names.get(lower.as_str())) {
            return Some((*word).to_owned());
        }
        (lower == "unknown" || super::calendar::digits(text).is_some()).then_some(lower)
    }

    /// The next step for a user whose word is not valid.
    pub(crate) fn hint(self, text: &str) -> String {
        let words = self.words();
        match did_you_mean(text, words.iter().copied()) {
            Some(meant) => format!("{meant} the words are {}", words.join(", ")),
            None => format!("the words are {}", words.join(", ")),
        }
    }
}

struct WordTable {
    words: Vec<&'static str>,
    /// Maps words and other names to words.
    names: HashMap<&'static str, &'static str>,
}

fn tables() -> &'static HashMap<Vocabulary, WordTable> {
    static TABLES: OnceLock<HashMap<Vocabulary, WordTable>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut tables: HashMap<Vocabulary, WordTable> = HashMap::new();
        for line in TABLE.lines() {
            let mut cells = line.split('\t');
            let (Some(name), Some(word)) = (cells.next(), cells.next()) else { continue };
            let Some((_, vocabulary)) = Vocabulary::ALL.iter().find(|(n, _)| *n == name) else { continue };
            let table = tables
                .entry(*vocabulary)
                .or_insert_with(|| WordTable { words: Vec::new(), names: HashMap::new() });
            table.words.push(word);
            for name in std::iter::once(word).chain(cells) {
                table.names.entry(name).or_insert(word);
            }
        }
        tables
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vocabulary_has_words_and_every_word_is_canonical() {
        for (name, vocabulary) in Vocabulary::ALL {
            assert!(!vocabulary.words().is_empty(), "{name}");
            assert!(vocabulary.words().is_sorted(), "{name}");
            for word in vocabulary.words() {
                assert_eq!(vocabulary.canonical(word).as_deref(), Some(*word), "{name}");
            }
        }
    }
}
