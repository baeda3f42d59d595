//! Plain English: a sentence names its actor first, then an active verb, then the object.
//!
//! The check knows patterns that we wrote often and that a reader has to read twice. It looks at the prose of docs,
//! comments and messages (see `passages`), not at code.

use super::passages::passages;
use super::{files, none};

/// Words with which a sentence does not begin, unless it is a question: they hide the actor.
const HIDDEN_ACTORS: &[&str] = &["What", "Who", "Where", "Whoever", "Whatever", "Whom", "Whose"];

/// The same after a semicolon, where `where` joins two sentences as it should.
const HIDDEN_IN_HALVES: &[&str] = &["what", "who", "whoever", "whatever"];

/// Phrases, and what to say instead.
const PHRASES: &[(&str, &str)] = &[
    ("so many", "up to n, that many, or the number"),
    ("anew", "again, or from scratch"),
    ("told", "reported, shown, or learned"),
    ("tells", "says, shows or distinguishes"),
    ("heard of", "reported, or known"),
    ("hears of", "learns of"),
    ("of what", "name the thing"),
    ("that of which", "name the thing"),
];

/// Words that may follow `is no`: they compare, and deny nothing.
const COMPARED: &[&str] =
    &["longer", "more", "less", "later", "earlier", "better", "worse", "larger", "smaller"];

const TO_BE: &[&str] = &["is", "are", "was", "were"];

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '`' && c != '\'' && c != '_')
        .filter(|word| !word.is_empty())
        .collect()
}

/// The sentences of a passage: a full stop, a colon, an exclamation or a question mark and a space end one.
fn sentences(text: &str) -> Vec<&str> {
    let (mut found, mut from) = (Vec::new(), 0);
    for (at, _) in text.match_indices(['.', '!', '?', ':']) {
        if text[at + 1..].starts_with([' ', ')']) {
            found.push(&text[from..=at]);
            from = at + 1;
        }
    }
    found.push(&text[from..]);
    found
}

/// The complaints about a passage.
fn complaints(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for sentence in sentences(text) {
        let all = words(sentence);
        let Some(first) = all.first() else { continue };
        let question = sentence.trim_end().ends_with('?');
        // A sentence of one or two words is a label or a heading: "Where", "What it is".
        if !question && HIDDEN_ACTORS.contains(first) && all.len() > 1 {
            found.push(format!("a sentence begins with {first}: name the actor"));
        }
        for half in sentence.split("; ").skip(1).filter(|_| !question) {
            if let Some(first) = words(half).first().filter(|first| HIDDEN_IN_HALVES.contains(first)) {
                found.push(format!("half a sentence begins with {first}: name the actor"));
            }
        }
        for three in all.windows(2).enumerate() {
            let (n, two) = three;
            let before = n.checked_sub(1).map_or("", |n| all[n]);
            let after = all.get(n + 2).copied().unwrap_or("");
            let there = before.eq_ignore_ascii_case("there");
            if TO_BE.contains(&two[0]) && two[1] == "no" && !there && !COMPARED.contains(&after) {
                found.push(format!("{} no {after}: say that it is not one, or not valid", two[0]));
            }
        }
        let spaced = format!(" {} ", all.join(" ").to_lowercase());
        let phrases = PHRASES.iter().filter(|(phrase, _)| spaced.contains(&format!(" {phrase} ")));
        found.extend(phrases.map(|(phrase, instead)| format!("{phrase}: say {instead}")));
    }
    found
}

#[test]
fn prose_names_the_actor_first() {
    let all = files(&["md", "rs", "py", "pyi", "c", "h", "f90"]);
    // These checks quote the words that they forbid.
    let read =
        all.iter().filter(|(path, _)| !path.ends_with("house/prose.rs") && !path.ends_with("house/words.rs"));
    let found = read.flat_map(|(path, text)| {
        passages(path, text).into_iter().flat_map(move |passage| {
            let of = complaints(&passage.text);
            of.into_iter().map(move |complaint| format!("{path}:{}: {complaint}", passage.line))
        })
    });
    none(found.collect());
}

#[test]
fn the_check_can_fail() {
    assert_eq!(complaints("Who reads waits. What is it?"), ["a sentence begins with Who: name the actor"]);
    assert_eq!(
        complaints("It waits; who reads it does not."),
        ["half a sentence begins with who: name the actor"]
    );
    assert_eq!(complaints("'x' is no key"), ["is no key: say that it is not one, or not valid"]);
    assert!(complaints("There is no key, and it is no longer there.").is_empty());
    assert_eq!(complaints("It is told so many times anew").len(), 3);
    assert!(complaints("Whole, manifold, retold.").is_empty());
}
