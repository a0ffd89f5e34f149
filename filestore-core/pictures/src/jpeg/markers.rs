//! Lists the segments of a whole file (ITU-T T.81, annex B) before decoding. Only the complete list shows
//! which scans are worth reading.

use std::ops::Range;

use memchr::memchr;

use super::huffman::END;
use crate::pixels::Model;

/// The maximum number of segments. Real pictures have a few dozen.
const MAX_SEGMENTS: usize = 1 << 14;
/// The marker of a progressive frame with Huffman coding.
pub(super) const PROGRESSIVE: u8 = 0xC2;
/// Zigzag order (T.81, figure A.6): the natural place of each coefficient.
pub(super) const ZIGZAG: [u8; END] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// The parts of a file that the decoder needs, as ranges of bytes.
#[derive(Debug, Default)]
pub(super) struct Segments {
    pub(super) frame: Option<Frame>,
    /// Tables and scans, in file order.
    pub(super) items: Vec<Item>,
    /// The ICC profile's chunks, each with its number.
    pub(super) profile: Vec<(u8, Range<usize>)>,
    /// The end of the picture. Phones append videos and further pictures behind it.
    pub(super) end: usize,
}

/// A segment between the frame's header and the end of the picture.
#[derive(Debug)]
pub(super) enum Item {
    /// Quantization tables: the segment's payload.
    Quantization(Range<usize>),
    /// Huffman tables: the segment's payload.
    Huffman(Range<usize>),
    /// The number of MCUs between restart markers, or 0 without markers.
    RestartInterval(usize),
    Scan(Scan),
}

/// A frame: size and components.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// The marker's code, which names the kind of frame.
    pub(super) marker: u8,
    pub(super) precision: u8,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) components: Vec<FrameComponent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameComponent {
    pub(super) id: u8,
    /// Sampling factors, across and down.
    pub(super) h: u8,
    pub(super) v: u8,
    /// The number of the quantization table.
    pub(super) table: u8,
}

/// A scan's header, and the range of its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scan {
    /// The components, in the order of their blocks.
    pub(super) components: Vec<ScanComponent>,
    /// The places of the scan's coefficients, in zigzag order.
    pub(super) band: Range<usize>,
    /// The bit that the scan refines, plus 1. 0 for the first scan of its coefficients.
    pub(super) high: u8,
    /// The lowest bit in the scan.
    pub(super) low: u8,
    /// The range of the entropy-coded data.
    pub(super) data: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScanComponent {
    /// The component's index in the frame.
    pub(super) index: usize,
    pub(super) dc_table: usize,
    pub(super) ac_table: usize,
}

impl Frame {
    /// Returns true if the frame matches the header that was read before: the components of `model`, in 8
    /// bits, with Huffman coding. The rest of the decoder relies on this check.
    pub(super) fn is_regular(&self, model: Model) -> bool {
        matches!(self.marker, 0xC0..=0xC2)
            && self.precision == 8
            && self.components.len() == model.components()
            && self
                .components
                .iter()
                .all(|component| (1..=4).contains(&component.h) && (1..=4).contains(&component.v))
    }
}

impl Segments {
    /// Lists the scans in file order.
    pub(super) fn scans(&self) -> impl DoubleEndedIterator<Item = &Scan> {
        self.items.iter().filter_map(|item| match item {
            Item::Scan(scan) => Some(scan),
            _ => None,
        })
    }

    /// Takes the header of the frame; false for that of another picture, behind the first scan.
    fn begin(&mut self, marker: u8, bytes: &[u8]) -> Result<bool, &'static str> {
        if self.has_scan() {
            return Ok(false);
        }
        if self.frame.is_some() {
            return Err("two frames");
        }
        self.frame = Some(frame(marker, bytes).ok_or("a broken frame")?);
        Ok(true)
    }

    /// Returns true once a scan is listed.
    fn has_scan(&self) -> bool {
        self.scans().next().is_some()
    }

    /// Returns true if all of a sequential frame is in the last scan: nothing more of it can come, as
    /// libjpeg takes it.
    fn is_complete(&self) -> bool {
        let Some(Item::Scan(last)) = self.items.last() else { return false };
        self.frame.as_ref().is_some_and(|frame| {
            frame.marker != PROGRESSIVE && last.components.len() == frame.components.len()
        })
    }

    /// Puts the chunks of the ICC profile together, if none is missing (ICC.1, annex B.4). Of several with
    /// one number, the first counts. The number of chunks that each of them claims is not asked: the
    /// profile has a length of its own.
    pub(super) fn profile(&self, file: &[u8], most: usize) -> Option<Vec<u8>> {
        let mut chunks = self.profile.clone();
        chunks.sort_by_key(|(number, _)| *number);
        chunks.dedup_by_key(|(number, _)| *number);

        let in_order = chunks.iter().zip(1u8..).all(|((number, _), due)| *number == due);
        let bytes = chunks.iter().map(|(_, range)| range.len()).sum::<usize>();
        (in_order && bytes > 0 && bytes <= most)
            .then(|| chunks.iter().flat_map(|(_, range)| &file[range.clone()]).copied().collect())
    }
}

