//! Describes a schema, for people and for programs that display it, and finds the rules that no key ever reaches.
//!
//! ```
//! use fieldstone_core::schema::Schema;
//! let schema = Schema::parse("step: Integer; [run [variable [step?, *]]] [run [variable [step]]]")?;
//! let rule = &schema.rules()[0];
//! assert_eq!(rule.to_string(), "[run [variable [step?, *]]]");
//! assert_eq!(rule.levels[2].keywords[0].kind.name(), "Integer");
//! assert_eq!(schema.unreachable(), [(1, 0)], "the first rule takes all that the second could");
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use std::fmt;
use std::sync::Arc;

use super::rule::{Condition, Predicate, Presence, Rule};
use super::types::KeywordType;
use super::{CatalogRoles, Schema};
use crate::key::{KeyValue, LEVELS};

/// One rule: three levels.
#[derive(Debug, Clone)]
pub struct RuleDescription {
    /// Dataset, index, field.
    pub levels: [LevelDescription; LEVELS],
    /// The catalog roles of its keywords.
    pub roles: Arc<CatalogRoles>,
}

/// One level of a rule.
#[derive(Debug, Clone, Default)]
pub struct LevelDescription {
    /// Its keywords, in order.
    pub keywords: Vec<KeywordDescription>,
    /// Whether it accepts further keywords.
    pub open: bool,
}

/// One keyword of a level.
#[derive(Debug, Clone)]
pub struct KeywordDescription {
    /// Its name.
    pub name: Arc<str>,
    /// Its type in this level.
    pub kind: KeywordType,
    /// Whether a key must have it.
    pub required: bool,
    /// Whether the caller's value is dropped.
    pub hidden: bool,
    /// The value if the caller gives none.
    pub default: Option<KeyValue>,
    /// The only values that the rule accepts, if it names them.
    pub only: Option<Vec<KeyValue>>,
    /// Values that the rule does not accept.
    pub except: Vec<KeyValue>,
}

impl Schema {
    /// Its rules, in the order in which keys try them.
    pub fn rules(&self) -> Vec<RuleDescription> {
        let level = |rule: &Rule, l: usize| LevelDescription {
            keywords: rule.levels[l].predicates.iter().map(keyword).collect(),
            open: rule.levels[l].open,
        };
        let description = |rule: &Rule| RuleDescription {
            levels: [0, 1, 2].map(|l| level(rule, l)),
            roles: rule.roles.clone(),
        };
        self.0.rules.iter().map(description).collect()
    }

    /// Rules that no archived key reaches, because an earlier rule accepts every key that they could: the number of
    /// the rule and of the earlier one, from 0. Lists only certain cases.
    pub fn unreachable(&self) -> Vec<(usize, usize)> {
        let rules = &self.0.rules;
        let covered = |(i, rule): (usize, &Rule)| {
            rules[..i].iter().position(|earlier| covers(earlier, rule)).map(|by| (i, by))
        };
        rules.iter().enumerate().filter_map(covered).collect()
    }
}

fn keyword(p: &Predicate) -> KeywordDescription {
    let values = |exclude| p.condition.as_ref().filter(|c| c.exclude == exclude).map(|c| c.values.clone());
    let default = match &p.presence {
        Presence::Optional(value) if !value.is_absent() => Some(value.clone()),
        Presence::Hidden(value) => value.clone(),
        _ => None,
    };
    KeywordDescription {
        name: p.name.clone(),
        kind: p.kind,
        required: matches!(p.presence, Presence::Required),
        hidden: p.hidden(),
        default,
        only: values(false),
        except: values(true).unwrap_or_default(),
    }
}

/// Whether `earlier` accepts every key that `later` accepts.
pub(super) fn covers(earlier: &Rule, later: &Rule) -> bool {
    let same = |p: &Predicate| later.predicates().find(|q| q.name == p.name && q.source == p.source);
    let met = earlier.predicates().all(|p| {
        let required = same(p).filter(|q| matches!(q.presence, Presence::Required));
        match (&p.presence, &p.condition) {
            (Presence::Required, None) => required.is_some(),
            (Presence::Required, Some(condition)) => required
                .filter(|q| q.kind == p.kind)
                .and_then(|q| q.condition.as_ref())
                .is_some_and(|narrower| implies(narrower, condition)),
            _ => true,
        }
    });
    // Every keyword that may be given to the later rule has a place in the earlier one.
    let placed = |q: &Predicate| earlier.predicates().any(|p| p.name == q.name && p.source == q.source);
    met && match earlier.open {
        Some(_) => true,
        None => later.open.is_none() && later.predicates().all(placed),
    }
}

