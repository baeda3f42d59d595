//! Extensions: further rules after the existing ones, and optional keywords.
//!
//! Invariants:
//! * a key that the schema made before keeps its bytes: the schema is asked first without the extension, and the
//!   extension only for keys that it does not accept;
//! * an optional keyword appears in a key only if the key has it, or another keyword of the same extension;
//! * a rule whose keys an earlier rule accepts completely is refused, because it would never make a key;
//! * roles, compression and the meaning of words stay: an extension is refused if one of its keywords has become
//!   another name of an existing keyword, or a parameter without having been one before.
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

/// Separates a schema from its extension.
const SEPARATOR: &str = "extension;\n";

impl Schema {
    /// Extends the schema by further rules, after its own, and by optional keywords. All keys that it makes stay as
    /// they are. Invalid if a rule would make no key, because an existing rule accepts all of its keys, or if a word
    /// would change its meaning.
    pub fn extend(&self, text: &str) -> Result<Schema> {
        let ended = if self.text().ends_with('\n') { "" } else { "\n" };
        let before = format!("{}{ended}{SEPARATOR}", self.text());
        let extended = parser::parse(&format!("{before}{text}"), before.len())?;
        // A text that looks like a second extension would add one unchecked.
        if extended.older.as_ref().is_none_or(|older| older.rules.len() != self.0.rules.len()) {
            return Err(Code::SchemaSyntax
                .error("the text contains `extension;` itself")
                .with_hint("give one extension at a time, without that word"));
        }
        let extended = Schema(Arc::new(extended));
        self.check_rules(&extended)?;
        check_words(&self.0, &extended.0)?;
        Ok(extended)
    }

    /// Whether the schema has this text, or was extended from it.
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

    /// The number of its extensions.
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
        let whose = if by < before { "that already exists" } else { "before it" };
        Err(Code::RuleTaken
            .error(format!(
                "rule {} accepts all keys of rule {}, which would make none",
                shown(by),
                shown(new)
            ))
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
                    .error(format!("`{name}` is another name of `{own}` in the existing schema"))
                    .with_hint(format!("use `{own}`, or another word")));
            }
            let differs = |p: &Predicate| {
                p.name == predicate.name
                    && (p.kind == KeywordType::Param) != (predicate.kind == KeywordType::Param)
            };
            if before.rules.iter().flat_map(Rule::predicates).any(differs) {
                return Err(Code::KeywordValue
                    .error(format!("`{name}` is a Param in one part of the schema and not in another"))
                    .with_hint("give it the type that it has in the existing rules"));
            }
        }
    }
    Ok(())
}