/// Lists the segments of `file`. Omits broken segments. If the file ends early, lists the segments before the
/// end. `Err` tells why the whole file is unreadable.
pub(super) fn survey(file: &[u8]) -> Result<Segments, &'static str> {
    let mut segments = Segments { end: file.len(), ..Segments::default() };
    let mut at = 2;

    while let Some(found) = file.get(at..).and_then(|rest| memchr(0xFF, rest)) {
        at += found + 1;
        match file.get(at) {
            // Fill: the marker's code is still to come.
            Some(0xFF) => {}
            // Another picture.
            Some(0xD8) if segments.has_scan() => {
                segments.end = at - 1;
                break;
            }
            // Stuffing, and markers that stand alone.
            Some(0x00 | 0x01 | 0xD0..=0xD8) => at += 1,
            Some(0xD9) => {
                segments.end = at + 1;
                break;
            }
            Some(marker) => {
                let start = at - 1;
                let length = file
                    .get(at + 1..at + 3)
                    .map_or(2, |b| usize::from(b[0]) << 8 | usize::from(b[1]));
                let payload = at + 3..(at + 1 + length).min(file.len());
                at += 1 + length;
                if payload.start >= payload.end {
                    continue;
                }
                let end = read_segment(&mut segments, file, *marker, payload)?;
                if end.is_none() || segments.is_complete() {
                    segments.end = end.unwrap_or(start);
                    break;
                }
                at = at.max(end.unwrap_or(at));
            }
            None => break,
        }
    }

    Ok(segments)
}

/// Adds a segment to the list. Returns the end of the bytes that were read.
fn read_segment(
    segments: &mut Segments,
    file: &[u8],
    marker: u8,
    payload: Range<usize>,
) -> Result<Option<usize>, &'static str> {
    let bytes = &file[payload.clone()];
    let mut end = payload.end;

    let item = match marker {
        0xC4 => Item::Huffman(payload),
        0xDB => Item::Quantization(payload),
        0xDD if bytes.len() >= 2 => {
            Item::RestartInterval(usize::from(bytes[0]) << 8 | usize::from(bytes[1]))
        }
        0xDA => {
            let frame = segments.frame.as_ref().ok_or("a scan before its frame")?;
            end = end_of_scan(file, payload.end);
            match scan(frame, bytes, payload.end..end) {
                Some(scan) => Item::Scan(scan),
                None => return Ok(Some(end)),
            }
        }
        0xC0..=0xCF if marker != 0xC8 && marker != 0xCC => {
            return Ok(segments.begin(marker, bytes)?.then_some(end));
        }
        0xE2 if bytes.len() > 14 && bytes.starts_with(b"ICC_PROFILE\0") => {
            segments.profile.push((bytes[12], payload.start + 14..payload.end));
            return Ok(Some(end));
        }
        _ => return Ok(Some(end)),
    };

    if segments.items.len() == MAX_SEGMENTS {
        return if segments.has_scan() { Ok(None) } else { Err("too many segments") };
    }
    segments.items.push(item);
    Ok(Some(end))
}

/// Finds the next marker that is neither stuffing nor a restart marker. Undefined codes (T.81, table B.1)
/// count as damage within the data, not as its end.
fn end_of_scan(file: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(found) = file.get(at..).and_then(|rest| memchr(0xFF, rest)) {
        match file.get(at + found + 1) {
            Some(0xFF) => at += found + 1,
            Some(0x00..=0xBF | 0xD0..=0xD8) => at += found + 2,
            Some(_) => return at + found,
            None => break,
        }
    }
    file.len()
}

