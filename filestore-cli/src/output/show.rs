//! Values as people read them.

use filestore_core::api::{FileRecord, Metadata, PurgeStatus};

use super::table::{Align, Table};

/// Formats bytes with a binary unit, as `1.2 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

    if bytes < 1024 {
        return format!("{bytes} B");
    }

    // Tenths of the unit, rounded; all in integers, so that no value comes out as 1024.0 KiB.
    let (mut tenths, mut unit) = (tenths_of(bytes, 1), 0);
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        unit += 1;
        tenths = tenths_of(bytes, unit + 1);
    }

    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

fn tenths_of(bytes: u64, power: usize) -> u128 {
    let unit = 1_u128 << (10 * power);
    (u128::from(bytes) * 10 + unit / 2) / unit
}

/// Formats a number with its noun, as `1 file`, `2 files` and `2 replies`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if count == 1 => format!("1 {noun}"),
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

/// Formats an age by its largest unit, as `3 min`.
pub(crate) fn age(secs: u64) -> String {
    match secs {
        0..60 => format!("{secs} s"),
        60..3600 => format!("{} min", secs / 60),
        3600..172_800 => format!("{} h", secs / 3600),
        _ => format!("{} d", secs / 86_400),
    }
}

/// Formats a time of the API to the second: `2026-11-21 08:15:30`, UTC.
pub(crate) fn when(time: &str) -> String {
    match (time.get(..10), time.get(11..19)) {
        (Some(day), Some(clock)) => format!("{day} {clock}"),
        _ => plain(time),
    }
}

/// Replaces the characters of a stranger's text that a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if is_command(c) { '\u{FFFD}' } else { c }).collect()
}

/// Tests whether a terminal would obey the character instead of showing it.
pub(super) fn is_command(c: char) -> bool {
    c.is_control() || is_bidi_control(c)
}

/// Finds the controls that reorder text (UAX #9 §2), which let a name pass for another one.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Lays out records, one per line, under a heading.
pub(crate) fn files(records: &[FileRecord]) -> String {
    if records.is_empty() { String::new() } else { table_of(records).render() }
}

/// Lays out records, one per line: a page after the first one.
pub(crate) fn more_files(records: &[FileRecord]) -> String {
    table_of(records).render_more()
}

fn table_of(records: &[FileRecord]) -> Table {
    let mut table = Table::new([
        ("FILE ID", Align::Left),
        ("NAME", Align::Left),
        ("SIZE", Align::Right),
        ("TYPE", Align::Left),
        ("STATUS", Align::Left),
        ("SYNC", Align::Left),
        ("UPDATED (UTC)", Align::Left),
    ]);

    for file in records {
        let purge_status = file.purge_status.as_ref().map(PurgeStatus::as_str);
        let status = purge_status.unwrap_or(file.status.as_str());
        table.row([
            plain(&file.file_id),
            plain(&file.original_name),
            size(file.file_size),
            plain(&file.mime_type),
            plain(status),
            plain(file.sync_status.as_str()),
            when(&file.updated_at),
        ]);
    }

    table
}

/// Lays out a record, one field per line.
pub(crate) fn record(file: &FileRecord) -> String {
    let dimensions =
        file.width.zip(file.height).map(|(width, height)| format!("{width} × {height}"));
    let lines = [
        ("file id", Some(plain(&file.file_id))),
        ("name", Some(plain(&file.original_name))),
        ("type", Some(plain(&file.mime_type))),
        ("size", Some(format!("{} ({} bytes)", size(file.file_size), file.file_size))),
        ("pixels", dimensions),
        ("thumbhash", file.thumbhash.as_deref().map(plain)),
        ("organization", Some(plain(&file.organization_id))),
        ("sub-system", Some(plain(&file.sub_system))),
        ("status", Some(plain(file.status.as_str()))),
        ("purge status", file.purge_status.as_ref().map(|status| plain(status.as_str()))),
        ("sync status", Some(plain(file.sync_status.as_str()))),
        ("stored", Some(plain(&format!("{} ({})", file.storage_location, file.storage_provider)))),
        ("path", Some(plain(&file.file_path))),
        ("sha256", Some(plain(&file.sha256))),
        ("version", Some(file.version.to_string())),
        ("created", Some(format!("{} UTC", when(&file.created_at)))),
        ("updated", Some(format!("{} UTC", when(&file.updated_at)))),
        ("metadata", (!file.metadata.is_empty()).then(|| metadata(&file.metadata))),
        ("expires", file.expires_at.as_deref().map(|at| format!("{} UTC", when(at)))),
    ];

    let shown = lines
        .into_iter()
        .filter_map(|(label, value)| value.map(|value| format!("{label:<13} {value}\n")));
    shown.collect()
}

/// Writes custom metadata on one line, as JSON.
fn metadata(members: &Metadata) -> String {
    plain(&serde_json::to_string(members).expect("an object has string keys and plain values"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal_and_never_a_thousand_and_more_of_a_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_258_291, "1.2 MiB"),
            (1_048_575, "1.0 MiB"),
            (1 << 30, "1.0 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(plain("a\x1b[2Jb\u{202E}gpj.exe"), "a\u{FFFD}[2Jb\u{FFFD}gpj.exe");
    }

    #[test]
    fn a_number_has_its_noun_in_the_plural() {
        assert_eq!(counted(1, "remembered reply"), "1 remembered reply");
        assert_eq!(counted(0, "remembered reply"), "0 remembered replies");
        assert_eq!(counted(2, "key"), "2 keys");
        assert_eq!(counted(2, "day"), "2 days");
    }

    #[test]
    fn an_age_has_one_unit() {
        for (secs, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3600, "1 h"),
            (172_799, "47 h"),
            (172_800, "2 d"),
        ] {
            assert_eq!(age(secs), text);
        }
    }

    #[test]
    fn a_time_is_shown_to_the_second() {
        assert_eq!(when("2026-11-21T08:15:30.123Z"), "2026-11-21 08:15:30");
    }
}
