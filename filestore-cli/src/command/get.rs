//! `get`, `variant` and `sheet`: download to a file or to stdout.

use std::collections::HashSet;
use std::path::PathBuf;

use filestore_core::api::SheetMap;
use serde::Serialize;

use crate::args::{GetArgs, OutputArgs, SheetArgs, VariantArgs};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, plain, size};
use crate::store::{Delivery, Destination, Overwrite, Target};

/// Maximum file name length in bytes. File systems allow 255. The rest is for `-1000.webp`.
const NAME_BYTES: usize = 200;

/// A saved file.
#[derive(Debug, Serialize)]
struct Saved<'a> {
    file_id: &'a str,
    path: String,
    bytes: u64,
}

/// `get`: downloads one file, or several files into a directory. A failure does not stop the next
/// files.
pub(super) async fn run(args: GetArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    if let [id] = &args.ids[..] {
        let (to, bytes) = download(id, &args, &HashSet::new(), target, out).await?;
        return show_saved(id, &to, bytes, out);
    }
    check_several(&args)?;

    let (mut all, mut paths, mut exit) = (Vec::new(), HashSet::new(), Exit::Done);
    for id in &args.ids {
        match download(id, &args, &paths, target, out).await {
            Ok((Destination::File(path, _), bytes)) => {
                all.push(Saved { file_id: id, path: path.display().to_string(), bytes });
                paths.insert(path);
            }
            Ok((Destination::Stdout, _)) => unreachable!("several files need a directory"),
            Err(failure) => {
                out.failure(&failure);
                exit = exit.max(failure.exit());
                if failure.hits_all() {
                    break;
                }
            }
        }
    }

    let lines = |all: &Vec<Saved<'_>>| all.iter().map(saved_text).collect::<Vec<_>>().join("\n");
    out.report(&all, lines)?;
    Ok(exit)
}

/// Refuses options for a single file.
fn check_several(args: &GetArgs) -> Result<()> {
    if args.range.is_some() {
        let failure = Failure::failed("--range needs a single file");
        return Err(failure.hint("run one command for each file"));
    }
    match choose(&args.output) {
        Chosen::Within(_) => Ok(()),
        Chosen::Stdout | Chosen::File(_) => {
            let failure = Failure::failed("several files need a directory as output");
            Err(failure.hint("use -o with an existing directory, or leave -o out"))
        }
    }
}

/// Downloads a file. `taken` has the paths of earlier files of the same command.
async fn download(
    id: &str,
    args: &GetArgs,
    taken: &HashSet<PathBuf>,
    target: &dyn Target,
    out: Output,
) -> Result<(Destination, u64)> {
    let outcome = try_download(id, args, taken, target, out).await;
    outcome.map_err(|e| e.doing(format!("cannot get {id}")))
}

async fn try_download(
    id: &str,
    args: &GetArgs,
    taken: &HashSet<PathBuf>,
    target: &dyn Target,
    out: Output,
) -> Result<(Destination, u64)> {
    let to = match choose(&args.output) {
        Chosen::Stdout => Destination::Stdout,
        Chosen::File(path) => Destination::File(path, overwrite(&args.output)),
        Chosen::Within(dir) => {
            let record = target.info(id).await?;
            // Not the id in the record: it comes from the server and would become a path.
            let name = safe_name(&record.original_name).unwrap_or_else(|| id.to_owned());
            let mut path = dir.join(&name);
            if taken.contains(&path) {
                path = dir.join(format!("{id}-{name}"));
            }
            Destination::File(path, overwrite(&args.output))
        }
    };
    to.check()?;

    // A total of 0 makes a bar instead of a spinner. The download sets the total when it starts.
    let meter = out.bytes_meter(label(&to), Some(0));
    let bytes = target.download(id, args.range, &to, &meter).await?;
    Ok((to, bytes))
}

/// `variant`: downloads a gallery variant.
pub(super) async fn variant(args: VariantArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let outcome = download_variant(&args, target, out).await;
    outcome.map_err(|e| e.doing(format!("cannot get a variant of {}", args.id)))
}

async fn download_variant(args: &VariantArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let chosen = choose(&args.output);
    let original_name = match &chosen {
        Chosen::Within(_) => Some(target.info(&args.id).await?.original_name),
        Chosen::Stdout | Chosen::File(_) => None,
    };

    let variant =
        target.variant(&args.id, args.size, args.fit.into(), args.animated.into()).await?;
    let to = match chosen {
        Chosen::Stdout => Destination::Stdout,
        Chosen::File(path) => Destination::File(path, overwrite(&args.output)),
        Chosen::Within(dir) => {
            let safe = original_name.as_deref().and_then(safe_name);
            let own_name = safe.as_deref().unwrap_or(&args.id);
            let stem = own_name.rsplit_once('.').map_or(own_name, |(stem, _)| stem);
            let file_name = format!("{stem}-{}.{}", args.size, extension(&variant.mime_type));
            Destination::File(dir.join(file_name), overwrite(&args.output))
        }
    };

    let mut delivery = Delivery::begin(&to)?;
    delivery.write(&variant.bytes).await?;
    delivery.finish().await?;
    show_saved(&args.id, &to, variant.bytes.len() as u64, out)
}

/// `sheet`: downloads a contact sheet, or shows its map.
pub(super) async fn sheet(args: SheetArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    download_sheet(&args, target, out).await.map_err(|e| e.doing("cannot get a contact sheet"))
}