/// Reads a frame's header. `None` if the header is cut short.
fn frame(marker: u8, bytes: &[u8]) -> Option<Frame> {
    let [precision, h1, h0, w1, w0, count, components @ ..] = bytes else { return None };

    let components = components.as_chunks::<3>().0.get(..usize::from(*count))?;
    let components = components.iter().map(|[id, sampling, table]| FrameComponent {
        id: *id,
        h: sampling >> 4,
        v: sampling & 15,
        table: *table,
    });

    Some(Frame {
        marker,
        precision: *precision,
        width: u32::from(u16::from_be_bytes([*w1, *w0])),
        height: u32::from(u16::from_be_bytes([*h1, *h0])),
        components: components.collect(),
    })
}

/// Reads a scan's header. `None` if the header is invalid.
fn scan(frame: &Frame, bytes: &[u8], data: Range<usize>) -> Option<Scan> {
    let (&count, rest) = bytes.split_first()?;
    let (components, rest) = rest.split_at_checked(2 * usize::from(count))?;
    let &[start, end, approximation] = rest.first_chunk()?;

    let mut seen = Vec::new();
    for [id, tables] in components.as_chunks().0 {
        // Two components may have one name: each is found once, as libjpeg-turbo does.
        let index = (0..frame.components.len()).find(|index| {
            frame.components[*index].id == *id
                && !seen.iter().any(|other: &ScanComponent| other.index == *index)
        })?;
        let (dc_table, ac_table) = (usize::from(tables >> 4), usize::from(tables & 15));
        seen.push(ScanComponent { index, dc_table, ac_table });
    }

    let (high, low) = (approximation >> 4, approximation & 15);
    let (start, end) = (usize::from(start), usize::from(end) + 1);
    if frame.marker == PROGRESSIVE {
        let refines_by_one = high == 0 || high == low + 1;
        let is_band = if start == 0 { end == 1 } else { start < end && end <= END && count == 1 };
        if !refines_by_one || !is_band || low > 13 {
            return None;
        }
        return (count > 0).then_some(Scan { components: seen, band: start..end, high, low, data });
    }

    (count > 0).then_some(Scan { components: seen, band: 0..END, high: 0, low: 0, data })
}

/// Passes each table of a quantization segment to `set`: its number, and its values in zigzag order.
pub(super) fn quantization_tables(mut bytes: &[u8], mut set: impl FnMut(usize, [u16; END])) {
    while let Some((&kind, rest)) = bytes.split_first() {
        let mut values = [0; END];
        let wide = kind >> 4 != 0;
        let Some((entries, rest)) = rest.split_at_checked(if wide { 2 * END } else { END }) else {
            return;
        };

        for (place, value) in values.iter_mut().enumerate() {
            *value = if wide {
                u16::from_be_bytes([entries[2 * place], entries[2 * place + 1]])
            } else {
                u16::from(entries[place])
            };
        }

        set(usize::from(kind & 15), values);
        bytes = rest;
    }
}

/// The kind of coefficients that a Huffman table encodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Dc,
    Ac,
}

