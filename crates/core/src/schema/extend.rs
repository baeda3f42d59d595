//! Extensions: further rules behind those that are there, and optional keywords.
//!
//! Invariants:
//! * a key that the schema made before keeps its bytes: the schema as it was is asked first, and what it takes
//!   is not asked of the extension;
//! * an optional keyword stands in a key only where the key has it, or another one of the same extension;
//! * a rule of which an earlier one takes every key is refused: it would never make a key;
//! * roles, compression and the meaning of words stay: a keyword that has become another name of one that is
//!   there, or a parameter where it was none, is refused.
//!
//! ```
//! use fieldstone_core::schema::Schema;
//! let before = Schema::parse("step: Integer; [run [variable [step]]]")?;
//! let after = before.extend("number?: Integer;")?;
//! let old = [("run", "a"), ("variable", "t"), ("step", "6")];
//! assert_eq!(after.resolve(&old)?, before.resolve(&old)?);
//! let new = [("run", "a"), ("variable", "t"), ("step", "6"), ("number", "3")];
//! assert_eq!(after.resolve(&new)?.to_string(), "{run=a}{variable=t}{step=6,number=3}");
//! assert!(before.resolve(&new).is_err());
//! assert!(after.extend("[run=a [variable [step]]]").is_err(), "the first rule takes all of these");
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use std::sync::Arc;

use super::rule::{Predicate, Rule};
use super::types::KeywordType;
use super::{Inner, Schema, parser};
use crate::{Code, Result};

/// What stands between a schema and its extension.
const SEPARATOR: &str = "extension;\n";

impl Schema {
    /// The schema with further rules, behind its own, and optional keywords. Every key that it makes stays as it
    /// is. Invalid where a rule would make no key, because one that is there takes all of its keys, and where a
    /// word would mean something else than before.
    pub fn extend(&self, text: &str) -> Result<Schema> {
        let ended = if self.text().ends_with('\n') { "" } else { "\n" };
        let before = format!("{}{ended}{SEPARATOR}", self.text());
        let extended = parser::parse(&format!("{before}{text}"), before.len())?;
        // What looks like a second extension would be one more, unchecked.
        if extended.older.as_ref().is_none_or(|older| older.rules.len() != self.0.rules.len()) {
            return Err(Code::SchemaSyntax
                .error("the text holds `extension;` itself")
                .with_hint("give one extension at a time, without that word"));
        }
        let extended = Schema(Arc::new(extended));
        self.check_rules(&extended)?;
        check_words(&self.0, &extended.0)?;
        Ok(extended)
    }

    /// Whether it is a schema of this text, or came from it by extensions.
    pub fn grew_from(&self, text: &str) -> bool {
        let mut schema = Some(&*self.0);
        while let Some(inner) = schema {
            if inner.text.trim_end() == text.trim_end() {
                return true;
            }
            schema = inner.older.as_deref();
        }
        false
    }

    /// How many times it was extended.
    pub fn extensions(&self) -> usize {
        self.0.parts.len().saturating_sub(1)
    }

    fn check_rules(&self, extended: &Schema) -> Result<()> {
        let before = self.0.rules.len();
        let Some((new, by)) = extended.unreachable().into_iter().find(|(later, _)| *later >= before) else {
            return Ok(());
        };
        let rules = extended.rules();
        let shown = |i: usize| rules.get(i).map(ToString::to_string).unwrap_or_default();
        let whose = if by < before { "that is there" } else { "before it" };
        Err(Code::RuleTaken
            .error(format!("rule {} takes all keys of {}, so that it would make none", shown(by), shown(new)))
            .with_hint(format!("leave it out: the rule {whose} makes these keys")))
    }
}

/// Refuses an extension in which a word means something else than before.
fn check_words(before: &Inner, extended: &Inner) -> Result<()> {
    for rule in &extended.rules[before.rules.len().min(extended.rules.len())..] {
        for predicate in rule.predicates() {
            let name = &*predicate.name;
            let own = before.keyword(name);
            if own != name {
                return Err(Code::KeywordUnknown
                    .error(format!("`{name}` is another name of `{own}` in the schema that is there"))
                    .with_hint(format!("use `{own}`, or another word")));
            }
            let differs = |p: &Predicate| {
                p.name == predicate.name
                    && (p.kind == KeywordType::Param) != (predicate.kind == KeywordType::Param)
            };
            if before.rules.iter().flat_map(Rule::predicates).any(differs) {
                return Err(Code::KeywordValue
                    .error(format!("`{name}` is a Param in one part of the schema and not in the other"))
                    .with_hint("give it the type that it has in the rules that are there"));
            }
        }
    }
    Ok(())
}
