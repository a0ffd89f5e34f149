//! Values formatted for people.

use filestore_core::api::{FileRecord, Metadata, PurgeStatus};

use super::sync_word::sync_word;
use super::table::{Align, Layout, Table};
use super::terminal;

/// Formats bytes with a binary unit, for example `1.2 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

    if bytes < 1024 {
        return format!("{bytes} B");
    }

    // Rounded tenths of the unit as integers, so that the result is never 1024.0 KiB.
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

/// Formats a number with its noun, for example `1 file`, `2 files` and `2 replies`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if count == 1 => format!("1 {noun}"),
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

/// Formats an age with its largest unit, for example `3 min`.
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

/// Replaces characters that a terminal interprets, in a text from elsewhere.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if is_command(c) { '\u{FFFD}' } else { c }).collect()
}

/// Returns true if a terminal interprets the character instead of showing it.
pub(super) fn is_command(c: char) -> bool {
    c.is_control() || is_bidi_control(c)
}

/// Returns true for characters that reorder text (UAX #9 §2), which can disguise a name.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Formats records of one organization as a table, one per line.
pub(crate) fn files(records: &[FileRecord]) -> String {
    FilePages::new(Organizations::One).page(records)
}

/// The organizations of listed files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Organizations {
    /// All files belong to the organization that the user named.
    One,
    /// The table has a column with the organization.
    Several,
}

/// A table of files that arrives in pages. Only the first page has a heading.
#[derive(Debug)]
pub(crate) struct FilePages {
    organizations: Organizations,
    /// The layout of the first page, and whether its files are deleted.
    begun: Option<(Layout, bool)>,
}

impl FilePages {
    pub(crate) fn new(organizations: Organizations) -> Self {
        Self { organizations, begun: None }
    }

    /// Formats the next page.
    pub(crate) fn page(&mut self, records: &[FileRecord]) -> String {
        if records.is_empty() {
            return String::new();
        }
        if let Some((layout, are_deleted)) = &self.begun {
            let table = table_of(records, self.organizations, *are_deleted);
            return table.carry_on(layout.clone(), terminal::width());
        }

        // A list contains only deleted files, or no deleted files.
        let are_deleted = records.iter().any(|file| file.purge_due_at.is_some());
        let table = table_of(records, self.organizations, are_deleted);
        let (text, layout) = table.begin(terminal::width());
        self.begun = Some((layout, are_deleted));
        text
    }
}

/// Columns of a table of files that a narrow terminal does not show, the first of them first.
const LESS_IMPORTANT: &[&str] =
    &["TYPE", "SYNC", "STATUS", "UPDATED (UTC)", "SIZE", "PURGE DUE (UTC)", "ORG"];

fn table_of(records: &[FileRecord], organizations: Organizations, are_deleted: bool) -> Table {
    let shows_organization = organizations == Organizations::Several;
    let columns = [
        ("NAME", Align::Left),
        ("SIZE", Align::Right),
        ("TYPE", Align::Left),
        ("STATUS", Align::Left),
        ("SYNC", Align::Left),
        ("UPDATED (UTC)", Align::Left),
    ];
    let organization = shows_organization.then_some(("ORG", Align::Left));
    let due = are_deleted.then_some(("PURGE DUE (UTC)", Align::Left));
    let columns = [("FILE ID", Align::Left)].into_iter().chain(organization).chain(columns);
    let mut table =
        Table::new(columns.chain(due)).shortens(&["NAME", "TYPE"]).drops(LESS_IMPORTANT);

    for file in records {
        let purge_status = file.purge_status.as_ref().map(PurgeStatus::as_str);
        let status = purge_status.unwrap_or(file.status.as_str());
        let cells = [
            plain(&file.original_name),
            size(file.file_size),
            plain(&file.mime_type),
            plain(status),
            plain(sync_word(file)),
            when(&file.updated_at),
        ];
        let organization = shows_organization.then(|| plain(&file.organization_id));
        let due = are_deleted.then(|| file.purge_due_at.as_deref().map(when).unwrap_or_default());
        let id = [plain(&file.file_id)];
        table.row(id.into_iter().chain(organization).chain(cells).chain(due));
    }

    table
}

/// Formats a record, one field per line.
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
        ("deleted", file.deleted_at.as_deref().map(|at| format!("{} UTC", when(at)))),
        ("purge due", file.purge_due_at.as_deref().map(|at| format!("{} UTC", when(at)))),
        ("sync status", Some(plain(sync_word(file)))),
        ("sync tries", (file.sync_attempts > 0).then(|| format!("{} failed", file.sync_attempts))),
        ("sync error", file.sync_error.as_deref().map(plain)),
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

/// Formats custom metadata as JSON on one line.
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