/// Passes each table in a Huffman segment to `set`: its class, its number, the number of codes of each
/// length, and their symbols.
pub(super) fn huffman_tables(
    mut bytes: &[u8],
    mut set: impl FnMut(Class, usize, &[u8; 16], &[u8]),
) {
    while let Some((&kind, rest)) = bytes.split_first() {
        let Some((counts, rest)) = rest.split_first_chunk::<16>() else { return };
        let symbols = counts.iter().map(|count| usize::from(*count)).sum();
        let Some((symbols, rest)) = rest.split_at_checked(symbols) else { return };

        let class = if kind >> 4 == 0 { Class::Dc } else { Class::Ac };
        set(class, usize::from(kind & 15), counts, symbols);
        bytes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of the kind `marker`, of two components.
    fn frame_of(marker: u8) -> Vec<u8> {
        let frame = b"\0\x0E\x08\0\x08\0\x08\x02\x01\x11\0\x02\x11\0";
        [b"\xFF\xD8\xFF\xE0\0\x04\xFF\xD9\xFF", &[marker][..], frame].concat()
    }

    const SCAN: &[u8] = b"\xFF\xDA\0\x08\x01\x01\0\0\x3F\0entropy\xFF\0coded\xFF\xD0more";
    const FIRST: &[u8] = b"\xFF\xDA\0\x0A\x02\x01\0\x02\0\0\0\0dc";
    const BOTH: &[u8] = b"\xFF\xDA\0\x0A\x02\x01\0\x02\0\0\x3F\0both";

    #[test]
    fn scans_are_listed_and_what_is_appended_is_left_out() {
        let mut file = [&frame_of(0xC0)[..], &SCAN.repeat(3), b"\xFF\xFF\xD9"].concat();
        let end = file.len();
        file.extend(b"\0\0ftypmp42\xFF\xDA\0\x02");
        let segments = survey(&file).unwrap();
        assert_eq!(segments.end, end);
        let data: Vec<_> = segments.scans().map(|scan| &file[scan.data.clone()]).collect();
        assert_eq!(data[..2], [b"entropy\xFF\0coded\xFF\xD0more"; 2]);
        assert!(data[2].starts_with(data[0]) && data.len() == 3);
    }

    #[test]
    fn a_picture_without_its_end_marker_ends_where_nothing_more_of_it_can_come() {
        let frame = b"\xFF\xC0\0\x0B\x08\0\x08\0\x08\x01\x01\x11\0";
        let trailers: [&[u8]; 6] = [
            frame,
            b"\xFF\xC2\0\x04\0\0",
            b"\xFF\xD8\xFF\xDB\0\x04\0\0",
            &b"\xFF\xDD\0\x04\0\0".repeat(MAX_SEGMENTS + 1),
            &[b"\xFF\xDA\0\x0A\x02\x01\0\x02\0\0\x3F\0again", &frame[..]].concat(),
            &[b"\xFF\xC4\0\x05abc\xFF\xE2\0\x05abc", &frame[..]].concat(),
        ];
        for trailer in trailers {
            let file = [&frame_of(0xC0), BOTH, trailer].concat();
            let segments = survey(&file).unwrap();
            assert_eq!(segments.scans().count(), 1);
            // The start of another picture may count as damage within the data.
            let behind = segments.end - (file.len() - trailer.len());
            assert!(behind == 0 || (behind == 2 && trailer[1] == 0xD8), "{trailer:?}");

            // Of these, more scans may come.
            for (kind, scan) in [(0xC2, FIRST), (0xC0, SCAN)] {
                let file = [&frame_of(kind), scan, trailer].concat();
                assert!(survey(&file).is_ok(), "{kind}: {trailer:?}");
            }
        }
        assert!(survey(&[&frame_of(0xC0)[..], frame].concat()).is_err(), "two frames");
    }

    #[test]
    fn a_survey_of_nonsense_ends() {
        for file in
            [&b""[..], b"\xFF", b"\xFF\xD8\xFF", b"\xFF\xD8\xFF\xDB", b"\xFF\xD8\xFF\xE1\xFF\xFF"]
        {
            let segments = survey(file).unwrap();
            assert_eq!((segments.end, segments.items.len()), (file.len(), 0));
        }
        assert!(survey(b"\xFF\xD8\xFF\xDA\0\x08\x01\x01\0\0\x3F\0").is_err());
    }

    #[test]
    fn a_profile_is_put_together_in_the_order_of_its_numbers() {
        let chunk = |number: u8, text: &[u8]| {
            let length = u8::try_from(16 + text.len()).unwrap();
            [b"\xFF\xE2\0", &[length][..], b"ICC_PROFILE\0", &[number, 2], text].concat()
        };
        let file = [b"\xFF\xD8", &chunk(2, b"world")[..], &chunk(1, b"hello ")].concat();
        assert_eq!(survey(&file).unwrap().profile(&file, 100), Some(b"hello world".to_vec()));
        assert_eq!(survey(&file).unwrap().profile(&file, 10), None, "too large");
        assert_eq!(survey(&file[..30]).unwrap().profile(&file, 100), None, "the first is missing");

        let doubled = [&file[..], &chunk(2, b"other"), &chunk(1, b"others")].concat();
        let expected = Some(b"hello world".to_vec());
        assert_eq!(survey(&doubled).unwrap().profile(&doubled, 100), expected, "the first counts");
        // Each says that there are two.
        let more = [&file[..], &chunk(3, b"!")].concat();
        let expected = Some(b"hello world!".to_vec());
        assert_eq!(survey(&more).unwrap().profile(&more, 100), expected, "the number is not asked");
    }

    #[test]
    fn thousands_of_segments_are_refused() {
        let file = [b"\xFF\xD8".to_vec(), b"\xFF\xDD\0\x04\0\0".repeat(MAX_SEGMENTS + 1)].concat();
        assert!(survey(&file).is_err());
    }
}
