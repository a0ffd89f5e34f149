//! The tables of a JPEG apart from its picture, for pictures that leave out those that are known.

use super::Jpeg;
use super::huffman::END;
use super::markers::Item;

const QUANTIZATION: u8 = 0xDB;
const HUFFMAN: u8 = 0xC4;

/// Tables by their kind and number, each as a segment has it.
#[derive(Debug, Default)]
pub(crate) struct Tables(Vec<Table>);

#[derive(Debug)]
struct Table {
    marker: u8,
    /// The byte with the table's number, and the table.
    body: Vec<u8>,
}

impl Tables {
    /// Adds the tables of a JPEG. One of the same kind and number takes the place of the one before.
    pub(crate) fn add(&mut self, jpeg: &Jpeg<'_>) {
        for item in &jpeg.segments.items {
            let (marker, mut rest) = match item {
                Item::Quantization(range) => (QUANTIZATION, &jpeg.file[range.clone()]),
                Item::Huffman(range) => (HUFFMAN, &jpeg.file[range.clone()]),
                _ => continue,
            };
            while let Some((body, later)) =
                length(marker, rest).and_then(|length| rest.split_at_checked(length))
            {
                rest = later;
                self.0.retain(|known| (known.marker, known.body[0]) != (marker, body[0]));
                self.0.push(Table { marker, body: body.to_vec() });
            }
        }
    }

    /// Appends the tables to a file, each as a segment.
    pub(crate) fn write(&self, file: &mut Vec<u8>) {
        for Table { marker, body } in &self.0 {
            let Ok(length) = u16::try_from(body.len() + 2) else { continue };
            file.extend([0xFF, *marker]);
            file.extend(length.to_be_bytes());
            file.extend_from_slice(body);
        }
    }
}

/// Counts the bytes of the table that a segment begins with.
fn length(marker: u8, segment: &[u8]) -> Option<usize> {
    let kind = *segment.first()?;
    if marker == QUANTIZATION {
        return Some(1 + if kind >> 4 == 0 { END } else { 2 * END });
    }
    let counts = segment.get(1..17)?;
    Some(17 + counts.iter().map(|count| usize::from(*count)).sum::<usize>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_kept_one_by_one_and_the_last_of_a_number_counts() {
        let file = |segments: &[(u8, Vec<u8>)]| {
            let mut file = b"\xFF\xD8".to_vec();
            for (marker, body) in segments {
                file.extend([0xFF, *marker]);
                file.extend(u16::try_from(body.len() + 2).unwrap().to_be_bytes());
                file.extend(body);
            }
            file
        };
        let quantization = |kind: u8, value: u8| {
            [vec![kind], vec![value; if kind >> 4 == 0 { 64 } else { 128 }]].concat()
        };
        let huffman = |kind: u8, symbol: u8| [&[kind, 1][..], &[0; 15], &[symbol]].concat();

        let first = file(&[
            (0xDB, [quantization(0, 7), quantization(0x11, 8)].concat()),
            (0xC4, [huffman(0, 1), huffman(0x10, 2)].concat()),
        ]);
        let second = file(&[(0xDB, quantization(0, 9)), (0xC4, huffman(0x10, 3)[..17].to_vec())]);
        let mut tables = Tables::default();
        for file in [&first, &second] {
            tables.add(&Jpeg::survey(file).unwrap());
        }

        let mut kept = b"\xFF\xD8".to_vec();
        tables.write(&mut kept);
        let expected = file(&[
            (0xDB, quantization(0x11, 8)),
            (0xC4, huffman(0, 1)),
            (0xC4, huffman(0x10, 2)),
            (0xDB, quantization(0, 9)),
        ]);
        assert_eq!(kept, expected, "a table that is cut is none");
    }
}
