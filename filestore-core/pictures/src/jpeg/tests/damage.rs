//! Damaged and odd files, each made here: what is lost, and what is not.

use super::*;
use crate::fixtures::{jpeg, photo};

/// A grey picture with a row of blocks in each restart interval.
const SIZE: (u32, u32) = (128, 176);
/// The samples of an interval.
const ROW: usize = 128 * 8;

fn rows() -> Vec<u8> {
    write(&recipe(SIZE, &[(1, 1)], false, SIZE.0 / 8)).bytes
}

fn shown(file: &[u8]) -> Vec<u8> {
    decode(file, &[whole(SIZE, 8)]).unwrap().1.swap_remove(0)
}

/// The places of the restart markers.
fn restarts(file: &[u8]) -> Vec<usize> {
    let is_restart = |at: &usize| file[*at] == 0xFF && (0xD0..0xD8).contains(&file[at + 1]);
    (0..file.len() - 1).filter(is_restart).collect()
}

/// The rows of blocks that are not as they should be.
fn lost(seen: &[u8], good: &[u8]) -> Vec<usize> {
    let rows = seen.chunks(ROW).zip(good.chunks(ROW)).enumerate();
    rows.filter(|(_, (seen, good))| seen != good).map(|(row, _)| row).collect()
}

#[test]
fn a_stray_marker_costs_the_rest_of_its_interval_alone() {
    let file = rows();
    let good = shown(&file);
    let at = restarts(&file)[4] + 40;
    for stray in [&[0xFF, 0x3C][..], &[0xFF, 0xFF, 0x3C], &[0xFF, 0xBF], &[0xFF, 0x02]] {
        let damaged = [&file[..at], stray, &file[at + stray.len()..]].concat();
        assert_eq!(lost(&shown(&damaged), &good), [5], "{stray:X?}");
    }
}

#[test]
fn a_stray_marker_without_restarts_leaves_what_came_before() {
    let file = write(&recipe(SIZE, &[(1, 1)], false, 0)).bytes;
    let good = shown(&file);
    let mut damaged = file.clone();
    let middle = file.len() / 2;
    damaged[middle..middle + 2].copy_from_slice(&[0xFF, 0x3C]);
    let lost = lost(&shown(&damaged), &good);
    assert!(lost[0] > 5 && lost.len() == SIZE.1 as usize / 8 - lost[0], "{lost:?}");
}

#[test]
fn a_misnumbered_restart_moves_nothing() {
    let file = rows();
    let good = shown(&file);
    let restarts = restarts(&file);
    for (wrong, at) in (0..8).flat_map(|wrong| [(wrong, restarts[3]), (wrong, restarts[12])]) {
        let mut damaged = file.clone();
        damaged[at + 1] = 0xD0 + wrong;
        assert_eq!(lost(&shown(&damaged), &good), [0; 0], "{wrong} at {at}");
    }
}

#[test]
fn a_doubled_restart_moves_nothing() {
    let file = rows();
    let good = shown(&file);
    let at = restarts(&file)[6];
    let damaged = [&file[..at], &file[at..at + 2], &file[at..]].concat();
    assert_eq!(lost(&shown(&damaged), &good), [0; 0]);
}

#[test]
fn a_restart_within_an_interval_costs_a_few() {
    let file = rows();
    let good = shown(&file);
    let at = restarts(&file)[4] + 40;
    for stray in 0xD0..0xD8 {
        let damaged = [&file[..at], &[0xFF, stray], &file[at..]].concat();
        let lost = lost(&shown(&damaged), &good);
        assert!(lost.iter().all(|row| (5..9).contains(row)), "{stray:X}: {lost:?}");
    }
}

