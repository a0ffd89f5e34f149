//! The word that was probably meant by a misspelled one.

/// Returns the most similar word, if it differs in at most a third of the characters.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    let by_distance = known.map(|known| (distance(word, known), known));
    by_distance.filter(|(distance, _)| *distance <= limit).min().map(|(_, known)| known)
}

/// Counts the insertions, deletions and replacements of characters, and the swaps of neighbours, between two
/// words (optimal string alignment).
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    let mut before_last: Vec<usize> = Vec::new();
    for (i, c) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, d) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(c != d);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *c == other[j - 1] && one[i - 1] == *d {
                least = least.min(before_last[j - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_changed_characters_and_swaps() {
        for (one, other, count) in [
            ("", "", 0),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("a", "b", 1),
            ("ab", "ba", 1),
            ("auht", "auth", 1),
            ("abc", "cba", 2),
        ] {
            assert_eq!((distance(one, other), distance(other, one)), (count, count), "{one}");
        }
    }
}
