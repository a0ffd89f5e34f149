//! The files of the console, as they are in the program.

use std::collections::BTreeMap;

use bytes::Bytes;
use filestore_core::Sha256;
use http::HeaderMap;
use sha2::{Digest as _, Sha256 as Digest};

use crate::http::accept::{self, Coding};
use crate::http::etag::EntityTag;

/// The name of the page.
const PAGE: &str = "index.html";

/// The folder of the assets. Their names contain a digest of their content.
pub(super) const ASSETS: &str = "assets/";

/// The text in the page that stands in front of the name of each asset.
const BASE: &str = "{{base}}";

/// A file with its compressed forms.
#[derive(Debug, Clone, Copy)]
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) plain: &'static [u8],
    pub(super) gzip: Option<&'static [u8]>,
    pub(super) brotli: Option<&'static [u8]>,
}

/// All files of `console/dist`, listed by the build script. Empty without the feature `console`.
pub(super) static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// The bytes of a file in one coding.
#[derive(Debug, Clone)]
pub(super) struct Representation {
    pub(super) bytes: Bytes,
    pub(super) coding: Coding,
    pub(super) etag: EntityTag,
}

impl Representation {
    fn of(bytes: Bytes, coding: Coding) -> Self {
        let etag = EntityTag::of(&Sha256(Digest::digest(&bytes).into()));
        Self { bytes, coding, etag }
    }
}

/// The files by name, with their entity tags.
#[derive(Debug)]
pub(super) struct Dist {
    page: Option<&'static str>,
    files: BTreeMap<&'static str, Vec<Representation>>,
}

impl Dist {
    /// Computes the entity tags of all files.
    pub(super) fn of(files: &[File]) -> Self {
        let page = files.iter().find(|file| file.name == PAGE);
        let page = page.map(|file| str::from_utf8(file.plain).expect("the page is UTF-8"));

        let forms = |file: &File| {
            let all = [
                (Coding::Brotli, file.brotli),
                (Coding::Gzip, file.gzip),
                (Coding::Identity, Some(file.plain)),
            ];
            let there = all.into_iter().filter_map(|(coding, bytes)| Some((coding, bytes?)));
            there
                .map(|(coding, bytes)| Representation::of(Bytes::from_static(bytes), coding))
                .collect()
        };
        let others = files.iter().filter(|file| file.name != PAGE);
        Self { page, files: others.map(|file| (file.name, forms(file))).collect() }
    }

    /// Returns true if the program contains the console.
    pub(super) fn is_there(&self) -> bool {
        self.page.is_some()
    }

    /// Returns the page for a path with `depth` slashes below `console/`. The names of its assets are relative,
    /// so that the page works below any prefix.
    pub(super) fn page(&self, depth: usize) -> Option<Representation> {
        let base = if depth == 0 { "./".to_owned() } else { "../".repeat(depth) };
        let html = self.page?.replace(BASE, &base);
        Some(Representation::of(html.into(), Coding::Identity))
    }

    /// Returns a file in the coding that the request prefers. `None` if there is no such file.
    pub(super) fn file(&self, name: &str, headers: &HeaderMap) -> Option<&Representation> {
        let forms = self.files.get(name)?;
        let offered: Vec<_> = forms.iter().map(|form| form.coding).collect();
        let coding = accept::coding(headers, &offered);
        forms.iter().find(|form| form.coding == coding)
    }
}

/// Returns the media type of a file by its name.
pub(super) fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "css" => "text/css; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "ico" => "image/x-icon",
        "js" => "text/javascript; charset=utf-8",
        "json" | "map" => "application/json",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        "webmanifest" => "application/manifest+json",
        "webp" => "image/webp",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}