#[test]
fn lost_restarts_and_lost_intervals_cost_only_themselves() {
    let file = rows();
    let good = shown(&file);
    let restarts = restarts(&file);
    // The marker alone, so that two intervals run into each other.
    let marker = [&file[..restarts[4]], &file[restarts[4] + 2..]].concat();
    assert_eq!(lost(&shown(&marker), &good), [5]);
    let interval = [&file[..restarts[4]], &file[restarts[5]..]].concat();
    assert_eq!(lost(&shown(&interval), &good), [5]);
    let two = [&file[..restarts[4]], &file[restarts[6]..]].concat();
    assert_eq!(lost(&shown(&two), &good), [5, 6]);
}

#[test]
fn restarts_are_found_again_in_progressive_pictures_too() {
    let file = write(&recipe(SIZE, &[(1, 1)], true, SIZE.0 / 8)).bytes;
    let good = shown(&file);
    let mut damaged = file.clone();
    // In the first scan, which has the DC of all blocks.
    let at = restarts(&file)[3];
    damaged[at + 1] = 0xD5;
    assert_eq!(lost(&shown(&damaged), &good), [0; 0]);
}

/// `file` without its Huffman tables.
fn without_tables(file: &[u8]) -> Vec<u8> {
    let mut bytes = file[..2].to_vec();
    let mut at = 2;
    while file[at + 1] != 0xDA {
        let end = at + 2 + usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
        if file[at + 1] != 0xC4 {
            bytes.extend(&file[at..end]);
        }
        at = end;
    }
    bytes.extend(&file[at..]);
    bytes
}

#[test]
fn a_picture_without_huffman_tables_has_the_standard_ones() {
    // The encoder of `image` writes the tables of T.81, annex K.
    let rgb = photo(SIZE.0, SIZE.1);
    let file = jpeg(SIZE.0, SIZE.1, &rgb);
    let bare = without_tables(&file);
    assert!(bare.len() + 400 < file.len(), "the tables are gone");
    let (_, good) = decode(&file, &[whole(SIZE, 8)]).unwrap();
    let (_, seen) = decode(&bare, &[whole(SIZE, 8)]).unwrap();
    assert!(seen == good);
}

#[test]
fn components_of_one_name_are_told_apart_by_their_order() {
    let sampling = [(1, 1); 4];
    let mut written = write(&recipe((75, 53), &sampling, false, 0));
    // The fourth component's id, in the frame and in the scan.
    let frame = written.bytes.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    written.bytes[frame + 10 + 9] = 1;
    let scan = written.bytes.windows(2).position(|pair| pair == [0xFF, 0xDA]).unwrap();
    written.bytes[scan + 5 + 6] = 1;
    check_all(&written, &[whole((75, 53), 8)], "ids 1, 2, 3, 1");
}

/// Damaged and odd files for the sheet that a person looks at.
pub(crate) fn cases() -> Vec<(&'static str, Vec<u8>)> {
    let size = (400, 400);
    let colors = [(2, 2), (1, 1), (1, 1)];
    let file = write(&recipe(size, &colors, false, 25)).bytes;
    let restarts = restarts(&file);
    let (at, stray) = (restarts[8], restarts[8] + 60);
    let of = |sampling: &[(u32, u32)]| write(&recipe(size, sampling, false, 0)).bytes;
    let mut misnumbered = file.clone();
    misnumbered[at + 1] ^= 5;
    let photo = jpeg(size.0, size.1, &photo(size.0, size.1));
    vec![
        ("JPEG, sound", file.clone()),
        ("JPEG, chrominance denser", of(&[(1, 1), (2, 2), (2, 2)])),
        ("JPEG, a stray marker", [&file[..stray], &[0xFF, 0x3C], &file[stray + 2..]].concat()),
        ("JPEG, a misnumbered restart", misnumbered),
        ("JPEG, a doubled restart", [&file[..at + 2], &file[at..]].concat()),
        ("JPEG, a lost interval", [&file[..at], &file[restarts[9]..]].concat()),
        ("JPEG, cut", photo[..photo.len() / 2].to_vec()),
        ("JPEG without tables", without_tables(&photo)),
    ]
}
