//! Secrets with a known shape, anywhere in a text.

use std::ops::Range;

/// Prefixes of tokens and keys of services, and the minimum number of characters after them.
const PREFIXES: [(&str, usize); 45] = [
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("gldt-", 16),
    ("glrt-", 16),
    ("glptt-", 16),
    ("glcbt-", 16),
    ("glsoat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("xoxe-", 10),
    ("xapp-", 10),
    ("hf_", 16),
    ("sk-", 16),
    ("sk_live_", 10),
    ("sk_test_", 10),
    ("rk_live_", 10),
    ("whsec_", 16),
    ("npm_", 30),
    ("pypi-", 16),
    ("dckr_pat_", 16),
    ("dop_v1_", 20),
    ("hvs.", 16),
    ("hvb.", 16),
    ("SG.", 20),
    ("dapi", 32),
    ("ATATT3", 20),
    ("shpat_", 20),
    ("sq0atp-", 16),
    ("lin_api_", 20),
    ("glsa_", 20),
    ("AGE-SECRET-KEY-1", 20),
    ("AIza", 35),
    ("ya29.", 16),
    ("GOCSPX-", 16),
    ("NRAK-", 20),
    ("hooks.slack.com/services/", 16),
    ("PMAK-", 20),
];
/// Keys of AWS.
const AWS: [&str; 4] = ["AKIA", "ASIA", "ABIA", "ACCA"];

/// Texts with the shape of a secret.
pub fn secrets(text: &str, found: &mut Vec<Range<usize>>) {
    private_keys(text, found);
    for (prefix, least) in PREFIXES {
        for (begin, _) in text.match_indices(prefix).filter(|(begin, _)| is_begin(text, *begin)) {
            let end = run(text, begin, |c| c.is_ascii_alphanumeric() || "_-./+=~".contains(c));
            // Ordinary words may begin like this, too.
            let is_word = prefix.len() < 4 && !text[begin..end].contains(|c: char| c.is_ascii_digit());
            if end - begin >= prefix.len() + least && !is_word {
                found.push(begin..end);
            }
        }
    }
    for (begin, _) in AWS.iter().flat_map(|head| text.match_indices(head)) {
        let end = run(text, begin, |c| c.is_ascii_uppercase() || c.is_ascii_digit());
        let alone = !text[end..].starts_with(|c: char| c.is_ascii_alphanumeric());
        if end - begin == 20 && alone && is_begin(text, begin) {
            found.push(begin..end);
        }
    }
    // A JSON web token: three parts, the first of which is an object.
    for (begin, _) in text.match_indices("eyJ").filter(|(begin, _)| is_begin(text, *begin)) {
        let end = run(text, begin, |c| c.is_ascii_alphanumeric() || "_-.=".contains(c));
        if end - begin >= 20 && text[begin..end].matches('.').count() >= 2 {
            found.push(begin..end);
        }
    }
    schemes(text, found);
}

/// From the first line of a private key to its last, or to the end.
fn private_keys(text: &str, found: &mut Vec<Range<usize>>) {
    const BEGIN: &str = "-----BEGIN ";
    let mut at = 0;
    while let Some(begin) = text[at..].find(BEGIN).map(|offset| at + offset) {
        at = begin + BEGIN.len();
        let label = text[at..].split("-----").next().unwrap_or_default();
        if !label.contains("PRIVATE KEY") {
            continue;
        }
        let last = text[at..].find("-----END ").map(|offset| at + offset + "-----END ".len());
        let end = last.and_then(|last| Some(last + text[last..].find("-----")? + 5)).unwrap_or(text.len());
        found.push(begin..end);
        at = end;
    }
}

/// The word after an authentication scheme, unless it is a word of a language.
fn schemes(text: &str, found: &mut Vec<Range<usize>>) {
    let mut before = "";
    for word in text.split_whitespace() {
        let begin = word.as_ptr() as usize - text.as_ptr() as usize;
        let value = word.trim_end_matches(['"', '\'', ')', ',', ';', '}', ']']);
        let is_scheme = ["bearer", "basic"].iter().any(|scheme| before.eq_ignore_ascii_case(scheme));
        if is_scheme && value.len() >= 8 && is_code(value) {
            found.push(begin..begin + value.len());
        }
        before = word.trim_start_matches(['"', '\'', '(', '{', '[']);
    }
}

/// Whether a word has digits, upper-case letters after lower-case ones, or the padding of base64.
fn is_code(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.+/=~".contains(c);
    let mixed = word.chars().skip(1).any(|c| c.is_ascii_uppercase()) && word.contains(char::is_lowercase);
    word.chars().all(plain) && (mixed || word.ends_with('=') || word.contains(|c: char| c.is_ascii_digit()))
}

/// Whether a word may begin here.
fn is_begin(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// The end of a run of such characters.
fn run(text: &str, begin: usize, of: impl Fn(char) -> bool) -> usize {
    text[begin..].find(|c: char| !of(c)).map_or(text.len(), |length| begin + length)
}