async fn download_sheet(args: &SheetArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let fit = args.fit.into();
    if args.map {
        let map = target.sheet_map(&args.ids, args.size, fit).await?;
        out.data(&map, ids_of, cells)?;
        return Ok(Exit::Done);
    }

    let sheet = target.sheet(&args.ids, args.size, fit).await?;
    let to = match choose(&args.output) {
        Chosen::Stdout => Destination::Stdout,
        Chosen::File(path) => Destination::File(path, overwrite(&args.output)),
        Chosen::Within(dir) => Destination::File(dir.join("sheet.webp"), overwrite(&args.output)),
    };

    let mut delivery = Delivery::begin(&to)?;
    delivery.write(&sheet.bytes).await?;
    delivery.finish().await?;
    show_saved(&args.ids.join(","), &to, sheet.bytes.len() as u64, out)
}

fn ids_of(map: &SheetMap) -> Vec<&str> {
    map.cells.iter().map(|cell| cell.file_id.as_str()).collect()
}

/// Lists the cells of a sheet, one per line: position and size of the image, or the reason why it
/// is missing.
fn cells(map: &SheetMap) -> String {
    let lines = map.cells.iter().map(|cell| {
        let id = plain(&cell.file_id);
        match (cell.x, cell.y, cell.width, cell.height, &cell.error) {
            (Some(x), Some(y), Some(width), Some(height), _) => {
                format!("{id}  {width} × {height} at {x}, {y}")
            }
            (.., Some(error)) => format!("{id}  {}: {}", error.code.as_str(), plain(&error.detail)),
            _ => id,
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn show_saved(id: &str, to: &Destination, bytes: u64, out: Output) -> Result<Exit> {
    // Stdout contains the file itself.
    if let Destination::File(path, _) = to {
        let saved = Saved { file_id: id, path: path.display().to_string(), bytes };
        out.report(&saved, saved_text)?;
    }
    Ok(Exit::Done)
}

fn saved_text(saved: &Saved<'_>) -> String {
    format!("{}  {}", plain(&saved.path), size(saved.bytes))
}

/// The output that the user chooses.
enum Chosen {
    Stdout,
    File(PathBuf),
    /// A file in this directory, under its own name.
    Within(PathBuf),
}

fn choose(args: &OutputArgs) -> Chosen {
    match &args.output {
        None => Chosen::Within(PathBuf::new()),
        Some(path) if path.as_os_str() == "-" => Chosen::Stdout,
        Some(path) if path.is_dir() => Chosen::Within(path.clone()),
        Some(path) => Chosen::File(path.clone()),
    }
}

fn overwrite(args: &OutputArgs) -> Overwrite {
    if args.force { Overwrite::Replace } else { Overwrite::Refuse }
}

fn label(to: &Destination) -> String {
    match to {
        Destination::Stdout => "stdout".to_owned(),
        Destination::File(path, _) => plain(&path.display().to_string()),
    }
}

/// Turns a stored name into a safe file name: one component, not hidden, without control
/// characters, and without a leading dash, which a command would read as an option. Returns `None`
/// if no character remains.
pub(super) fn safe_name(original: &str) -> Option<String> {
    let last = original.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut name = plain(last).replace('\u{FFFD}', "_");
    if name.len() > NAME_BYTES {
        // Keeps the end, because it contains the extension.
        let cut = name.ceil_char_boundary(name.len() - NAME_BYTES);
        name.replace_range(..cut, "");
    }
    // After the cut, because the name can now begin with any character.
    match name.chars().next() {
        Some('.') => name.replace_range(..1, "_"),
        Some('-') => name.insert(0, '_'),
        _ => {}
    }

    (!name.trim_matches(['_', '.', ' ']).is_empty()).then_some(name)
}

fn extension(mime_type: &str) -> &str {
    match mime_type {
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/gif" => "gif",
        "image/bmp" => "bmp",
        "image/tiff" => "tif",
        _ => "webp",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_stored_name_stays_in_the_directory_and_visible() {
        for (stored, here) in [
            ("photo.jpg", Some("photo.jpg")),
            ("../../etc/passwd", Some("passwd")),
            ("C:\\temp\\a.txt", Some("a.txt")),
            (".bashrc", Some("_bashrc")),
            ("-rf", Some("_-rf")),
            ("a/--help", Some("_--help")),
            ("--", Some("_--")),
            ("Zoë 写真.jpg", Some("Zoë 写真.jpg")),
            ("a\u{1b}[31m", Some("a_[31m")),
            ("..", None),
            ("a/", None),
            ("", None),
        ] {
            assert_eq!(safe_name(stored).as_deref(), here, "{stored:?}");
        }
    }

    #[test]
    fn a_long_name_keeps_its_extension() {
        let name = safe_name(&format!("{}.jpg", "写".repeat(250))).unwrap();
        assert!(name.len() <= NAME_BYTES && name.ends_with("写.jpg"));
    }

    #[test]
    fn a_long_name_whose_end_begins_like_an_option_or_a_hidden_file_does_not() {
        for (first, begins) in [('-', "_-"), ('.', "_x")] {
            let stored = format!("{}{first}{}", "y".repeat(50), "x".repeat(NAME_BYTES - 1));
            assert!(safe_name(&stored).unwrap().starts_with(begins), "{first}");
        }
    }

    #[test]
    fn an_output_that_is_a_directory_keeps_the_name() {
        let dir = tempfile::tempdir().unwrap();
        let output = |path: &Path| OutputArgs { output: Some(path.to_owned()), force: false };
        assert!(matches!(choose(&output(dir.path())), Chosen::Within(_)));
        assert!(matches!(choose(&output(&dir.path().join("a"))), Chosen::File(_)));
        assert!(matches!(choose(&output(Path::new("-"))), Chosen::Stdout));
    }
}
