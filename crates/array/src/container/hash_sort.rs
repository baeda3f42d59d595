//! Sorts words whose upper half is that of a hash: names of millions of objects, by hash.
//!
//! Invariant: for words whose lower halves ascend, the result equals that of any other sort.

/// Sorts words whose lower halves already ascend: by the upper half, digit by digit, from the lowest.
pub(in crate::container) fn sort_words(mut words: Vec<u64>) -> Vec<u64> {
    const BITS: u32 = 11;
    if words.len() < 1 << BITS {
        words.sort_unstable();
        return words;
    }
    let mut counts = [[0u32; 1 << BITS]; 3];
    let digit = |word: u64, pass: usize| (word >> (32 + pass as u32 * BITS)) as usize & ((1 << BITS) - 1);
    for word in &words {
        for (pass, count) in counts.iter_mut().enumerate() {
            count[digit(*word, pass)] += 1;
        }
    }
    let mut other = vec![0; words.len()];
    for (pass, count) in counts.iter_mut().enumerate() {
        let mut before = 0;
        for count in count.iter_mut() {
            (*count, before) = (before, before + *count);
        }
        for word in &words {
            let at = &mut count[digit(*word, pass)];
            other[*at as usize] = *word;
            *at += 1;
        }
        std::mem::swap(&mut words, &mut other);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_64;

    #[test]
    fn words_are_sorted_whatever_their_number() {
        for n in [0u64, 1, 2, 100, 2047, 2048, 50_000] {
            let upper = |i: u64| xxh3_64(&i.to_le_bytes()) & !0xffff_ffff;
            let words: Vec<u64> = (0..n).map(|i| upper(i / 3) | i).collect();
            let mut expected = words.clone();
            expected.sort();
            assert_eq!(sort_words(words), expected);
        }
    }
}