/// Whether `wider` accepts every value that `narrower` accepts.
fn implies(narrower: &Condition, wider: &Condition) -> bool {
    match (narrower.exclude, wider.exclude) {
        (false, _) => narrower.values.iter().all(|value| wider.takes(value)),
        (true, true) => wider.values.iter().all(|value| narrower.values.contains(value)),
        (true, false) => false,
    }
}

impl fmt::Display for RuleDescription {
    /// `[run [variable [step?, *]]]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, level) in self.levels.iter().enumerate() {
            write!(f, "{}[{level}", if i > 0 { " " } else { "" })?;
        }
        f.write_str("]]]")
    }
}

impl fmt::Display for LevelDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = self.keywords.iter().map(ToString::to_string).collect();
        if self.open {
            words.push("*".to_owned());
        }
        f.write_str(&words.join(", "))
    }
}

impl fmt::Display for KeywordDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |values: &[KeyValue], sign: &str| {
            values.iter().map(|v| format!("{sign}{v}")).collect::<Vec<_>>().join("/")
        };
        f.write_str(&self.name)?;
        match (&self.only, self.required, self.hidden) {
            (Some(only), ..) => write!(f, "={}", join(only, "")),
            _ if !self.except.is_empty() => write!(f, "={}", join(&self.except, "!")),
            (_, true, _) => Ok(()),
            (_, _, hidden) => {
                f.write_str(if hidden { "-" } else { "?" })?;
                self.default.as_ref().map_or(Ok(()), |value| write!(f, "{value}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable(text: &str) -> Vec<(usize, usize)> {
        Schema::parse(text).unwrap().unreachable()
    }

    #[test]
    fn a_rule_behind_one_that_takes_all_its_keys_is_unreachable() {
        for text in [
            "[a [b [c]]] [a [b [c]]]",
            "[a [b [c?]]] [a [b [c]]]",
            "[a [b [c, *]]] [a [b [c, d]]]",
            "[a [b [*]]] [a [b [c]]]",
            "[a=x/y [b [c]]] [a=x [b [c]]]",
            "[a=!x/!y [b [c]]] [a=!x/!y/!z [b [c]]]",
            "[a=!x/!y [b [c]]] [a=z/w [b [c]]]",
            "[a [b [c, d?]]] [c [b [a]]]",
        ] {
            assert_eq!(unreachable(text), [(1, 0)], "{text}");
        }
    }

    #[test]
    fn a_rule_with_a_key_of_its_own_is_not() {
        for text in [
            "[a [b [c]]] [a [b [c?]]]",
            "[a [b [c]]] [a [b [c, d?]]]",
            "[a [b [c]]] [a [b [c, *]]]",
            "[a=x [b [c]]] [a=x/y [b [c]]]",
            "[a=x [b [c]]] [a=!y/!z [b [c]]]",
            "[a=!x/!y [b [c]]] [a=!x/!z [b [c]]]",
            "[a=x [b [c]]] [a [b [c]]]",
            "[a [b [c, d]]] [a [b [c, e]]]",
            "[a, date: Year [b [c]]] [a, date: Date [b [c]]]",
        ] {
            assert_eq!(unreachable(text), [], "{text}");
        }
        for name in ["simulation", "mars", "mixed"] {
            assert_eq!(Schema::builtin(name).unwrap().unreachable(), [], "{name}");
        }
    }

    /// Checks by trial that keys accepted by the earlier rule never come from the later one.
    #[test]
    fn what_is_called_unreachable_is_never_reached() {
        let values = ["x", "y", "z", "w"];
        for (first, second) in [
            ("[a=!x/!y [b [c?, d-]]]", "[a=z/w [b [c]]]"),
            ("[a [b [*]]]", "[a [b [c=x, d?]]]"),
            ("[a [b? [c?, *]]]", "[c [b [a]]]"),
        ] {
            let both = Schema::parse(&format!("{first} {second}")).unwrap();
            assert_eq!(both.unreachable(), [(1, 0)], "{first} {second}");
            let (alone, then) = (Schema::parse(first).unwrap(), Schema::parse(second).unwrap());
            for a in values {
                for c in values {
                    let key = [("a", a), ("b", "1"), ("c", c)];
                    assert!(then.resolve(&key).is_err() || alone.resolve(&key).is_ok(), "{key:?}");
                }
            }
        }
    }

    #[test]
    fn rules_print_as_they_are_written() {
        let text = "[class=od/rd, stream=!x/!y, domain?g [type-, levtype?, mode-fc [step?, *]]]";
        assert_eq!(Schema::parse(text).unwrap().rules()[0].to_string(), text);
    }
}
