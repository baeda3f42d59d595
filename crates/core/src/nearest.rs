//! Nearest names, for messages: which of the known words a mistyped one may have meant.

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

/// "did you mean `a` or `b`?", or `None` where nothing is close.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let close = nearest(word, known);
    (!close.is_empty()).then(|| {
        let quoted: Vec<String> = close.iter().map(|c| format!("`{c}`")).collect();
        format!("did you mean {}?", quoted.join(" or "))
    })
}

/// Whether one letter was left out, added, changed or swapped with its neighbour.
pub(crate) fn is_one_letter_away(word: &str, known: &str) -> bool {
    // Longer words differ by more; what `distance` does not look at may not.
    word.chars().count().abs_diff(known.chars().count()) <= 1
        && word.len() <= 64
        && distance(word, known) == 1
}

/// The `count` words of `known` that are closest to `word`, however far they are.
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

/// Edits (insert, delete, replace, swap of neighbours) between two words. Long words are compared
/// by their first 64 characters, so that hostile input costs little.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &ca) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &cb) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(ca != cb);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && ca == b[j - 1] && a[i - 1] == cb {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = last;
        last = row;
    }
    last[b.len()]
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
