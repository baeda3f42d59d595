//! Nearest names, for messages: the known words that a mistyped one may have meant.

/// Words of `known` close to `word`, the closest first, at most three.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let limit = (word.chars().count() / 3).clamp(1, 3);
    let mut close: Vec<(usize, &str)> = Vec::new();
    for candidate in known {
        let distance = distance(&word.to_lowercase(), &candidate.to_lowercase());
        if distance <= limit && !close.iter().any(|(_, c)| *c == candidate) {
            close.push((distance, candidate));
        }
    }
    close.sort();
    close.into_iter().take(3).map(|(_, c)| c).collect()
}

/// "did you mean `a` or `b`?", or `None` if no known word is close.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let close = nearest(word, known);
    (!close.is_empty()).then(|| {
        let quoted: Vec<String> = close.iter().map(|c| format!("`{c}`")).collect();
        format!("did you mean {}?", quoted.join(" or "))
    })
}

/// Whether one letter was left out, added, changed or swapped with its neighbour.
pub(crate) fn is_one_letter_away(word: &str, known: &str) -> bool {
    // Longer words differ by more; `distance` ignores their ends, which may be equal.
    word.chars().count().abs_diff(known.chars().count()) <= 1
        && word.len() <= 64
        && distance(word, known) == 1
}

/// The `count` words of `known` that are closest to `word`, however far away.
pub(crate) fn closest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    let lower = word.to_lowercase();
    let mut all: Vec<(usize, &str)> = known.into_iter().map(|c| (distance(&lower, c), c)).collect();
    all.sort();
    all.dedup();
    all.into_iter().take(count).map(|(_, c)| c).collect()
}

/// Number of edits (insert, delete, replace, swap of neighbours) between two words. Compares only the first 64
/// characters of long words, so that hostile input costs little.
fn distance(a: &str, b: &str) -> usize {
    strsim::osa_distance(start(a), start(b))
}

fn start(word: &str) -> &str {
    word.char_indices().nth(64).map_or(word, |(end, _)| &word[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_word_comes_first() {
        assert_eq!(nearest("levle", ["step", "level", "levtype"]), ["level"]);
        assert_eq!(nearest("variabel", ["variable", "step"]), ["variable"]);
        assert_eq!(nearest("xyz", ["variable", "step"]), Vec::<&str>::new());
        assert_eq!(did_you_mean("stpe", ["step", "steps"]).unwrap(), "did you mean `step`?");
    }

    #[test]
    fn a_long_word_is_no_burden() {
        assert!(nearest(&"a".repeat(1 << 20), ["a"]).is_empty());
    }
}
